"""What the operators of `torch.library` run: a kernel and how its arguments come, under a name that a graph can hold.

An operator knows tensors, whole numbers and reals. `Spec` puts them in the order of the kernel's parameters, and runs
the kernel (`push`) or its adjoint (`pull`) on memory that is there. `lift` is forward mode as a spec of its own: the
derivative of either operator is made of the same two operators on a lifted spec, and so is the derivative of that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import torch

from .. import types as t
from ..adjoint import analyse
from ..errors import WrongArity, WrongDtype, WrongUse
from ..runtime import Array, Kernel, launch, zeros
from ..runtime.kernels import _flat
from ..runtime.lifted import Flat, Lifted
from .calls import ELEMENTS, Call
from .direct import Known, Unfit, find_direct, launch_direct
from .kept import CallTape
from .sharing import in_step


class _Specs(dict[str, "Spec"]):
    def __missing__(self, name: str) -> Spec:
        raise WrongUse(f"this graph holds a kernel of another process, {name.partition('-')[0]}",
                       advice="trace or compile it again here: kernels do not travel with graphs")  # fmt: skip


specs = _Specs()
"""By name, for as long as the process lives: a compiled graph knows no more of a spec."""
DTYPES = {element: dtype for dtype, element in ELEMENTS.items()}
# No graph that another process has compiled and cached may find a kernel of this one under the same name.
token, _numbers = os.urandom(6).hex(), count(1)


def spec_of(kernel: Kernel, given: tuple[bool, ...], ranks: tuple[int, ...], dtypes: tuple[Any, ...]) -> Spec:
    """The spec for a kernel whose inputs are tensors where `given` says so. The same one for the same question."""
    known = kernel.__dict__.setdefault("_specs", {})
    key = (given, ranks, dtypes)
    if key not in known:
        if len(given) + len(ranks) != len(kernel.params):
            many = f"{len(kernel.params)} arguments ({', '.join(kernel.params)})"
            raise WrongArity(f"{kernel.name} takes {many}, but got {len(given)} and {len(ranks)} outputs")
        flat = Flat(kernel) if kernel.bundles else kernel
        for (n, kind), box in zip(flat.params.items(), given, strict=False):
            if isinstance(kind, t.ArrayType) and not box:
                raise WrongUse(f"{kernel.name}: {n!r} is not a tensor, but torch transforms or compiles the call",
                               advice="pass a tensor; members that may be absent have to be there")  # fmt: skip
        names = [n for n, box in zip(flat.params, given, strict=False) if box and n in flat.values]
        known[key] = Spec(flat, len(given), tuple(names), ranks, dtypes)
    found: Spec = known[key]
    return found


class Spec:
    """A kernel as an operator runs it: how many of its parameters are inputs, and which values come as tensors.

    ranks, dtypes: of each output, how long its shape is, and the dtype that was asked for, or None.
    """

    def __init__(
        self, kernel: Kernel, inputs: int, boxed: tuple[str, ...], ranks: tuple[int, ...], dtypes: tuple[Any, ...]
    ):
        self.kernel, self.inputs, self.boxed, self.ranks, self.dtypes = kernel, inputs, boxed, ranks, dtypes
        params = list(kernel.params.items())
        self.kinds = [kind for _, kind in params]
        self.tensors = [i for i, (n, k) in enumerate(params[:inputs]) if isinstance(k, t.ArrayType) or n in boxed]
        """The positions of the inputs that are tensors."""
        self.name = f"{kernel.name}-{next(_numbers)}-{token}"
        self.reals = [i for i, kind in enumerate(self.kinds[inputs:]) if _is_real(kind)]
        """The outputs that may have a derivative."""
        self.known: Known = {}
        self.lifts: dict[Any, tuple[Any, Spec]] = {}
        for n, kind in params[:inputs]:
            if isinstance(kind, t.Struct):
                raise WrongUse(f"{kernel.name}: {n!r} is a struct, which operators of torch.library do not take",
                               advice="pass its fields as arguments of their own")  # fmt: skip
        specs[self.name] = self

    # -- arguments
    def args(self, tensors: Sequence[Any], ints: Sequence[int], floats: Sequence[float]) -> list[Any]:
        """The inputs of the kernel in their order."""
        arrays, whole, reals = iter(tensors), iter(ints), iter(floats)
        return [next(arrays) if i in self.tensors else self._value(self.kinds[i], whole, reals)
                for i in range(self.inputs)]  # fmt: skip

    def _value(self, kind: t.Type, ints: Iterator[int], floats: Iterator[float]) -> Any:
        leaves = t.leaves(kind)
        found = [next(floats) if s.is_float else bool(next(ints)) if s is t.BOOL else int(next(ints)) for s in leaves]
        return np.array(found).reshape(kind.shape) if isinstance(kind, t.Composite) else found[0]

    def numbers(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Of inputs that are not tensors, the whole numbers and the reals."""
        ints: list[Any] = []
        floats: list[Any] = []
        for i, a in enumerate(args):
            if i not in self.tensors:
                for s, v in zip(t.leaves(self.kinds[i]), _flat(a, self.kinds[i]), strict=True):
                    (floats if s.is_float else ints).append(v)
        return ints, floats

    def real(self, tensors: Sequence[Any]) -> t.Scalar:
        """The precision of a launch with these tensors."""
        small = [_like(x.dtype, max(1, x.ndim)) for x in tensors]
        # Values take the precision of the launch, whatever they are.
        arrays = iter(small)
        args = [next(arrays) if i in self.tensors else None for i in range(self.inputs)]
        return self.kernel.precision([*args, *([None] * len(self.ranks))])

    def shapes(self, flat: Sequence[int]) -> list[tuple[tuple[int, ...], Any]]:
        """The shape and dtype of each output."""
        found, at = [], 0
        for rank, dtype in zip(self.ranks, self.dtypes, strict=True):
            found.append((tuple(flat[at : at + rank]), dtype))
            at += rank
        return found

    def outputs(self, tensors: Sequence[Any], flat: Sequence[int]) -> list[tuple[tuple[int, ...], torch.dtype]]:
        """What the tensors of the outputs will be: sizes and dtype."""
        real, found = self.real(tensors), []
        for kind, (shape, dtype) in zip(self.kinds[self.inputs :], self.shapes(flat), strict=True):
            assert isinstance(kind, t.ArrayType)
            made = zeros((0,) * len(shape), kind.element if dtype is None else dtype, real=real, device="cpu")
            found.append((shape + made._data.shape[len(shape) :], DTYPES[t.leaves(made.element)[0]]))
        return found

    def active(self, tensors: Sequence[Any], seeds: Sequence[int]) -> list[int]:
        """The outputs that depend on the tensors `seeds`."""
        kernel = self.kernel.variant(self.real(tensors), self.boxed).kernel
        arrays = analyse(kernel, [self.tensors[i] for i in seeds]).arrays
        return [i - self.inputs for i in sorted(arrays) if i >= self.inputs]

    # -- forward mode
    def lift(self, tensors: Sequence[Any], seeds: Sequence[int]) -> Spec:
        """This and its derivative in a direction of the tensors `seeds`."""
        real = self.real(tensors)
        variant, key = self.kernel.variant(real, self.boxed), (real, *seeds)
        if key not in self.lifts or self.lifts[key][0] is not variant:
            kernel = Lifted(self.kernel, frozenset(self.tensors[i] for i in seeds), self.inputs, real, self.boxed)
            later = [i - self.inputs for i, _ in kernel.shape.order if i >= self.inputs]
            ranks, dtypes = tuple(self.ranks[i] for i in later), tuple(self.dtypes[i] for i in later)
            self.lifts[key] = variant, Spec(kernel, kernel.inputs, (), ranks, dtypes)
        return self.lifts[key][1]

    def directions(self) -> list[int]:
        """Of a lifted spec: which tensors of the one below have a direction, in the order in which they follow."""
        assert isinstance(self.kernel, Lifted)
        below = [i for i, dotted in self.kernel.shape.order[: self.inputs] if not dotted and self._is_tensor(i)]
        return [below.index(i) for i, dotted in self.kernel.shape.order[: self.inputs] if dotted]

    def _is_tensor(self, i: int) -> bool:
        assert isinstance(self.kernel, Lifted)
        return self.kernel.shape.order.index((i, False)) in self.tensors

    def derivatives(self) -> list[int]:
        """Of a lifted spec: of which outputs of the one below the last outputs are derivatives."""
        assert isinstance(self.kernel, Lifted)
        return [i - self.kernel.of for i, dotted in self.kernel.shape.order[self.inputs :] if dotted]

    # -- running
    def push(
        self, tensors: Sequence[Any], ints: Sequence[int], floats: Sequence[float], dim: Sequence[int],
        flat: Sequence[int],
    ) -> list[torch.Tensor]:  # fmt: skip
        """Launch the kernel."""
        args, shapes = self.args([x.detach() for x in tensors], ints, floats), self.shapes(flat)
        made = launch_direct(self.kernel, tuple(dim), args, shapes, self.known)
        if made is not None:
            return list(made)
        call = Call(self.over_arrays(dim, shapes), (), args, (False,) * len(args))
        with torch.no_grad(), in_step(args):
            return call.run(None)

    def pull(
        self, tensors: Sequence[Any], weights: Sequence[Any], ints: Sequence[int], floats: Sequence[float],
        dim: Sequence[int], flat: Sequence[int], wanted: Sequence[int],
    ) -> list[torch.Tensor]:  # fmt: skip
        """Run the adjoint: the gradients of the tensors `wanted`, where the real outputs have these weights."""
        by_output = dict(zip(self.reals, [w.detach() for w in weights], strict=True))
        weights = [by_output.get(i) for i in range(len(self.ranks))]
        args, shapes = self.args([x.detach() for x in tensors], ints, floats), self.shapes(flat)
        seeds = [self.tensors[i] for i in wanted]
        found = self._pull_direct(tuple(dim), args, shapes, frozenset(seeds), weights)
        if found is None:
            needs = [i in seeds for i in range(len(args))]
            call, tape = Call(self.over_arrays(dim, shapes), (), args, needs), CallTape()
            with torch.no_grad(), in_step(args):
                made = call.run(tape)
                given = [w if tape.leads_to(a) else None for w, a in zip(weights, call.outputs, strict=True)]
                found = call.saved(tape, made).backward(given)
        grads = [found[i] for i in seeds]
        return [torch.zeros_like(tensors[i], memory_format=torch.contiguous_format) if g is None
                else g.reshape(tensors[i].shape) for i, g in zip(wanted, grads, strict=True)]  # fmt: skip

    def _pull_direct(
        self, dim: tuple[int, ...], args: list[Any], shapes: Sequence[tuple[Any, Any]], seeds: frozenset[int],
        weights: Sequence[Any],
    ) -> list[torch.Tensor | None] | None:  # fmt: skip
        direct = find_direct(self.kernel, args, len(shapes), self.known)
        if direct is None:
            return None
        try:
            direct.check(args)
            total, head = direct.grid(dim)
            known = [a.shape if isinstance(a, torch.Tensor) else a for a in args]
            adjoint, saved = direct.adjoint(seeds), dict(enumerate(args))
            return direct.pull(head, total, dim, adjoint, known, saved, direct.full(shapes), weights)
        except Unfit:
            return None

    def over_arrays(self, dim: Sequence[int], shapes: Sequence[tuple[Any, Any]]) -> Any:
        """The launch as a function of arrays."""

        def run(*args: Any) -> Any:
            made = outputs_of(self.kernel, args, shapes)
            launch(self.kernel, tuple(dim), args, made)
            return tuple(made)

        run.__name__ = self.kernel.name
        return run


def outputs_of(kernel: Kernel, args: Sequence[Any], shapes: Sequence[tuple[Any, Any]]) -> list[Array]:
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


def _is_real(kind: t.Type) -> bool:
    return isinstance(kind, t.ArrayType) and any(s.is_float for s in t.leaves(kind.element))


@cache
def _like(dtype: torch.dtype, rank: int) -> Array:
    """A small array that stands for tensors of a dtype."""
    if dtype not in ELEMENTS:
        raise WrongDtype(f"a tensor of {dtype} cannot be used", advice="convert it: .float(), .int()")
    return zeros((1,) * rank, ELEMENTS[dtype], device="cpu")
