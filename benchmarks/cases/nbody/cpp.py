"""By hand: the plain double loop, and sixteen bodies in SIMD lanes, which gather both parts of the adjoint."""

import numpy as np

from ...harness import Entrant
from . import Work, by_hand


def entrants(work: Work) -> dict[str, Entrant]:
    found = {}
    for flavour in ("scalar", "simd"):
        out, runs = by_hand(work, flavour, np.float32)
        found[f"C++ {flavour}"] = Entrant(runs, lambda out=out: out)
    return found
