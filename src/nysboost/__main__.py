"""``python -m nysboost``."""

from nysboost.cli import main

if __name__ == "__main__":
    main()
