"""JAX: every face at every pixel, as arrays; in pieces of the picture by scan, so that it fits into memory."""

import jax
import jax.numpy as jnp
import numpy as np

from ...harness import Entrant
from . import DISTANCE, HALF_HEIGHT, LIMIT, SIGMA, Work

PIXELS = 256


def entrants(work: Work) -> dict[str, Entrant]:
    n = work.size
    x, faces = jnp.asarray(work.vertices), jnp.asarray(work.faces)
    j, i = np.meshgrid(np.arange(n), np.arange(n))
    pieces = jnp.asarray(np.stack([2 * j + 1 - n, n - 1 - 2 * i], -1).reshape(-1, PIXELS, 2) / n, jnp.float32)
    seeds = jnp.asarray(work.seed.reshape(-1, PIXELS))

    def draw(x):
        return jax.lax.map(lambda p: alpha(x, faces, p), pieces)

    def there_and_back(x):
        def piece(grad, given):
            p, seed = given
            image, back = jax.vjp(lambda x: alpha(x, faces, p), x)
            return grad + back(seed)[0], image

        return jax.lax.scan(piece, jnp.zeros_like(x), (pieces, seeds))

    forward, both = jax.jit(draw), jax.jit(there_and_back)

    def results() -> dict[str, np.ndarray]:
        grad, image = both(x)
        return {"image": np.asarray(image).reshape(n, n), "grad vertices": np.asarray(grad)}

    runs = {
        "forward": lambda: jax.block_until_ready(forward(x)),
        "forward + backward": lambda: jax.block_until_ready(both(x)),
    }
    return {"JAX dense": Entrant(runs, results)}


def alpha(x: jax.Array, faces: jax.Array, p: jax.Array) -> jax.Array:
    """1 - Π(1 - D) at points p (k, 2)."""
    corner = (x[:, :2] / (DISTANCE - x[:, 2:]) / HALF_HEIGHT)[faces]
    distances, sides = [], []
    for k in range(3):
        a, e = corner[:, k], corner[:, (k + 1) % 3] - corner[:, k]
        q = p[:, None] - a
        along = ((q * e).sum(-1) / (e * e).sum(-1)).clip(0, 1)
        distances.append(((q - along[..., None] * e) ** 2).sum(-1))
        sides.append(e[:, 0] * q[..., 1] - e[:, 1] * q[..., 0])
    d2, side = jnp.minimum(jnp.minimum(*distances[:2]), distances[2]), jnp.stack(sides)
    inside = (side > 0).all(0) | (side < 0).all(0)
    logit = jnp.where(inside, d2, -d2) / SIGMA
    return -jnp.expm1(-jnp.where(inside | (d2 < LIMIT), jax.nn.softplus(logit), 0.0).sum(1))
