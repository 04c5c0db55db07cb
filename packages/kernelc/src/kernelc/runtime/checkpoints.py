"""Checkpointed rollouts: steps that run again from kept states, stretch by stretch, when their tape goes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import TapeError, WrongChoice, public
from ..structs import Bundle, arrays_in
from . import launches, recording
from .arrays import Array
from .cuda.operations import add_in_place
from .curvature import Curve
from .derivatives import Along
from .entries import Entry
from .ledger import Ledger
from .memory import same_bits
from .retracing import Changed, Retraced, Stretch
from .tape import Tape


@public
def checkpoint(step: Callable[[int], Any], state: Sequence[Any], steps: int, every: int | None = None) -> None:
    """Run `step(k)` for k = 0 … steps-1 on the current tape, keeping the state only `every` steps (default: √steps).

    `state` are the arrays that go from one step to the next, or bundles of them; `step` reads and updates them in
    place by launches, and may read other arrays, whose gradients are accumulated. The reverse sweep restores a kept
    state, records the steps from there, and goes back through them: memory for √steps states and √steps recorded steps.
    """
    if not isinstance(steps, (int, np.integer)) or steps < 0:
        raise WrongChoice(f"steps cannot be {steps}", advice="it is how often the step runs: zero or more")
    if every is not None and (not isinstance(every, (int, np.integer)) or every < 1):
        raise WrongChoice(f"every cannot be {every}", advice="the state is kept after so many steps: one or more")
    outer = recording.current()
    if not isinstance(outer, Tape):  # nobody records, or a checkpoint around this one looks at what is read and written
        for k in range(steps):
            step(k)
        return
    _Checkpointed(step, _arrays_of(state), steps, every or max(1, round(steps**0.5)), outer).record()


def _arrays_of(state: Any) -> list[Array]:
    """The arrays of the state; it may be one, or one bundle."""
    given = arrays_in([state] if isinstance(state, (Array, Bundle)) else state)
    for a in given:
        if not isinstance(a, Array):
            raise WrongChoice(f"the state of kc.checkpoint holds a {type(a).__name__}",
                              advice="pass a list of arrays, or of bundles of them: state=[x, v]")  # fmt: skip
    return given


class _Checkpointed:
    """One checkpointed rollout as an operation of the outer tape."""

    def __init__(self, step: Callable[[int], Any], state: list[Array], steps: int, every: int, outer: Tape):
        self.step, self.steps, self.every, self.outer = step, steps, every, outer
        # Views are kept as the whole arrays that they are part of.
        self.state = list({a._storage: a.root for a in state}.values())
        self.kept: list[list[np.ndarray[Any, Any]]] = []
        self.final: list[np.ndarray[Any, Any]] = []
        self.others: list[Array] = []
        self.reads: list[Array] = []
        self.last: Stretch | None = None
        """A stretch that was recorded: the next one may be made of the same launches."""
        self.alike = True

    def record(self) -> None:
        spy = _Spy(self.state)
        # The steps overwrite the state: launches that were recorded before may need what it holds now.
        self.outer._touch(self.state)
        self.outer._protect(self.state, Entry("checkpoint", len(self.outer.entries)))
        self.forward(spy)
        mine = {a._storage for a in self.state}
        inputs = [a for s, a in spy.read.items() if s not in mine and s not in spy.written]
        self.others = [a for a in inputs if a.real is not None and self.outer._carries(a)]
        for storage, root in spy.written.items():
            if storage not in mine and root.real is not None:
                self.outer._ledger.foreign[storage] = "by the steps of kc.checkpoint, but is not in its `state`"
        self.outer._touch([*self.state, *inputs])
        self.reads = [*self.state, *inputs]
        self.outer.record(self.backward, reads=self.reads, writes=self.state, forward=self.forward,
                          tangent=self.tangent)  # fmt: skip
        self.outer.entries[-1].bend = self.bend
        self.outer._keepers.append(lambda: sum(data.nbytes for state in self.kept for data in state))
        self.outer._keepers.append(lambda: self.last.memory() if self.last is not None else 0)

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
        with self.rewound():
            for n in range(len(self.kept) - 1, -1, -1):
                self.segment(n)

    @contextmanager
    def rewound(self) -> Iterator[None]:
        """While it is open, steps run again, unseen by all tapes; afterwards the state is as it was."""
        versions = [(s, s.version) for known in self.outer._versions for s in (known, *known.relatives())]
        # The state may have been overwritten since, by launches that come later on the tape.
        today = [a._data.copy() for a in self.state]
        with recording.paused():
            yield
        self.restore(today)
        for storage, version in versions:
            storage.version = version

    def tangent(self, *dots: Any) -> list[Any]:
        """Run the steps again, one stretch after the other, and push tangents through each."""
        moving = self.moving(dots)
        with self.rewound():
            for n in range(len(self.kept)):
                self.push(n, moving)
        return [moving.get(a) for a in self.state]

    def moving(self, dots: Sequence[Any]) -> dict[Array, Any]:
        """The tangents of what is read, where they are not zero."""
        return {a: d for a, d in zip(self.reads, dots, strict=True) if d is not None and np.any(_numbers(d))}

    def push(self, n: int, moving: dict[Array, Any]) -> None:
        """Push tangents through one stretch."""
        self.restore(self.kept[n])
        tape = Along(moving)
        with tape:
            self.run_stretch(n)
        known = {a: d for a, d in moving.items() if a._storage in tape._versions}
        changed = [a for a in self.state if a._storage in tape._written and a.real is not None]
        if known:
            moving.update((a, d.numpy()) for a, d in tape.jvp(known, changed).items())

    def bend(self, dots: Sequence[Any], sent: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Gradients of what is read, and how they move: tangents along all stretches, then back through each."""
        moving = self.moving(dots)
        starts: list[dict[Array, Any]] = []
        ends = {a: given for a, given in zip(self.state, sent, strict=True) if given[0] is not None}
        width = max(len(bends) for _, bends in ends.values())
        sums: dict[Array, tuple[Any, Any]] = {}
        with self.rewound():
            for n in range(len(self.kept)):
                starts.append(dict(moving))
                if n + 1 < len(self.kept):
                    self.push(n, moving)
            for n in range(len(self.kept) - 1, -1, -1):
                tape = self.stretch(n)
                start = {a: d for a, d in starts[n].items() if a._storage in tape._versions}
                weights, turns = ({a: given[i] for a, given in ends.items()} for i in (0, 1))
                curve = Curve(tape, weights, list(start), width, turns)
                curve.give(start)
                launches.apply_settings()
                tape._report(curve.program.run(), curve.codes)
                ends = {a: curve.sent(a) for a in ends}
                for a in self.others:
                    sums[a] = _added(sums.get(a), curve.sent(a))
        return [ends.get(a) or sums.get(a) or (None, None) for a in self.reads]

    def check_state(self, n: int) -> None:
        """Steps that run again must give what they gave before: else something beside `state` goes between them."""
        expected = self.kept[n + 1] if n + 1 < len(self.kept) else self.final
        if not all(same_bits(a._data, then) for a, then in zip(self.state, expected, strict=True)):
            raise TapeError(
                "the steps of kc.checkpoint gave another result when they ran again",
                advice="put every array that goes from one step to the next into `state`, or clear it in each step",
            )

    def run_stretch(self, n: int) -> None:
        """The steps from one kept state to the next."""
        for k in range(n * self.every, min(self.steps, (n + 1) * self.every)):
            self.step(k)
        self.check_state(n)

    def stretch(self, n: int) -> Stretch:
        """One stretch of steps on a tape of its own, on which state and others carry gradients."""
        if self.last is not None and self.last.fits(self.length(n)):
            self.restore(self.kept[n])
            try:
                with Retraced(self.last):
                    self.run_stretch(n)
                return self.last
            except Changed:
                self.last, self.alike = None, False  # steps of their own: they are recorded
        self.restore(self.kept[n])
        tape = Stretch(self.length(n))
        with tape:
            for a in [*self.state, *self.others]:
                tape._ledger.canonical(a.root)  # steps may use the memory itself
                tape._touch([a.root])
                tape._activate([a.root])
            self.run_stretch(n)
        tape._versions.update({a._storage: a._storage.version for a in self.state})
        if self.alike and tape.length == self.every and tape.is_plain:
            self.last = tape
        return tape

    def length(self, n: int) -> int:
        """How many steps a stretch has."""
        return min(self.steps, (n + 1) * self.every) - n * self.every

    def segment(self, n: int) -> None:
        """Record one stretch of steps again, and go back through it."""
        tape = self.stretch(n)
        tape._inputs.update(a.root._storage for a in self.others)
        tape._results.update(a._storage for a in self.state)
        seeds = {a: np.array(a.grad._data) for a in self.state if a.grad is not None}
        flags = [(a, a.requires_grad) for a in self.state]
        for a in self.state:
            a.requires_grad = False
        tape.expect([a._storage.grad for a in [*self.state, *self.others]])
        tape.backward(grads=seeds)
        tape.grads = [a._storage.grad for a in [*self.state, *self.others]]
        for a, flag in flags:
            a.requires_grad = flag


