"""What to say when a name is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Return a sentence that there is no such name, with the nearest ones and all of them."""
    folded = {candidate.lower(): candidate for candidate in known}
    nearest = difflib.get_close_matches(str(name).lower(), folded, n=3, cutoff=0.5)
    hint = (
        f" Did you mean {' or '.join(repr(folded[near]) for near in nearest)}?" if nearest else ""
    )
    return f"There is no {what} {name!r}.{hint} Known are {', '.join(folded.values())}."
