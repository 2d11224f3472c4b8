"""Rows wherever they are stored, passes over them, and outputs."""
