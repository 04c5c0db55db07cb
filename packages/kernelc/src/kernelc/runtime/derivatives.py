"""Derivatives beyond the tape: forward mode for one launch, and checkpointed rollouts."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _native
from ..errors import Overlap, TapeError, WrongChoice, WrongShape, public
from ..structs import arrays_in
from . import launches, recording, reports
from .arrays import Array, _plain, as_view
from .cuda.data import upload
from .cuda.launching import Launching, binary_of, facts
from .entries import Entry
from .kernels import Kernel, check_device
from .ledger import Ledger
from .memory import is_on_gpu, same_bits
from .tape import Tape


@public
def jvp(
    kernel: Kernel, dim: int | Sequence[int], inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), *,
    tangents: Mapping[Array, Any], device: str | None = None,
) -> dict[Array, Array]:  # fmt: skip
    """Forward mode: run a launch, and return the derivative of every array that it writes in the given direction.

    `tangents` maps arguments to their directions; an output that was given a tangent starts from it.
    """
    plan, args = kernel.plan([*inputs, *outputs])
    given = kernel.spread([*inputs, *outputs])
    launches.check_dims(plan, dim)
    launches.check_overlap(plan, args)
    dots: dict[int, Array] = {}
    for i in plan.arrays:
        for a, direction in tangents.items():
            if args[i]._storage is a._storage and a.real is not None:
                shown = _shown(args[i], a, direction)
                if shown is not None:
                    dots[i] = _tangent(args[i], shown)
            elif a._storage in args[i]._storage.relatives():
                name = list(kernel.params)[i]
                raise Overlap(f"{kernel.name}: {name!r} shares memory with another array, which has a tangent",
                              advice="launch with that array, or a view of it")  # fmt: skip
    if not dots:
        raise TapeError("none of the tangents belongs to an argument of the launch",
                        advice="the keys of tangents are the arrays that are launched with")  # fmt: skip
    seeds = frozenset(dots)
    from ..adjoint import analyse

    active = analyse(plan.variant.kernel, seeds).arrays
    for i in active:
        dots.setdefault(i, _tangent(args[i], np.zeros(args[i]._data.shape)))
    shape = launches._shape(dim)
    where = check_device(device, plan, args)
    if where == "python":
        roles = {(i, "tangent"): dots[i]._data for i in active}
        launches.run_python(plan, "tangent", seeds, args, shape, roles)
    else:
        _run_tangent(plan, args, shape, seeds, {i: dots[i] for i in active}, where)
    launches.bump(plan, args)
    written = [i for i in plan.variant.written if args[i].real is not None]
    for i in written:
        dots.setdefault(i, _tangent(args[i], np.zeros(args[i]._data.shape)))
    return {given[i] if isinstance(given[i], Array) else args[i]: dots[i] for i in written}


def _shown(arg: Array, a: Array, direction: Any) -> Any:
    """The direction of `a` as far as it is that of `arg`, another view of the same memory; None if it is not."""
    mine, other = arg._data, a._data
    dense = mine.flags.c_contiguous and other.flags.c_contiguous
    if mine.ctypes.data == other.ctypes.data and mine.size == other.size and (dense or mine.strides == other.strides):
        return direction
    if a is not arg.root:
        return None
    return as_view(arg, np.asarray(_plain(direction), a._data.dtype).reshape(a._data.shape))


def _tangent(a: Array, direction: Any) -> Array:
    data = np.asarray(_plain(direction), a._data.dtype)
    if data.size != a._data.size:
        raise WrongShape(f"the tangent of an array of shape {a._data.shape} has shape {data.shape}")
    dense = np.array(data.reshape(a._data.shape), order="C")
    return Array(upload(dense).as_array() if is_on_gpu(a._data) else dense, a.element)


def _run_tangent(
    plan: Any, args: list[Any], dim: tuple[int, ...], seeds: frozenset[int], dots: dict[int, Array], where: str
) -> None:
    launches.apply_settings()
    total, head = launches.grid(dim, plan.kernel)
    block = bytearray(launches.block_of(plan, args, head))
    for i, dot in dots.items():
        struct.pack_into("<q", block, 8 * plan.variant.layout.slots[i].role("tangent"), dot._data.ctypes.data)
    if where == "cuda":
        on_gpu = binary_of(plan.variant, ("tangent", seeds, plan.contiguous, False))
        Launching(on_gpu, block, total, facts(plan, args, dim)).run()
        return
    (binary,) = plan.variant.binaries([("tangent", seeds)], plan.contiguous, total)
    failure = _native.launch(binary.entry, bytes(block), total, binary.parallel)
    reports.report(binary.code, failure, plan.kernel.name)


@public
def checkpoint(step: Callable[[int], Any], state: Sequence[Any], steps: int, every: int | None = None) -> None:
    """Run `step(k)` for k = 0 … steps-1 on the current tape, keeping the state only `every` steps (default: √steps).

    `state` are the arrays that go from one step to the next, or bundles of them; `step` reads and updates them in
    place by launches, and may read other arrays, whose gradients are accumulated. The reverse sweep restores a kept
    state, records the steps from there, and goes back through them: memory for √steps states and √steps recorded steps.
    """
    if steps < 0:
        raise WrongChoice(f"steps cannot be {steps}", advice="it is how often the step runs: zero or more")
    outer = recording.current()
    if outer is None:
        for k in range(steps):
            step(k)
        return
    _Checkpointed(step, arrays_in(state), steps, every or max(1, round(steps**0.5)), outer).record()


class _Checkpointed:
    """One checkpointed rollout as an operation of the outer tape."""

    def __init__(self, step: Callable[[int], Any], state: list[Array], steps: int, every: int, outer: Tape):
        self.step, self.steps, self.every, self.outer = step, steps, every, outer
        # Views are kept as the whole arrays that they are part of.
        self.state = list({a._storage: a.root for a in state}.values())
        self.kept: list[list[np.ndarray[Any, Any]]] = []
        self.final: list[np.ndarray[Any, Any]] = []
        self.others: list[Array] = []

    def record(self) -> None:
        spy = _Spy(self.state)
        # The steps overwrite the state: launches that were recorded before may need what it holds now.
        self.outer._touch(self.state)
        self.outer._protect(self.state, Entry(f"checkpoint {len(self.outer.entries)}"))
        self.forward(spy)
        mine = {a._storage for a in self.state}
        inputs = [a for s, a in spy.read.items() if s not in mine and s not in spy.written]
        self.others = [a for a in inputs if a.real is not None and self.outer._carries(a)]
        for storage, root in spy.written.items():
            if storage not in mine and root.real is not None:
                self.outer._ledger.foreign[storage] = "by the steps of kc.checkpoint, but is not in its `state`"
        self.outer._touch([*self.state, *inputs])
        self.outer.record(self.backward, reads=[*self.state, *inputs], writes=self.state, forward=self.forward)
        self.outer._keepers.append(lambda: sum(data.nbytes for state in self.kept for data in state))

    def forward(self, spy: _Spy | None = None) -> None:
        """Run all steps, unseen by the outer tape, and keep the state now and then."""
        self.kept = []
        with recording.paused():
            if spy is not None:
                recording.start(spy)
            for k in range(self.steps):
                if k % self.every == 0:
                    self.kept.append([a._data.copy() for a in self.state])
                self.step(k)
            if spy is not None:
                recording.stop(spy)
        self.final = [a._data.copy() for a in self.state]

    def restore(self, contents: list[np.ndarray[Any, Any]]) -> None:
        for a, data in zip(self.state, contents, strict=True):
            a._data[...] = data

    def backward(self) -> None:
        versions = [(s, s.version) for known in self.outer._versions for s in (known, *known.relatives())]
        # The state may have been overwritten since, by launches that come later on the tape.
        today = [a._data.copy() for a in self.state]
        with recording.paused():
            for n in range(len(self.kept) - 1, -1, -1):
                self.segment(n)
        self.restore(today)
        for storage, version in versions:
            storage.version = version

    def check_state(self, n: int) -> None:
        """Steps that run again must give what they gave before: else something beside `state` goes between them."""
        expected = self.kept[n + 1] if n + 1 < len(self.kept) else self.final
        if not all(same_bits(a._data, then) for a, then in zip(self.state, expected, strict=True)):
            raise TapeError(
                "the steps of kc.checkpoint gave another result when they ran again",
                advice="put every array that goes from one step to the next into `state`, or clear it in each step",
            )

    def segment(self, n: int) -> None:
        """Record one stretch of steps again, and go back through it."""
        self.restore(self.kept[n])
        with Tape() as tape:
            for a in [*self.state, *self.others]:
                tape._ledger.canonical(a.root)  # steps may use the memory itself
                tape._touch([a.root])
                tape._activate([a.root])
            for k in range(n * self.every, min(self.steps, (n + 1) * self.every)):
                self.step(k)
        self.check_state(n)
        tape._inputs.update(a.root._storage for a in self.others)
        tape._results.update(a._storage for a in self.state)
        seeds = {a: np.array(a.grad._data) for a in self.state if a.grad is not None}
        flags = [(a, a.requires_grad) for a in self.state]
        for a in self.state:
            a.requires_grad = False
        tape._versions.update({a._storage: a._storage.version for a in self.state})
        tape.backward(grads=seeds)
        for a, flag in flags:
            a.requires_grad = flag


class _Spy:
    """Stands in for a tape to see what the steps read and write, without recording them."""

    def __init__(self, state: Sequence[Array]):
        self.ledger = Ledger()
        for a in state:
            self.ledger.canonical(a)
        self.read: dict[Any, Array] = {}
        self.written: dict[Any, Array] = {}

    def _launch(self, plan: Any, args: list[Any], dim: tuple[int, ...], device: str, parts: int = 1) -> None:
        known = {i: self.ledger.canonical(args[i]) for i in plan.arrays}
        for a in known.values():
            self.read.setdefault(a._storage, a.root)
        for i in plan.variant.written:
            self.written[known[i]._storage] = known[i].root
        launches.run(plan, args, dim, device, parts)

    def _write(self, target: Array, kind: str, source: Any) -> bool:
        if isinstance(source, Array):
            source = self.ledger.canonical(source)
            self.read.setdefault(source._storage, source.root)
        target = self.ledger.canonical(target)
        self.written[target._storage] = target.root
        return False
