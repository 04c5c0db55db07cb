"""One kernel on tensors without arrays and a tape in between: the launch that hand-written code would do.

Only where the kernel writes nothing but its outputs, and its adjoint reads nothing but its inputs. `launch_direct`
gives None in every other case, also where something is wrong: the way over arrays then works, or says what it is.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.autograd.function import _SingleLevelFunction

from .. import _native
from .. import types as t
from ..codegen import SPECIAL
from ..config import config
from ..errors import KernelError, Overwritten
from ..runtime import Kernel, zeros
from ..runtime.kernels import Plan
from ..runtime.launches import _dims as known_dims
from ..runtime.launches import apply_settings, check_dims, grid, prepare
from ..runtime.memory import PACKERS
from ..runtime.recording import open_tapes
from ..runtime.reports import report
from ..structs import kept
from .calls import ELEMENTS, wants_graph
from .sharing import is_seen, memory_of

Known = dict[Any, "Direct | None"]
"""The kinds of launches that an operation has seen; None for those that go over arrays."""
_DTYPES = {element: dtype for dtype, element in ELEMENTS.items()}
_MANY = 1024


def launch_direct(
    kernel: Kernel, dim: Any, args: Sequence[Any], shapes: Sequence[tuple[Any, Any]], known: Known, again: Any = None
) -> Sequence[torch.Tensor] | None:
    """The outputs of a launch as tensors; None if it has to go over arrays. `again` differentiates its reverse sweep;
    without it torch does not get to know of the launch."""
    direct = find_direct(kernel, args, len(shapes), known)
    if direct is None:
        return None
    try:
        if again is not None and wants_graph(args):
            made: Sequence[torch.Tensor] = _Operation.apply(again, direct, dim, shapes, *args)  # type: ignore[attr-defined]
            return made
        return direct.forward(*direct.grid(dim), args, shapes)
    except Unfit:
        return None


def find_direct(kernel: Kernel, args: Sequence[Any], outputs: int, known: Known) -> Direct | None:
    """The direct launch for arguments of this kind, if there is one."""
    if open_tapes:
        return None
    kinds = [(a.dtype if a.is_cpu else a.device) if isinstance(a, torch.Tensor) else a.__class__ for a in args]
    key = (outputs, config._generation, *kinds)
    direct = known.get(key)
    if direct is None or direct.plan.stale():
        if direct is None and key in known:
            return None
        direct = known[key] = _make(kernel, args, outputs)
    return direct


class Unfit(Exception):
    """The arguments are not those of a direct launch."""


# -- kinds of launches
def _make(kernel: Kernel, args: Sequence[Any], outputs: int) -> Direct | None:
    params, n = list(kernel.params.values()), len(args)
    if not outputs or n + outputs != len(params):
        return None
    try:
        real = kernel.precision([*args, *([None] * outputs)])
        variant = kernel.variant(real)
    except KernelError:
        return None
    kinds = [_kind(t.resolve(p, real)) for p in params]
    for a, kind in zip(args, kinds, strict=False):
        if isinstance(a, torch.Tensor):
            if kind is None or a.dtype != kind.dtype or not a.is_cpu:
                return None
        elif kind is not None or a.__class__ not in (float, int, bool):
            return None
    if None in kinds[n:] or variant.records or any(i < n for i in variant.written):
        return None
    apply_settings()
    like = [a if kind is None else zeros((1,) * kind.ndim) for kind, a in zip(kinds, [*args, *([0] * outputs)])]
    plan = kernel.make_plan(variant, like)
    return Direct(plan, kinds, n) if plan.plain else None


def _kind(param: t.Type) -> _Kind | None:
    if not isinstance(param, t.ArrayType) or isinstance(param.element, t.Struct):
        return None
    scalar = t.leaves(param.element)[0]
    trailing = t.element_dtype(param.element)[1]
    return _Kind(_DTYPES[scalar], param.ndim, trailing, scalar.size, scalar.numpy) if scalar in _DTYPES else None


class _Kind(NamedTuple):
    """What a tensor must be for an array parameter."""

    dtype: torch.dtype
    ndim: int
    trailing: tuple[int, ...]
    itemsize: int
    numpy: np.dtype[Any]

    def zeros(self, shape: tuple[int, ...]) -> torch.Tensor:
        # torch takes longer for small ones, and writes large ones, where NumPy gets zeroed pages from the system.
        return torch.from_numpy(np.zeros(shape, self.numpy))

    def fits(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == self.ndim + len(self.trailing) and shape[self.ndim :] == self.trailing

    def address(self, tensor: torch.Tensor) -> bytes:
        """The first word of contiguous memory in an argument block."""
        at = tensor.data_ptr()
        if at == 0 and tensor.numel():
            memory_of(tensor)  # its storage was freed: this says so
        return at.to_bytes(8, "little")


_NOWHERE = bytes(8)
"""The address of what a kernel does not touch."""


@lru_cache(maxsize=4096)
def _rest(shape: tuple[int, ...], ndim: int, itemsize: int, special: int = 0) -> bytes:
    """The words of contiguous memory that follow the two addresses."""
    strides, step = [], itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    strides = strides[::-1][:ndim]
    return PACKERS[ndim](0, 0, 0, special, 0, *shape[:ndim], *strides, *strides)[16:]


class Direct:
    """A kind of launch: what is known before pointers and sizes are. `kinds` has None for values."""

    def __init__(self, plan: Plan, kinds: list[_Kind | None], inputs: int):
        self.plan, self.kinds, self.inputs = plan, kinds, inputs
        self.adjoints: dict[frozenset[int], _Adjoint] = {}
        self.asked: dict[tuple[bool, ...], _Adjoint] = {}
        """Adjoints by the flags of torch."""
        self.types = tuple(plan.kernel.params.values())

    def grid(self, dim: Any) -> tuple[int, bytes]:
        """The number of threads, and the first words of the argument block."""
        plan = self.plan
        if dim.__class__ is int and plan.dims <= 1 and not plan.block and dim in known_dims:
            return known_dims[dim]
        try:
            check_dims(plan, dim)
            return grid(dim, plan.kernel)
        except (KernelError, TypeError):
            raise Unfit from None

    def forward(
        self, total: int, head: bytes, args: Sequence[Any], shapes: Sequence[tuple[Any, Any]]
    ) -> list[torch.Tensor]:  # fmt: skip
        plan, words, kept = self.plan, [head], []
        try:
            for a, kind, pack in zip(args, self.kinds, plan.packers, strict=False):
                if kind is not None:
                    shape = a.shape
                    a = dense(a, kind, shape)
                    kept.append(a)
                    words += (kind.address(a), _NOWHERE, _rest(shape, kind.ndim, kind.itemsize))
                elif pack is not None:
                    words.append(pack(a))
        except (KernelError, TypeError, struct.error):
            raise Unfit from None
        outputs = []
        for kind, (size, dtype) in zip(self.kinds[self.inputs :], shapes, strict=True):
            assert kind is not None
            full = _full(kind, size, dtype)
            made = kind.zeros(full)
            outputs.append(made)
            words += (kind.address(made), _NOWHERE, _rest(full, kind.ndim, kind.itemsize))
        binary = plan.binaries[total >= plan.width] or prepare(plan, total)
        _check(binary, total)
        self.run(binary, words, total)
        return outputs

    def full(self, shapes: Sequence[tuple[Any, Any]]) -> list[tuple[int, ...]]:
        """The shapes of the tensors of the outputs."""
        kinds = self.kinds[self.inputs :]
        return [_full(kind, *given) for kind, given in zip(kinds, shapes, strict=True) if kind is not None]

    def check(self, args: Sequence[Any]) -> None:
        """Raise `Unfit` if a direct launch cannot run with these tensors."""
        for a, kind in zip(args, self.kinds, strict=False):
            if kind is not None and not kind.fits(a.shape):
                raise Unfit

    def adjoint(self, seeds: frozenset[int]) -> _Adjoint:
        found = self.adjoints.get(seeds)
        if found is None:
            found = self.adjoints[seeds] = _Adjoint(self.plan, seeds, self.inputs)
        if not found.fits:
            raise Unfit
        return found

    def pull(
        self, head: bytes, total: int, dim: Any, adjoint: _Adjoint, args: Sequence[Any],
        saved: Mapping[int, torch.Tensor], shapes: Sequence[Any], grads: Sequence[torch.Tensor | None],
    ) -> list[torch.Tensor | None]:  # fmt: skip
        """The gradients of the arguments that the adjoint is for. `args` has the shapes of tensors, `saved` those that
        are read. Nobody looks at these operations: gradients of gradients are made elsewhere."""
        active, values, seeds, binary = adjoint.active, adjoint.values, adjoint.seeds, adjoint.binary(total)
        grid = (dim,) if dim.__class__ is int else tuple(dim)
        results: list[torch.Tensor | None] = []
        words, kept = [head], []
        for i, (a, kind, pack) in enumerate(zip(args, self.kinds, self.plan.packers, strict=False)):
            if kind is None:
                assert pack is not None
                results.append(None)
                words.append(pack(a))
                continue
            if i in values:
                value = dense(saved[i], kind, a)
                kept.append(value)
                words.append(kind.address(value))
            else:
                words.append(_NOWHERE)
            if i in seeds:
                # Where each thread writes its own element, all of it is written, and nothing has to be cleared.
                special = i in binary.first and a[: kind.ndim] == grid
                grad = torch.empty(a, dtype=kind.dtype) if special else kind.zeros(a)
                results.append(grad)
                words += (kind.address(grad), _rest(a, kind.ndim, kind.itemsize, SPECIAL if special else 0))
            else:
                results.append(None)
                words += (_NOWHERE, _rest(a, kind.ndim, kind.itemsize))
        for i, (shape, given) in enumerate(zip(shapes, grads, strict=True), self.inputs):
            kind, special = self.kinds[i], False
            assert kind is not None
            if i not in active:
                words += (_NOWHERE, _NOWHERE, _rest(shape, kind.ndim, kind.itemsize))
                continue
            if given is None:
                weights = kind.zeros(shape)
            elif i in binary.taken and shape[: kind.ndim] == grid and _is_plain(given):
                special, weights = True, given  # only read
            else:
                # The adjoint clears what it has passed on: never the caller's own.
                weights = given.clone(memory_format=torch.contiguous_format)
            kept.append(weights)
            words += (_NOWHERE, kind.address(weights))
            words.append(_rest(shape, kind.ndim, kind.itemsize, SPECIAL if special else 0))
        self.run(binary, words, total)
        return results

    def run(self, binary: Any, words: list[bytes], total: int) -> None:
        failure = _native.launch(binary.entry, b"".join(words), total, binary.parallel)
        if failure is not None or binary.prints:
            report(binary.code, failure, self.plan.kernel.name)


class _Adjoint:
    """The adjoint for a set of arguments: what carries a gradient, whose values it reads, its machine code."""

    def __init__(self, plan: Plan, seeds: frozenset[int], inputs: int):
        self.plan, self.seeds = plan, seeds
        self.active, values, finals = plan.variant.adjoint_reads(seeds)
        self.values = sorted(values)
        self.fits = not finals and all(i < inputs for i in values)
        self.width = plan.variant.width("adjoint", seeds)
        self.binaries: list[Any] = [None, None]

    def binary(self, total: int) -> Any:
        fills = total >= self.width
        if self.binaries[fills] is None:
            plan, seeds = self.plan, self.seeds
            if plan.variant.served(seeds, plan.contiguous, total) != seeds:
                raise Unfit  # an adjoint that brings more than was asked for runs over arrays
            (self.binaries[fills],) = plan.variant.binaries([("adjoint", seeds)], plan.contiguous, total)
        binary = self.binaries[fills]
        _check(binary, total)
        return binary


def _check(binary: Any, total: int) -> None:
    if total >= _MANY and (binary.strips or binary.rows):
        raise Unfit  # sums of many threads over shared elements are run in strips, over arrays


def dense(tensor: torch.Tensor, kind: _Kind, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor whose elements lie side by side: itself, or a copy."""
    if not kind.fits(shape) or not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_neg():
        raise Unfit
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether the memory of a tensor on the CPU is its content as it is."""
    return tensor.layout is torch.strided and tensor.is_cpu and not tensor.is_neg() and tensor.is_contiguous()


def _full(kind: _Kind, shape: Any, dtype: Any) -> tuple[int, ...]:
    """The shape of the tensor of an output."""
    sizes = (shape,) if shape.__class__ is int else tuple(shape) if isinstance(shape, (tuple, list)) else ()
    if dtype is not None or len(sizes) != kind.ndim or any(n.__class__ is not int or n < 0 for n in sizes):
        raise Unfit
    return sizes + kind.trailing


# -- torch's graph
class _Operation(_SingleLevelFunction):
    """A direct launch as a node of torch's graph. What it saves are tensors: torch keeps, checks and frees them.

    It is never called inside of a transform, so that it need not ask, as torch.autograd.Function does.
    """

    @staticmethod
    def forward(ctx: Any, again: Any, direct: Direct, dim: Any, shapes: Sequence[tuple[Any, Any]], *args: Any) -> Any:
        asked = ctx.needs_input_grad
        adjoint = direct.asked.get(asked)
        if adjoint is None:
            adjoint = direct.adjoint(frozenset(i for i, wants in enumerate(asked[4:]) if wants))
            direct.asked[asked] = adjoint
        total, head = direct.grid(dim)
        adjoint.binary(total)
        outputs = direct.forward(total, head, args, shapes)
        if len(outputs) != 1 or direct.inputs not in adjoint.active:
            active = adjoint.active
            constant = [x for i, x in enumerate(outputs, direct.inputs) if i not in active]
            if constant:
                ctx.mark_non_differentiable(*constant)
            ctx.set_materialize_grads(False)
        ctx.save_for_backward(*[args[i] for i in adjoint.values])
        known = [a.shape if of is not None else kept(kind, a)
                 for a, of, kind in zip(args, direct.kinds, direct.types, strict=False)]  # fmt: skip
        ctx.call = (again, direct, adjoint, dim, total, head, known, [x.shape for x in outputs])
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        again, direct, adjoint, dim, total, head, args, shapes = ctx.call
        saved = dict(zip(adjoint.values, _unpack(ctx), strict=True))
        if torch.is_grad_enabled() or is_seen(grads):
            return (None, None, None, None, *again(Called(*ctx.call), saved, grads))
        return (None, None, None, None, *direct.pull(head, total, dim, adjoint, args, saved, shapes, grads))


class Called(NamedTuple):
    """What a node keeps of its call beside tensors. `args` has the shapes of these, `shapes` those of the outputs."""

    again: Any
    direct: Direct
    adjoint: _Adjoint
    dim: Any
    total: int
    head: bytes
    args: list[Any]
    shapes: list[Any]


def _unpack(ctx: Any) -> Any:
    try:
        return ctx.saved_tensors
    except RuntimeError as error:
        if "inplace" not in str(error):
            raise
        name = ctx.call[1].plan.kernel.name
        raise Overwritten(f"{name}: an argument was changed in place, but the reverse sweep needs it",
                          advice="change a copy: x = x.clone()") from error  # fmt: skip
