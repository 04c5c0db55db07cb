"""Derivatives beyond the tape: tangents of one launch, and checkpointed rollouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import Overlap, TapeError, WrongChoice, public
from ..structs import arrays_in
from . import launches, recording
from .arrays import Array
from .directions import read_directions
from .entries import Entry
from .kernels import Kernel, check_device
from .ledger import Ledger
from .memory import same_bits
from .tape import Tape


@public
def jvp(
    kernel: Kernel, dim: int | Sequence[int], inputs: Sequence[Any] = (), outputs: Sequence[Any] = (), *,
    tangents: Mapping[Array, Any], device: str | None = None,
) -> dict[Array, Array]:  # fmt: skip
    """Forward mode: run a launch, and return the derivative of every array that it writes in the given direction.

    `tangents` maps arguments to their directions, or to k of them along an axis in front, which the results then have,
    too. An output that was given a tangent starts from it.
    """
    plan, args = kernel.plan([*inputs, *outputs])
    given = kernel.spread([*inputs, *outputs])
    directions, _ = read_directions(tangents)
    launches.check_dims(plan, dim)
    launches.check_overlap(plan, args)
    for i in plan.arrays:
        if any(a._storage in args[i]._storage.relatives() for a in directions):
            name = list(kernel.params)[i]
            raise Overlap(f"{kernel.name}: {name!r} shares memory with another array, which has a tangent",
                          advice="launch with that array, or a view of it")  # fmt: skip
    moving = {a: tangents[a] for a in directions if any(args[i]._storage is a._storage for i in plan.arrays)}
    if not moving:
        raise TapeError("none of the tangents belongs to an argument of the launch",
                        advice="the keys of tangents are the arrays that are launched with")  # fmt: skip
    tape = Along(moving)
    with recording.paused():
        tape._launch(plan, args, launches._shape(dim), check_device(device, plan, args))
    written = [i for i in plan.variant.written if args[i].real is not None]
    found = tape.jvp(moving, [args[i] for i in written])
    return {given[i] if isinstance(given[i], Array) else args[i]: found[args[i]] for i in written}


class Along(Tape):
    """A tape that is only asked for tangents: it keeps what they need, and nothing for the way back."""

    def __init__(self, moving: Iterable[Array]):
        super().__init__()
        self._moving = {a._storage for a in moving}

    def _carries(self, array: Array) -> bool:
        return array._storage in self._moving

    def _activate(self, carriers: Sequence[Array]) -> None:
        self._moving.update(a._storage for a in carriers)

    def _plan_adjoint(self, entry: Entry, seeds: frozenset[int]) -> None:
        assert entry.plan is not None
        made = entry.plan.variant.tangent("tangent", seeds)
        self._moving.update(entry.args[i]._storage for i in made.arrays)
        for i in made.reads:
            self._needed.setdefault(entry.found[i], entry)


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
        self.reads: list[Array] = []

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
        self.reads = [*self.state, *inputs]
        self.outer.record(self.backward, reads=self.reads, writes=self.state, forward=self.forward,
                          tangent=self.tangent)  # fmt: skip
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
        moving = {a: d for a, d in zip(self.reads, dots, strict=True) if d is not None and np.any(_numbers(d))}
        with self.rewound():
            for n in range(len(self.kept)):
                self.restore(self.kept[n])
                tape = Along(moving)
                with tape:
                    self.run_stretch(n)
                known = {a: d for a, d in moving.items() if a._storage in tape._versions}
                changed = [a for a in self.state if a._storage in tape._written and a.real is not None]
                if known:
                    moving.update((a, d.numpy()) for a, d in tape.jvp(known, changed).items())
        return [moving.get(a) for a in self.state]

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

    def segment(self, n: int) -> None:
        """Record one stretch of steps again, and go back through it."""
        self.restore(self.kept[n])
        with Tape() as tape:
            for a in [*self.state, *self.others]:
                tape._ledger.canonical(a.root)  # steps may use the memory itself
                tape._touch([a.root])
                tape._activate([a.root])
            self.run_stretch(n)
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


def _numbers(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes of structs, the numbers of everything else: both are zero where all is."""
    return data if data.dtype.names is None else np.ascontiguousarray(data).view(np.uint8)


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
