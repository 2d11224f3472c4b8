"""Landmarks at optimised positions, in one joint core; read `method` first."""
