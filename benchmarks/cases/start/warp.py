"""Warp. Its loop over `power` has a wrong gradient, so only its time is of interest here."""

from ...harness import Entrant
from . import Work, process


def entrants(work: Work) -> dict[str, Entrant]:
    return {"Warp": Entrant(process(work, "ten_warp.py", "WARP_CACHE_PATH", needs="warp").runs)}
