"""One kernel as an operation of torch: at once in plain calls, as an operator of `torch.library` everywhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, update_wrapper
from itertools import count
from typing import Any

import numpy as np
import torch
from torch.library import CustomOpDef  # type: ignore[attr-defined]

from .. import types as t
from ..errors import WrongUse, public
from ..runtime import Kernel, launch
from ..structs import gathered, spread
from .calls import ELEMENTS, apply
from .direct import Called, Known, launch_direct
from .library import LIBRARY, SAFE, pull, push
from .sharing import is_seen
from .specs import outputs_of, spec_of, token

_numbers = count(1)


@public
def op(kernel: Kernel, dim: Any, outputs: Sequence[Any] | Callable[..., Any]) -> Operation:
    """Make one kernel an operation of torch. Its last parameters are the outputs, and start as zeros.

    dim: an int, a tuple, or a function of the tensors.
    outputs: for each output its shape or (shape, dtype); the list, or an entry of it, may be a function of the tensors.
    """
    if not isinstance(kernel, Kernel):
        raise WrongUse(f"kc.torch.op wraps a kernel, not {kernel!r}", advice="functions: kc.torch.function(fn)")
    return Operation(kernel, dim, outputs)


class Operation(CustomOpDef):
    """A kernel that takes tensors and returns tensors. To torch it is one of its custom operators."""

    def __init__(self, kernel: Kernel, dim: Any, outputs: Sequence[Any] | Callable[..., Any]):
        # Not that of torch: an operator is registered when somebody asks for it. Most never do.
        self.kernel, self.dim, self.outputs = kernel, dim, outputs
        self._known: Known = {}
        update_wrapper(self, kernel)

    def __repr__(self) -> str:
        return f"<kc.torch.op {self.kernel.name}>"

    def __reduce__(self) -> Any:
        return op, (self.kernel, self.dim, self.outputs)

    def __deepcopy__(self, memo: Any) -> Operation:
        return self

    def __call__(self, *args: Any) -> Any:
        grid, shapes = self._sizes(args)
        if torch.compiler.is_compiling():
            return self._through_library(args, grid, shapes)
        flat = _members(self.kernel, args)
        if is_seen(flat):
            return self._through_library(flat, grid, shapes)
        made = launch_direct(self.kernel, grid, flat, shapes, self._known, self._again_direct)
        if made is not None:
            return made[0] if len(made) == 1 else made

        def again(tensors: Sequence[Any], wanted: Sequence[int], grads: Sequence[Any]) -> list[Any]:
            return self._again(tensors, grid, shapes, wanted, grads)

        return apply(self._over_arrays(args, grid, shapes), flat, {}, again)

    def _sizes(self, args: Sequence[Any]) -> tuple[Any, list[tuple[Any, Any]]]:
        """The grid of a launch, and the shape and dtype of each output."""
        grid = self.dim(*args) if callable(self.dim) else self.dim
        outputs = self.outputs(*args) if callable(self.outputs) else self.outputs
        return grid, [_shape_and_dtype(s(*args) if callable(s) else s) for s in outputs]

    def _over_arrays(self, args: Sequence[Any], grid: Any, shapes: Sequence[tuple[Any, Any]]) -> Callable[..., Any]:
        kernel = self.kernel

        def run(*members: Any) -> Any:
            made = outputs_of(kernel, members, shapes)
            left = iter(members)
            whole = [gathered(kind, a, left) for kind, a in zip(kernel.declared.values(), args, strict=False)]
            launch(kernel, grid, whole if kernel.bundles else members, made)
            return made[0] if len(made) == 1 else tuple(made)

        run.__name__ = kernel.name
        return run

    # -- as an operator
    def _through_library(self, args: Sequence[Any], grid: Any, shapes: Sequence[tuple[Any, Any]]) -> Any:
        """What torch's compiler and transforms look at: all of it is plain to them."""
        sizes = [_tuple(s) for s, _ in shapes]
        given = tuple([isinstance(a, torch.Tensor) for a in args])
        name, leaves = self._spec(given, tuple([len(s) for s in sizes]), tuple([d for _, d in shapes]))
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        ints: list[Any] = []
        floats: list[Any] = []
        for a, kinds in zip(args, leaves):
            if kinds:
                values = [a] if len(kinds) == 1 else _numbers_in(a)
                for value, kind in zip(values, kinds):
                    if kind == "f":
                        floats.append(float(value))
                    else:
                        ints.append((1 if value else 0) if kind == "b" else value)
        made = push(name, tensors, ints, floats, list(_tuple(grid)), [n for size in sizes for n in size])
        return made[0] if len(made) == 1 else tuple(made)

    def _spec(self, given: tuple[bool, ...], ranks: tuple[int, ...], dtypes: tuple[Any, ...]) -> tuple[str, Any]:
        """The name of the spec, and of each argument that is not a tensor the kinds of its numbers."""
        spec = spec_of(self.kernel, given, ranks, dtypes)
        kinds = ["" if i in spec.tensors else "".join(s.kind for s in t.leaves(k))
                 for i, k in enumerate(spec.kinds[: spec.inputs])]  # fmt: skip
        return spec.name, tuple(kinds)

    # Asked once while a graph is traced; what it says does not change.
    _spec._dynamo_marked_constant = True  # type: ignore[attr-defined]

    @cached_property
    def _opoverload(self) -> Any:  # type: ignore[override]
        """The operator by itself, with the kernel's own parameters; it is made of kernelc::push."""
        if callable(self.outputs):
            raise WrongUse(f"how many outputs {self.kernel.name} has is not known before it is called",
                           advice="give a list, outputs=[…]; its entries may be functions of the tensors")  # fmt: skip
        inputs = list(self.kernel.declared.items())[: -len(self.outputs) or None]
        # A name of its own: what a compiled graph found under it in another process would be something else.
        name = f"{self.kernel.name}_{next(_numbers)}_{token}"
        taken = ", ".join(f"{_schema(self.kernel, n, kind)} {n}" for n, kind in inputs)
        given = ", ".join(["Tensor"] * len(self.outputs))
        LIBRARY.define(f"{name}({taken}) -> ({given})", tags=SAFE)
        LIBRARY.impl(name, self._call_as_operator, "CompositeImplicitAutograd")
        return getattr(torch.ops.kernelc, name).default

    def _call_as_operator(self, *args: Any) -> Any:
        return self._through_library(args, *self._sizes(args))

    # -- a reverse sweep that has derivatives
    def _again_direct(self, call: Called, saved: Mapping[int, torch.Tensor], grads: Sequence[Any]) -> list[Any]:
        kinds = call.direct.kinds
        # What the adjoint does not read may be anything: nothing was kept of it.
        args = [a if kind is None else saved[i] if i in saved else torch.zeros((), dtype=kind.dtype).expand(a)
                for i, (a, kind) in enumerate(zip(call.args, kinds, strict=False))]  # fmt: skip
        made = zip(call.shapes, kinds[call.direct.inputs :], strict=True)
        shapes = [(tuple(s)[: kind.ndim], None) for s, kind in made if kind is not None]
        return self._again(args, call.dim, shapes, sorted(call.adjoint.seeds), grads)

    def _again(
        self, args: Sequence[Any], grid: Any, shapes: Sequence[tuple[Any, Any]], wanted: Sequence[int],
        grads: Sequence[Any],
    ) -> list[Any]:  # fmt: skip
        """The gradients of the arguments `wanted` as an operation that torch can differentiate."""
        sizes = [_tuple(s) for s, _ in shapes]
        given = tuple([isinstance(a, torch.Tensor) for a in args])
        spec = spec_of(self.kernel, given, tuple([len(s) for s in sizes]), tuple([d for _, d in shapes]))
        tensors, flat = [args[i] for i in spec.tensors], [n for size in sizes for n in size]
        made = spec.outputs(tensors, flat)
        weights = [tensors[0].new_zeros(made[i][0], dtype=made[i][1]) if grads[i] is None else grads[i]
                   for i in spec.reals]  # fmt: skip
        places = [spec.tensors.index(i) for i in wanted]
        found = pull(spec.name, tensors, weights, *spec.numbers(args), list(_tuple(grid)), flat, places)
        by_place = dict(zip(wanted, found, strict=True))
        return [by_place.get(i) for i in range(len(args))]


def _schema(kernel: Kernel, name: str, kind: t.Type) -> str:
    """The type of a parameter to torch."""
    if isinstance(kind, t.ArrayType):
        return "Tensor"
    if isinstance(kind, t.Scalar):
        return "float" if kind.is_float else "bool" if kind is t.BOOL else "SymInt"
    if isinstance(kind, t.Composite):
        return "float[]" if kind.scalar.is_float else "SymInt[]"
    raise WrongUse(f"{kernel.name}: {name!r} is {kind!r}, which an operator of torch.library does not take",
                   advice="pass its members as arguments of their own")  # fmt: skip


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


def _tuple(sizes: Any) -> tuple[Any, ...]:
    return tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)


def _numbers_in(value: Any) -> list[float]:
    """The components of a vector or matrix."""
    if isinstance(value, (tuple, list)):
        return [x for row in value for x in (_numbers_in(row) if isinstance(row, (tuple, list)) else [row])]
    return [x.item() for x in np.asarray(value).reshape(-1)]