def _numbers(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes of structs, the numbers of everything else: both are zero where all is."""
    return data if data.dtype.names is None else np.ascontiguousarray(data).view(np.uint8)


def _added(total: tuple[Any, Any] | None, more: tuple[Any, Any]) -> tuple[Any, Any]:
    """Gradients, and how they move, added up."""
    if total is not None:
        for into, part in zip((total[0], *total[1]), (more[0], *more[1]), strict=True):
            add_in_place(into, part)
    return total or more


class _Spy:
    """Stands in for a tape to see what the steps read and write, without recording them."""

    def __init__(self, state: Sequence[Array]):
        self.ledger = Ledger()
        for a in state:
            self.ledger.canonical(a)
        self.read: dict[Any, Array] = {}
        self.written: dict[Any, Array] = {}

    def _launch(
        self, plan: Any, args: list[Any], dim: tuple[int, ...], device: str, parts: int = 1, block: bytes | None = None
    ) -> None:
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

    def _carries(self, a: Array) -> bool:
        return False

    def record(self, backward: Any, reads: Sequence[Any] = (), writes: Sequence[Any] = (), **how: Any) -> None:
        for a in map(self.ledger.canonical, arrays_in(reads)):
            self.read.setdefault(a._storage, a.root)
        for a in map(self.ledger.canonical, arrays_in(writes)):
            self.written[a._storage] = a.root
