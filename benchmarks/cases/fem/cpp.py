"""By hand: one tetrahedron at a time on one thread; and in the SIMD lanes of the machine, on as many threads as there
are, which is the limit.
"""

import numpy as np

from ...harness import Entrant
from . import Work, by_hand


def entrants(work: Work) -> dict[str, Entrant]:
    found = {}
    for flavour in ("scalar", "simd"):
        out, runs = by_hand(work, flavour, np.float32)
        found[f"C++ {flavour}"] = Entrant(runs, lambda out=out: out)
    return found
