"""``python -m nysboost.cli``."""

from nysboost.cli import main

main()
