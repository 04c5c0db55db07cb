"""JAX: the step as array operations."""

import jax
import jax.numpy as jnp
import numpy as np

from ...harness import Entrant
from . import DT, GRAVITY, Work


def entrants(work: Work) -> dict[str, Entrant]:
    leaves = [jnp.asarray(a) for a in (work.x, work.v, work.f, work.weight)]
    seeds = (jnp.asarray(work.seed_x), jnp.asarray(work.seed_v))

    def step(x, v, f, weight):
        v = v + (f * weight[:, None] + jnp.array([0.0, GRAVITY, 0.0], jnp.float32)) * DT
        return x + v * DT, v

    def there_and_back(*leaves):
        out, back = jax.vjp(step, *leaves)
        return out, back(seeds)

    forward, both = jax.jit(step), jax.jit(there_and_back)

    def results() -> dict[str, np.ndarray]:
        out, grads = both(*leaves)
        names = ("x", "v", "grad x", "grad v", "grad f", "grad weight")
        return dict(zip(names, map(np.asarray, (*out, *grads))))

    runs = {
        "forward": lambda: jax.block_until_ready(forward(*leaves)),
        "forward + backward": lambda: jax.block_until_ready(both(*leaves)),
    }
    return {"JAX": Entrant(runs, results)}
