"""Passes over rows: blocks that fit cache and memory, feature maps, errors."""
