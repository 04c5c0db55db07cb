"""JAX: the other bodies one after the other by scan, which can be reversed. Every pair at once is slower."""

import jax
import jax.numpy as jnp
import numpy as np

from ...harness import Entrant
from . import SOFTENING, Work


def entrants(work: Work) -> dict[str, Entrant]:
    x, mass, seed = jnp.asarray(work.x), jnp.asarray(work.mass), jnp.asarray(work.seed)

    def attract(x, mass):
        def add(pull, other):
            there, m = other
            d = there - x
            r2 = (d * d).sum(-1, keepdims=True) + SOFTENING
            return pull + d * (m / (r2 * jnp.sqrt(r2))), None

        return jax.lax.scan(add, jnp.zeros_like(x), (x, mass))[0]

    def loss(x, mass):
        a = attract(x, mass)
        return (seed * a).sum(), a

    forward, both = jax.jit(attract), jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))

    def results() -> dict[str, np.ndarray]:
        (_, a), grads = both(x, mass)
        return {"a": np.asarray(a), "grad x": np.asarray(grads[0]), "grad mass": np.asarray(grads[1])}

    runs = {
        "forward": lambda: jax.block_until_ready(forward(x, mass)),
        "forward + backward": lambda: jax.block_until_ready(both(x, mass)),
    }
    return {"JAX scan": Entrant(runs, results)}
