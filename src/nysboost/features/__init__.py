"""Feature maps, passes over rows in blocks that fit cache and memory, and errors."""
