"""Names that were mistyped: what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """ "did you mean 'x'?", or all that there is."""
    names = list(known)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    if not close:
        # The last word may be right where the object is not: "box.density" for "cube.density".
        close = [n for n in names if n.rpartition(".")[2] == name.rpartition(".")[2]][:1]
    return f"did you mean {close[0]!r}?" if close else f"there is {', '.join(map(repr, names)) or 'nothing'}"
