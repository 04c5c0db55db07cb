"""By hand: g++ -O2 and ctypes, and no compiler once there is a library. The limit."""

from ...harness import Entrant
from . import Work, process


def entrants(work: Work) -> dict[str, Entrant]:
    return {"C++": process(work, "ten_cpp.py", "TEN_CACHE_DIR")}
