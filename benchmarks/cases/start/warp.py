"""Warp. Its loop over `power` has a wrong gradient, so only its time is of interest here."""

import importlib.util

from ...harness import Entrant
from . import Work, process


def entrants(work: Work) -> dict[str, Entrant]:
    if importlib.util.find_spec("warp") is None:
        raise ImportError(name="warp")
    return {"Warp": process(work, "ten_warp.py", "WARP_CACHE_PATH")}
