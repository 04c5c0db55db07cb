"""Ten functions, one after the other, and their gradient: compiled as one, as it is done in JAX."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

# By itself JAX keeps only what took a second to compile.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def length(x):
    return jnp.sqrt((x * x).sum(-1, keepdims=True))


def scale(x, k):
    return x * k


def wave(x):
    return jnp.stack([jnp.sin(x[:, 0]), jnp.cos(x[:, 1]), jnp.exp(-x[:, 2] * x[:, 2])], -1)


def pull(x):
    d = jnp.roll(x, -1, 0) - x
    return d / length(d) * (length(d) - 0.5)


def smooth(x):
    d = x - x[:, None]
    return jnp.exp(-(d * d).sum(-1)) @ x


def power(x, steps):
    return jax.lax.fori_loop(0, steps, lambda _, p: p * x + x * 0.5, x)


def clip(x):
    return jnp.where(length(x) > 1.0, x / length(x), x)


def turn(x):
    half = 0.5 * x[:, :1]
    axis = jnp.sin(half) * jnp.array([0.0, 1.0, 0.0])
    return x + 2.0 * jnp.cross(axis, jnp.cross(axis, x) + jnp.cos(half) * x)


def stretch(x):
    A = x[:, :, None] * x[:, None] + jnp.eye(3)
    return jnp.einsum("nij,nj->ni", jnp.linalg.inv(A), x)


def spread(x):
    return x + jnp.roll(x, 3, 0) * 0.5


def energy(x):
    return (x * x).sum()


def loss(x):
    x = power(smooth(pull(wave(scale(x, 0.3)))), 3)
    return energy(spread(stretch(turn(clip(x)))))


def main() -> None:
    points = np.sin(np.arange(48, dtype=np.float32)).reshape(16, 3)
    np.savetxt(sys.stdout, np.asarray(jax.jit(jax.grad(loss))(points)))


main()
