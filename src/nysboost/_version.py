"""The version, in the one place that states it."""

__version__ = "0.4.0"

SOFTWARE = f"NysBoost {__version__}"
"""What every file that the library writes says of its maker, where its format has a place."""
