"""JAX: the step as array operations, 64 of them by scan."""

import jax
import jax.numpy as jnp
import numpy as np

from ...harness import Entrant
from . import DT, GRAVITY, STEPS, Work


def rollout_of(work: Work):
    """The last positions as a function of positions, velocities, mu and lambda."""
    w = {k: jnp.asarray(a) for k, a in vars(work).items()}
    gravity = jnp.array([0.0, GRAVITY, 0.0], jnp.float32)

    def forces(x, mu, lam):
        corner = x[w["tets"]]
        F = jnp.einsum("tki,tkj->tij", corner[:, 1:] - corner[:, :1], w["inverse"])
        c0, c1, c2 = F[:, :, 0], F[:, :, 1], F[:, :, 2]
        C = jnp.stack([jnp.cross(c1, c2), jnp.cross(c2, c0), jnp.cross(c0, c1)], -1)
        J = (c0 * C[:, :, 0]).sum(-1)
        shear = mu * (1 - 1 / ((F * F).sum((1, 2)) + 1))
        P = shear[:, None, None] * F + (lam * (J - 1 - 0.75 * mu / lam))[:, None, None] * C
        H = -w["volume"][:, None, None] * jnp.einsum("tij,tkj->tki", P, w["inverse"])
        each = jnp.concatenate([-H.sum(1, keepdims=True), H], 1)
        return jnp.zeros_like(x).at[w["tets"]].add(each)

    def rollout(x, v, mu, lam):
        def step(state, _):
            x, v = state
            v = v + DT * (forces(x, mu, lam) * w["weight"][:, None] + gravity)
            return (x + DT * v, v), None

        return jax.lax.scan(step, (x, v), None, STEPS)[0][0]

    return rollout


def entrants(work: Work) -> dict[str, Entrant]:
    rollout, w = rollout_of(work), {k: jnp.asarray(a) for k, a in vars(work).items()}

    def loss(*leaves):
        x = rollout(*leaves)
        return (w["seed"] * x).sum(), x

    forward, both = jax.jit(rollout), jax.jit(jax.value_and_grad(loss, (0, 1, 2, 3), has_aux=True))
    leaves = [w[k] for k in ("x", "v", "mu", "lam")]

    def results() -> dict[str, np.ndarray]:
        (_, x), grads = both(*leaves)
        return {"x": np.asarray(x)} | dict(zip(("grad x", "grad v", "grad mu", "grad lam"), map(np.asarray, grads)))

    runs = {
        "forward": lambda: jax.block_until_ready(forward(*leaves)),
        "forward + backward": lambda: jax.block_until_ready(both(*leaves)),
    }
    return {"JAX scan": Entrant(runs, results)}
