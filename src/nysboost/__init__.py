"""NysBoost: standard, ensemble and boosting Nyström approximation of kernel matrices.

The package has one function, `approximate`, and scikit-learn estimators. Nearly every approximation
has the form K̂(x, y) = k(x, Z) M k(Z, y), with landmarks Z and a small symmetric core M.
"""

import importlib.util
from typing import TYPE_CHECKING, Any

from nysboost._version import __version__ as __version__

if TYPE_CHECKING:
    from nysboost.api import *  # noqa: F403
else:  # a checker that saw this would take every name for one of ours

    def __getattr__(name: str) -> Any:
        """Import everything when the first name is needed, so that ``nysboost --help`` is fast."""
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        if importlib.util.find_spec(f"nysboost.{name}"):  # one of the rooms
            return importlib.import_module(f"nysboost.{name}")
        api = importlib.import_module("nysboost.api")
        names = [each for each in vars(api) if not each.startswith("_")]
        names.append("__version__")
        public = {each: getattr(api, each) for each in names}
        globals().update(public, __all__=sorted(names))
        if name not in globals():
            raise AttributeError(f"nysboost has no {name!r}.")
        return globals()[name]

    def __dir__() -> list[str]:
        """List the public names only."""
        return list(__getattr__("__all__"))
