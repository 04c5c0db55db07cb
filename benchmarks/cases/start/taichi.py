"""Taichi."""

from ...harness import Entrant
from . import Work, process


def entrants(work: Work) -> dict[str, Entrant]:
    return {"Taichi": process(work, "ten_taichi.py", "TI_OFFLINE_CACHE_FILE_PATH", needs="taichi")}
