"""The version, in the one place that states it."""

__version__ = "0.4.0"

SOFTWARE = f"NysBoost {__version__}"
"""The name and version that are stored in every file that the library writes, if its format
allows."""
