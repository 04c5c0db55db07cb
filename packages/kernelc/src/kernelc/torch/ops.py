"""One kernel as an operation of autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
import torch

from .. import types as t
from ..errors import WrongArity, WrongDtype, WrongUse
from ..runtime import Array, Kernel, launch, zeros
from ..structs import gathered, spread
from .calls import ELEMENTS, apply
from .direct import Known, launch_direct


def op(kernel: Kernel, dim: Any, outputs: Sequence[Any] | Callable[..., Any]) -> Callable[..., Any]:
    """Make one kernel an operation of autograd. Its last parameters are the outputs, and start as zeros.

    dim: an int, a tuple, or a function of the tensors.
    outputs: for each output its shape or (shape, dtype); the list, or an entry of it, may be a function of the tensors.
    """
    if not isinstance(kernel, Kernel):
        raise WrongUse(f"kc.torch.op wraps a kernel, not {kernel!r}", advice="functions: kc.torch.function(fn)")

    known: Known = {}

    def call(*args: Any) -> Any:
        grid = dim(*args) if callable(dim) else dim
        specs = outputs(*args) if callable(outputs) else outputs
        shapes = [_shape_and_dtype(s(*args) if callable(s) else s) for s in specs]
        flat = _members(kernel, args)
        made = launch_direct(kernel, grid, flat, shapes, known)
        if made is not None:
            return made

        def run(*members: Any) -> Any:
            made = _outputs(kernel, members, shapes)
            left = iter(members)
            whole = [gathered(kind, a, left) for kind, a in zip(kernel.declared.values(), args, strict=False)]
            launch(kernel, grid, whole if kernel.bundles else members, made)
            return made[0] if len(made) == 1 else tuple(made)

        run.__name__ = kernel.name
        return apply(run, flat, {})

    return wraps(kernel)(call)


def _members(kernel: Kernel, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with bundles as their members: torch sees tensors."""
    if not kernel.bundles:
        return args
    found: list[Any] = []
    for (name, kind), a in zip(kernel.declared.items(), args, strict=False):
        kernel.check_bundle(name, kind, a)
        found.extend(value for _, value in spread(name, kind, a))
    return tuple(found)


def _shape_and_dtype(spec: Any) -> tuple[Any, Any]:
    if (
        isinstance(spec, (tuple, list))
        and len(spec) == 2
        and isinstance(spec[1], (type, t.Type, torch.dtype, np.dtype))
    ):
        shape, dtype = spec
        return shape, ELEMENTS.get(dtype, dtype) if isinstance(dtype, torch.dtype) else dtype
    return spec, None


def _outputs(kernel: Kernel, args: Sequence[Any], shapes: Sequence[tuple[Any, Any]]) -> list[Array]:
    """Zeros for the outputs: element types by the kernel's annotations, in the precision of the inputs."""
    params = list(kernel.params.items())
    if not shapes:
        raise WrongArity(f"kc.torch.op({kernel.name}) has no outputs", advice="say their shapes: outputs=[shape]")
    if len(args) + len(shapes) != len(params):
        names, given = ", ".join(kernel.params), f"{len(args)} and {len(shapes)} outputs"
        raise WrongArity(f"{kernel.name} takes {len(params)} arguments ({names}), but got {given}")
    real = kernel.precision([*args, *([None] * len(shapes))])
    device = "cuda" if any(isinstance(a, Array) and a.device == "cuda" for a in args) else None
    made = []
    for (name, kind), (shape, dtype) in zip(params[len(args) :], shapes, strict=True):
        if not isinstance(kind, t.ArrayType):
            raise WrongDtype(f"{kernel.name}: output {name!r} is {kind!r}, not an array")
        made.append(zeros(shape, kind.element if dtype is None else dtype, real=real, device=device))
    return made
