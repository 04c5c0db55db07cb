"""kernelc."""

from ...harness import Entrant
from . import Work, process


def entrants(work: Work) -> dict[str, Entrant]:
    return {"kernelc": process(work, "ten_kernelc.py", "KERNELC_CACHE_DIR")}
