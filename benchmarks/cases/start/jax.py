"""JAX, with its cache on disk, which one has to ask for."""

from ...harness import Entrant
from . import Work, process


def entrants(work: Work) -> dict[str, Entrant]:
    return {"JAX": process(work, "ten_jax.py", "JAX_COMPILATION_CACHE_DIR", needs="jax")}
