"""The floor: a process that imports NumPy and does nothing."""

from ...harness import Entrant
from . import Work, process


def entrants(work: Work) -> dict[str, Entrant]:
    return {"import numpy": Entrant(process(work, "nothing.py", "_").runs)}
