"""torch: operations that are compiled already, so that cold is warm."""

from ...harness import Entrant
from . import Work, process


def entrants(work: Work) -> dict[str, Entrant]:
    return {"torch": process(work, "ten_torch.py", "_", needs="torch")}
