"""One kernel as an operation of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import types as t
from ..config import config
from ..errors import WrongArity, WrongUse, public
from ..runtime import Kernel
from .calls import Call
from .derivatives import launch


@public
def op(kernel: Kernel, dim: Any, outputs: Sequence[Any] | Callable[..., Any]) -> Operation:
    """Make one kernel an operation of JAX. Its last parameters are the outputs, and start as zeros.

    dim: an int, a tuple, or a function of the arrays.
    outputs: for each output its shape or (shape, dtype); the list, or an entry of it, may be a function of the arrays.
    """
    if not isinstance(kernel, Kernel):
        raise WrongUse(f"kc.jax.op wraps a kernel, not {kernel!r}", advice="decorate the function with @kc.kernel")
    if kernel.bundles:
        raise WrongUse(f"{kernel.name} takes bundles, which kc.jax.op does not", advice="let it take arrays")
    return Operation(kernel, dim, outputs)


class Operation:
    """A kernel that takes arrays of JAX and returns arrays. It may be jitted, differentiated and batched."""

    def __init__(self, kernel: Kernel, dim: Any, outputs: Sequence[Any] | Callable[..., Any]):
        self.kernel, self.dim, self.outputs = kernel, dim, outputs
        self._calls: dict[Any, Call] = {}
        update_wrapper(self, kernel)

    def __repr__(self) -> str:
        return f"<kc.jax.op {self.kernel.name}>"

    def __reduce__(self) -> Any:
        return op, (self.kernel, self.dim, self.outputs)

    def __call__(self, *args: Any) -> Any:
        kernel = self.kernel
        kinds = [*kernel.params.values(), *([None] * len(args))]
        args = tuple(_argument(a, kind) for a, kind in zip(args, kinds, strict=False))
        grid = self.dim(*args) if callable(self.dim) else self.dim
        specs = self.outputs(*args) if callable(self.outputs) else self.outputs
        shapes = [_shape_and_dtype(s(*args) if callable(s) else s) for s in specs]
        made = launch(self._call(args, _tuple(grid), shapes), *(a for a in args if isinstance(a, jax.Array)))
        return made[0] if len(made) == 1 else tuple(made)

    def _call(self, args: Sequence[Any], grid: tuple[int, ...], shapes: Sequence[tuple[Any, Any]]) -> Call:
        kernel = self.kernel
        if not shapes:
            raise WrongArity(f"kc.jax.op({kernel.name}) has no outputs", advice="say their shapes: outputs=[shape]")
        if len(args) + len(shapes) != len(kernel.params):
            names, found = ", ".join(kernel.params), f"{len(args)} and {len(shapes)} outputs"
            raise WrongArity(f"{kernel.name} takes {len(kernel.params)} arguments ({names}), but got {found}")
        given = [jax.ShapeDtypeStruct(a.shape, a.dtype) if isinstance(a, jax.Array) else a for a in args]
        key = (config.generation, tuple(map(_static, given)), grid, tuple(shapes))
        call = self._calls.get(key)
        if call is None or call.variant.changed():
            boxed = [n for n, a in zip(kernel.params, args, strict=False) if isinstance(a, jax.Array)]
            call = Call(kernel, given, tuple(n for n in boxed if n in kernel.values), grid, shapes)
            self._calls[key] = call
        return call


def _argument(a: Any, kind: t.Type | None) -> Any:
    """Arrays as those of JAX; numbers, vectors and structs as they are: they are part of the program."""
    return jnp.asarray(a) if isinstance(kind, t.ArrayType) and not isinstance(a, jax.Array) else a


def _static(given: Any) -> Any:
    """What an argument is for the program: 1, 1.0 and True are three things."""
    if isinstance(given, jax.ShapeDtypeStruct):
        return given.shape, np.dtype(given.dtype)
    if isinstance(given, (list, tuple, np.ndarray)):
        found = np.asarray(given)
        return found.shape, found.dtype.str, found.tobytes()
    return type(given), repr(given)


def _shape_and_dtype(spec: Any) -> tuple[Any, Any]:
    if isinstance(spec, (tuple, list)) and len(spec) == 2 and isinstance(spec[1], (type, t.Type, np.dtype)):
        return _tuple(spec[0]), spec[1]
    return _tuple(spec), None


def _tuple(sizes: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in sizes) if isinstance(sizes, (tuple, list)) else (int(sizes),)
