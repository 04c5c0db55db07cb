"""A Python function that launches kernels as one operation of autograd: tensors become arrays, and arrays tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any

import torch
from torch.autograd import forward_ad

from .. import types as t
from ..errors import TapeError, WrongDtype, WrongUse, public
from ..runtime import Array, Kernel
from ..runtime.memory import dense_copy
from ..runtime.recording import current
from ..runtime.storage import Storage
from ..structs import Bundle, gathered
from .kept import CallTape, Guard, Input, Saved, alive, ticket_for, tickets
from .once import once
from .sharing import has_memory, in_step, is_seen, is_there, memory_of, tensor_of

ELEMENTS = {
    torch.float32: t.FLOAT32,
    torch.float64: t.FLOAT64,
    torch.int32: t.INT32,
    torch.int64: t.INT64,
    torch.bool: t.BOOL,
    torch.uint8: t.UINT8,
    torch.int8: t.INT8,
    torch.int16: t.INT16,
} | ({torch.uint16: t.UINT16, torch.uint32: t.UINT32, torch.uint64: t.UINT64} if hasattr(torch, "uint32") else {})


@public
def function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that launches kernels one operation of autograd: it then takes tensors and returns tensors.

    `fn` gets an array for each tensor, everything else as it is, and returns an array or a tuple of arrays. It may
    write to the arrays that it gets: the caller's tensors do not change. Called with arrays, it is `fn` itself.
    """
    if isinstance(fn, Kernel):
        raise WrongUse(f"{fn.name} is a kernel", advice=f"wrap it: kc.torch.op({fn.name}, dim, outputs=[…])")
    if not callable(fn):
        raise WrongUse(f"kc.torch.function wraps a function, not {fn!r}", advice="pass the function, not its result")

    @wraps(fn)
    def call(*args: Any, **named: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():
            return _between_graphs(fn, args, named)
        return apply(fn, args, named)

    return call


def _between_graphs(fn: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A call from compiled code: a graph ends before it, and the next one begins after it."""
    return torch._dynamo.disable(apply)(fn, args, named)  # type: ignore[no-untyped-call]


_between_graphs._torchdynamo_disable = True  # type: ignore[attr-defined]
_between_graphs._torchdynamo_disable_msg = "kc.torch.function runs Python; use kc.torch.op"  # type: ignore[attr-defined]


# -- one call
def apply(fn: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], again: Any = None) -> Any:
    """One call. `again` makes its gradients by operations that have derivatives, where somebody asks for these."""
    everything = (*args, *named.values()) if named else args
    if any(a.__class__ is Bundle for a in everything):
        return _apply_to_members(fn, args, named)
    for a in everything:
        if isinstance(a, (list, tuple, dict)):
            _check_no_tensors(fn, a)
    if any(isinstance(a, Array) for a in everything) and not any(isinstance(a, torch.Tensor) for a in everything):
        return fn(*args, **named)
    graph = wants_graph(everything)
    if not has_memory(everything) or (graph and torch._C._are_functorch_transforms_active()):
        raise WrongUse(f"{_name(fn)} is called by a transform or a tracer of torch: kc.torch.function cannot follow",
                       advice="use kc.torch.op for each of its kernels: they all follow that")  # fmt: skip
    if graph:
        # Inside of it torch computes no gradients: `fn` asks for those of tensors that it captures as its caller does.
        fn = _with_gradients(fn, torch.is_grad_enabled())
        return _Operation.apply(fn, tuple(named), again, *everything)  # type: ignore[no-untyped-call]
    call = Call(_with_gradients(fn, torch.is_grad_enabled()), tuple(named), everything, (False,) * len(everything))
    with torch.no_grad(), in_step(everything):
        return call.result(call.run(None))


def _apply_to_members(fn: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Bundles of tensors: torch sees their members, and `fn` gets bundles of arrays."""
    given = (*args, *named.values())
    kinds = [a._struct if a.__class__ is Bundle else None for a in given]
    flat = [v for a, kind in zip(given, kinds, strict=True) for v in (a._note().flat if kind is not None else (a,))]

    def call(*members: Any) -> Any:
        left = iter(members)
        found = [next(left) if k is None else gathered(k, a, left) for k, a in zip(kinds, given, strict=True)]
        return fn(*found[: len(args)], **dict(zip(named, found[len(args) :], strict=True)))

    call.__name__ = _name(fn)
    return apply(call, tuple(flat), {})


def _with_gradients(fn: Callable[..., Any], enabled: bool) -> Callable[..., Any]:
    @wraps(fn)
    def call(*args: Any, **named: Any) -> Any:
        with torch.set_grad_enabled(enabled), forward_ad._set_fwd_grad_enabled(True):
            return fn(*args, **named)

    return call


def wants_graph(args: Sequence[Any]) -> bool:
    """Whether torch has to know of a call with these arguments."""
    # Dual tensors of forward mode, too: torch says then that it needs a rule.
    if forward_ad._current_level >= 0:
        return True
    if torch.is_grad_enabled():
        for a in args:  # a loop: this runs in every call
            if isinstance(a, torch.Tensor) and a.requires_grad:
                return True
    return False


def _check_no_tensors(fn: Callable[..., Any], inside: Any) -> None:
    """A tensor inside a list would get no gradient."""
    if any(isinstance(x, torch.Tensor) for x in (inside.values() if isinstance(inside, dict) else inside)):
        raise WrongDtype(f"{_name(fn)}: tensors inside a {type(inside).__name__} get no gradient",
                         advice="pass each tensor as an argument of its own")  # fmt: skip


def _name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", fn))


class _Operation(torch.autograd.Function):
    """A call of `fn` as a node of torch's graph."""

    @staticmethod
    def forward(ctx: Any, fn: Callable[..., Any], names: tuple[str, ...], again: Any, *args: Any) -> Any:
        ctx.set_materialize_grads(False)
        call = Call(fn, names, args, ctx.needs_input_grad[3:])
        tape = CallTape()
        with in_step(args):
            tensors = call.run(tape)
        constant = [x for x, a in zip(tensors, call.outputs, strict=True) if not tape.leads_to(a)]
        if constant:
            ctx.mark_non_differentiable(*constant)
        saved = call.saved(tape, tensors)
        if again is not None:
            saved.graph = again, args, [a._version if isinstance(a, torch.Tensor) else 0 for a in args]
        ctx.save_for_backward(ticket_for(saved))
        return call.result(tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (ticket,) = ctx.saved_tensors
        saved = tickets.get(int(ticket))
        if saved is None:
            raise TapeError("what a kernel operation kept for its reverse sweep is gone",
                            advice="hooks on saved tensors may move tensors, but not copy them here")  # fmt: skip
        if saved.graph is not None and (torch.is_grad_enabled() or is_seen(grads)):
            wanted = [i for i, wants in enumerate(ctx.needs_input_grad[3:]) if wants]
            return (None, None, None, *saved.differentiable(wanted, grads))
        if not has_memory(grads):
            raise WrongUse(f"{saved.name}: kc.torch.function goes back for one set of weights, not for a batch of them",
                           advice="leave out vectorize=True or is_grads_batched=True, or use kc.torch.op")  # fmt: skip
        with torch.no_grad(), in_step(grads):
            results = saved.backward(grads)
        error = TapeError("kernel operations have a first derivative only: this differentiates one twice",
                          advice="leave out create_graph=True, or detach the gradient")  # fmt: skip
        return (None, None, None, *once(ctx, results, grads, error))


class Call:
    """Arguments as arrays, arrays as results."""

    __slots__ = ("args", "born", "fn", "inputs", "names", "needs", "outputs", "single")

    def __init__(self, fn: Callable[..., Any], names: tuple[str, ...], args: Sequence[Any], needs: Sequence[bool]):
        self.fn, self.names, self.args, self.needs = fn, names, args, needs
        self.inputs: list[Input | None] = []
        self.outputs: list[Array] = []
        self.single = True

    def run(self, tape: CallTape | None) -> list[torch.Tensor]:
        """Run `fn`, and return its outputs as tensors."""
        self.born = Storage().number
        ranges: list[tuple[int, int, bool]] = []
        self.inputs = [_borrow(a, wants, ranges) if isinstance(a, torch.Tensor) else None
                       for a, wants in zip(self.args, self.needs, strict=True)]  # fmt: skip
        values = [a if i is None else i.array for a, i in zip(self.args, self.inputs, strict=True)]
        cut = len(values) - len(self.names)
        named = dict(zip(self.names, values[cut:], strict=True))
        if tape is None:
            with Guard() if alive and current() is None else nullcontext():
                self._take(self.fn(*values[:cut], **named))
        else:
            with tape:
                self._take(self.fn(*values[:cut], **named))
                tape._touch(self.outputs)
            tape.seal(self.born)
        # The backward function of an operation may need the memory: kc.checkpoint runs steps again in it.
        needed = tape is not None and any(entry.backward is not None for entry in tape.entries)
        given: set[Storage] = set()
        return [self._give(a, given, needed) for a in self.outputs]

    def _take(self, result: Any) -> None:
        self.single = isinstance(result, Array)
        self.outputs = [result] if self.single else list(result) if isinstance(result, (tuple, list)) else []
        if not self.outputs or not all(isinstance(a, Array) for a in self.outputs):
            kinds = [type(r).__name__ for r in (result if isinstance(result, (tuple, list)) else [result])]
            raise WrongDtype(f"{_name(self.fn)} must return an array or a tuple of arrays, not ({', '.join(kinds)})")

    def _give(self, a: Array, given: set[Storage], needed: bool) -> torch.Tensor:
        """The memory of an output as a tensor; a copy where somebody else looks at the same memory."""
        storage, data = a._storage, a._data
        if data.dtype.fields is not None:
            raise WrongDtype(f"{_name(self.fn)} returns an array of {a.element!r}, which torch cannot hold",
                             advice="return its fields as arrays of numbers")  # fmt: skip
        mine = storage.ours and storage.number >= self.born and not storage.borrowed and storage not in given
        if not mine or needed or min(data.strides, default=0) < 0:
            return tensor_of(Array(dense_copy(data), a.element))
        given.add(storage)
        tensor = tensor_of(a)
        # `fn` may have kept the array for its next call: what that one writes must not reach this tensor.
        a.lend()
        return tensor

    def result(self, tensors: list[torch.Tensor]) -> Any:
        return tensors[0] if self.single else tuple(tensors)

    def saved(self, tape: CallTape, tensors: list[torch.Tensor]) -> Saved:
        """What the reverse sweep needs, and the tensors that must not change until then."""
        watched = [(i.tensor, i.tensor._version, f"argument {n}") for n, i in enumerate(self.inputs)
                   if i is not None and i.shared and i.array._storage in tape.watched]  # fmt: skip
        for n, (x, a) in enumerate(zip(tensors, self.outputs, strict=True)):
            if a._storage.borrowed and a._storage in tape.watched:
                watched.append((x.detach(), x._version, f"output {n}"))
        wanted = [i if wants else None for i, wants in zip(self.inputs, self.needs, strict=True)]
        return Saved(_name(self.fn), tape, wanted, self.outputs, watched)


def _borrow(tensor: torch.Tensor, wants: bool, ranges: list[tuple[int, int, bool]]) -> Input:
    """An array that shares the tensor's memory until it is written."""
    plain = tensor.detach()
    element = ELEMENTS.get(tensor.dtype)
    if element is None:
        raise WrongDtype(f"a tensor of {tensor.dtype} cannot be used", advice="convert it: .float(), .int()")
    data = memory_of(plain)
    low, shared = plain.data_ptr(), plain.is_contiguous()
    high = low + data.nbytes
    for first, last, other in ranges:
        if low < last and first < high and (wants or other):
            # A tape knows each piece of memory by one gradient; overlapping tensors have one each.
            shared = False
    ranges.append((low, high, wants))
    if not shared:
        data = memory_of(plain.clone(memory_format=torch.contiguous_format)) if is_there(plain) else dense_copy(data)
        low = 0
    if not data.ndim:
        data = data.reshape(1)
    data.flags.writeable = not shared
    array = Array(data, element, requires_grad=wants, address=low)
    array._storage.borrowed, array._storage.ours = shared, not shared
    return Input(plain, array, shared)
