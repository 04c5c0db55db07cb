"""The programs in JAX, by `lax` where a loop or a branch depends on values; arrays there cannot be overwritten."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def product(x):
    return lax.fori_loop(0, len(x), lambda i, p: p * x[i], 1.0)


def carried(x):
    return lax.fori_loop(0, 100, lambda k, v: jnp.sin(v) * x[k % 4] + 0.5, x[0])


def halved(x):
    return lax.while_loop(lambda v: v > 0.5, lambda v: v * x[2], 10.0 * x[0])


def broken(x):
    def more(state):
        i, s = state
        return (i < len(x)) & (s <= 2.0)

    _, s = lax.while_loop(more, lambda state: (state[0] + 1, state[1] + x[state[0]] ** 2), (0, 0.0))
    return s * s


def continued(x):
    return lax.fori_loop(0, len(x), lambda i, p: jnp.where(x[i] < 0.8, p, p * x[i]), 1.0)


def returned(x):
    def more(state):
        i, p = state
        return (i < len(x)) & (p <= 6.0)

    _, p = lax.while_loop(more, lambda state: (state[0] + 1, state[1] * (1.0 + x[state[0]])), (0, 1.0))
    return jnp.where(p > 6.0, p * p, p)


def largest(x):
    return lax.fori_loop(0, len(x), lambda i, m: jnp.maximum(m, x[i] * x[i]), -1.0)


def component(x):
    v = jnp.stack([x[0], x[1], 0.0 * x[0]])
    v = v.at[1].set(v[1] * v[0])
    v = v.at[1].set(v[1] * v[1])
    return v[0] + v[1]


def in_place(x):
    y = x
    for _ in range(2):
        y = y.at[:].set(y**2)
    return y.sum()


def scaled(x):
    return jnp.sin(x).at[:].multiply(x).sum()


def stepped(x):
    return lax.fori_loop(0, 10, lambda _, y: jnp.sin(y) * 1.1, x).sum()


def overwritten(x):
    y = x**2
    x = x.at[:].set(10.0)
    return y.sum()


LOOPS = (product, carried, halved, broken, continued, returned, largest)
PROGRAMS = (*LOOPS, component, in_place, scaled, stepped, overwritten)
GRADIENTS = {f.__name__: (lambda values, f=f: np.asarray(jax.grad(f)(jnp.asarray(values)))) for f in PROGRAMS}
