"""Kernels as operations of JAX. Imported when `kc.jax` is asked for: kernelc itself needs no JAX.

    square = kc.jax.op(kernel, dim=lambda x: len(x), outputs=[lambda x: len(x)])
    slope = jax.jit(jax.grad(lambda x: square(x).sum()))(x)

XLA calls the compiled kernel itself, by its foreign function interface, from its own threads and without Python.
"""

from .ops import op

__all__ = ["op"]
