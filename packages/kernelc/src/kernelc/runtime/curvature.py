"""Second derivatives of a tape, forward over reverse: tangents go along with the tape, then back with its adjoints.

On the way along, the tangents of every content that an adjoint will read are kept. On the way back each adjoint kernel
runs with its own tangents: beside the gradient it computes how that changes along the directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ..errors import NotDifferentiable
from .arrays import Array, as_view
from .compile import tangent_name
from .cuda.data import upload
from .cuda.operations import add_in_place
from .memory import Data, add_copy, add_zero, is_on_gpu, zeros_for
from .reverse import accumulate
from .storage import Storage
from .tangents import Planes, Push

if TYPE_CHECKING:
    from .entries import Entry
    from .tape import Tape


class Curve(Push):
    """Builds the program for products of a Hessian with `count` directions: that of Σ weights·array by `inputs`.

    turns: how the weights move along the directions, if they do.
    """

    def __init__(
        self, tape: Tape, weights: Mapping[Array, Data], inputs: Sequence[Array], count: int,
        turns: Mapping[Array, Sequence[Data]] = MappingProxyType({}),
    ):  # fmt: skip
        self.weights, self.turns = weights, turns
        self.held: set[Planes] = set()
        self.moving: dict[int, dict[int, Planes]] = {}
        """By step of the tape: the tangents of what its adjoint will read."""
        self.grads: dict[Storage, Data] = {}
        self.bends: dict[Storage, Planes] = {}
        """Tangents of gradients."""
        super().__init__(tape, inputs, inputs, count)

    @classmethod
    def of(
        cls, tape: Tape, weights: Mapping[Array, Data], inputs: Sequence[Array], count: int,
        turns: Mapping[Array, Data],
    ) -> Curve:  # fmt: skip
        """With weights in memory of its own: `weigh` puts others there."""
        own, moved = ({a: _copied(data) for a, data in given.items()} for given in (weights, turns))
        return cls(tape, own, inputs, count, moved)

    def weigh(self, weights: Mapping[Array, Data], turns: Mapping[Array, Data]) -> bool:
        """Put other weights where the program begins; whether that can be done."""
        if self.on_gpu:
            return False
        for into, given in ((self.weights, weights), (self.turns, turns)):
            for a, data in given.items():
                np.copyto(into[a], data)
        return True

    def _chunk(self, first: int) -> None:
        self.held, self.moving, self.grads, self.bends = set(), {}, {}, {}
        self.dots = {a._storage: self._planes(a) for a in self.inputs}
        self.given.append((first, self.there, dict(self.dots)))
        self.program.keep(list(self.dots.values()))
        # The directions are written before each run: what the program changes must be memory of its own.
        self.held.update(self.dots.values())
        for n, entry in enumerate(self.tape.entries):
            self._note(n, entry)
            self._part(entry)
            self._push(entry)
        self._seed()
        for n in range(len(self.tape.entries) - 1, -1, -1):
            self._back(n, self.tape.entries[n])
        self.found.append((self.there, {a._storage: self.bends[a._storage] for a in self.inputs
                                        if a._storage in self.bends}))  # fmt: skip

    # -- along
    def _note(self, n: int, entry: Entry) -> None:
        """Remember the tangents of what the adjoint of a launch will read."""
        if entry.bend is not None:
            self.moving[n] = {i: self.dots[a._storage] for i, a in enumerate(entry.reads) if a._storage in self.dots}
            self.held.update(self.moving[n].values())
        if entry.plan is None or not entry.seeds or not entry.active:
            return
        _, reads, _ = entry.plan.variant.adjoint_reads(entry.seeds)
        self.moving[n] = {i: self.dots[s] for i in reads if (s := entry.args[i]._storage) in self.dots}
        self.held.update(self.moving[n].values())

    def _part(self, entry: Entry) -> None:
        """Tangents that somebody will read stay as they are: a step that writes goes on with a copy."""
        for a in entry.written:
            planes = self.dots.get(a._storage)
            if planes is not None and planes in self.held:
                self.dots[a._storage] = made = Planes(a.root._data, self.width)
                for into, what in zip(made.parts(a.root), planes.parts(a.root), strict=True):
                    add_copy(self.program, into, what)

    def _drop(self, storage: Storage) -> None:
        if self.dots.get(storage) in self.held:
            del self.dots[storage]
        else:
            super()._drop(storage)

    # -- back
    def sent(self, a: Array) -> tuple[Data, list[Data]]:
        """After the program ran: what goes back to the memory of an array, and how that moves."""
        like = a.root._data
        grad, bends = self.grads.get(a._storage), self.bends.get(a._storage)
        return (zeros_for(like) if grad is None else grad,
                [zeros_for(like) for _ in range(self.width)] if bends is None else bends.each)  # fmt: skip

    def _seed(self) -> None:
        for a, weights in self.weights.items():
            given: Data = upload(weights).as_array() if is_on_gpu(a._data) else weights
            add_copy(self.program, as_view(a, self._grad(a)), given)
        for a, moved in self.turns.items():
            first = self.given[-1][0]
            for data, part in zip(self._bend(a).each, moved[first : first + self.there], strict=False):
                add_copy(self.program, as_view(a, data), upload(part).as_array() if is_on_gpu(a._data) else part)

    def _grad(self, a: Array) -> Data:
        """The gradient of the memory of an array; zeros at first."""
        if a._storage not in self.grads:
            self.grads[a._storage] = made = zeros_for(a.root._data)
            add_zero(self.program, made)
        return self.grads[a._storage]

    def _bend(self, a: Array) -> Planes:
        if a._storage not in self.bends:
            self.bends[a._storage] = made = Planes(a.root._data, self.width)
            made.add_zero(self.program, a.root)
            self.program.keep(made)
        return self.bends[a._storage]

    def _back(self, n: int, entry: Entry) -> None:
        if not any(a._storage in self.grads for a in entry.written):
            return  # nobody asks for what this step wrote
        if entry.linear is not None:
            self._back_linear(entry)
        elif entry.bend is not None and not self.on_gpu:
            self._back_operation(n, entry)
        elif entry.backward is not None:
            raise NotDifferentiable(
                f"{entry.label} has no second derivative, but leads to the loss", entry.span,
                advice="write it as a kernel, or take differences of the gradient")  # fmt: skip
        elif entry.plan is None:
            self._back_write(entry)
        elif entry.seeds and entry.active:
            self._back_launch(n, entry)

    def _back_write(self, entry: Entry) -> None:
        (target,) = entry.writes
        shown = as_view(target, self._grad(target))
        pairs = [(shown, zeros_for(shown))]
        if target._storage in self.bends:
            pairs += [(shown, zeros_for(shown)) for shown in self.bends[target._storage].parts(target)]
        passed = [dense for _, dense in pairs]
        for shown, kept in pairs:
            add_copy(self.program, kept, shown)
            add_zero(self.program, shown)
        for source in entry.reads:
            if source.real is None or target.real is None or not self.tape._carries(source):
                continue
            into = [as_view(source, self._grad(source)), *(self._bend(source).parts(source) if len(passed) > 1 else [])]
            for data, what in zip(into, passed, strict=True):
                accumulate(self.program, data, what)

    def _back_linear(self, entry: Entry) -> None:
        """An operation that is linear where it is: its transpose takes tangents of gradients as well."""
        carried = [a.real is not None and self.tape._carries(a) for a in entry.reads]
        bent = any(a._storage in self.bends for a in entry.writes)
        sets = [[(self._grad(a) if a.real is not None else None) for a in entry.writes]]
        into = [[(self._grad(a) if c else None) for a, c in zip(entry.reads, carried, strict=True)]]
        for j in range(self.width if bent else 0):
            sets.append([(self._bend(a).each[j] if a.real is not None else None) for a in entry.writes])
            into.append([(self._bend(a).each[j] if c else None) for a, c in zip(entry.reads, carried, strict=True)])

        def run() -> None:
            assert entry.linear is not None
            for given, taken in zip(sets, into, strict=True):
                shown = [None if d is None else as_view(a, d) for a, d in zip(entry.writes, given, strict=True)]
                for a, data, part in zip(entry.reads, taken, entry.linear(*map(_host, shown)), strict=True):
                    if data is not None:
                        add_in_place(as_view(a, data), np.asarray(part, data.dtype))
                for view in shown:
                    if view is not None:
                        view[...] = np.zeros((), view.dtype)

        self.program.add_call(run)

    def _back_operation(self, n: int, entry: Entry) -> None:
        """An operation that brings its second derivative."""
        known = self.moving.get(n, {})
        sent = [(self._grad(a), self._bend(a).each) if a.real is not None else None for a in entry.writes]
        into = [(self._grad(a), self._bend(a).each) if a.real is not None and self.tape._carries(a) else None
                for a in entry.reads]  # fmt: skip

        def run() -> None:
            assert entry.bend is not None
            moved = [np.stack([as_view(a, data) for data in known[i].each]) if i in known else None
                     for i, a in enumerate(entry.reads)]  # fmt: skip
            given = [
                (None, None) if pair is None
                else (as_view(a, pair[0]).copy(), [as_view(a, data).copy() for data in pair[1]])
                for a, pair in zip(entry.writes, sent, strict=True)
            ]  # fmt: skip
            with entry.restored(self.tape._copies):
                found = entry.bend(moved, given)
            for a, pair in zip(entry.writes, sent, strict=True):
                for data in (pair[0], *pair[1]) if pair is not None else ():
                    as_view(a, data)[...] = np.zeros((), data.dtype)
            for a, pair, (grad, bends) in zip(entry.reads, into, found, strict=True):
                if pair is not None and grad is not None:
                    for data, part in zip((pair[0], *pair[1]), (grad, *bends), strict=True):
                        add_in_place(as_view(a, data), part)

        self.program.add_call(run)

    def _back_launch(self, n: int, entry: Entry) -> None:
        plan, args = entry.plan, entry.args
        assert plan is not None and entry.seeds is not None
        active, _, _ = plan.variant.adjoint_reads(entry.seeds)
        known = self.moving.get(n, {})
        moving = frozenset(known).union(~i for i in active if args[i]._storage in self.bends)
        which = tangent_name(self.width, entry.seeds)
        made = plan.variant.tangent(which, moving)
        grads = {i: as_view(args[i], self._grad(args[i])) for i in active}
        added: dict[int, Data] = {}
        for k, refs in made.planes.items():
            a = args[max(k, ~k)]
            planes = self._bend(a) if k < 0 else known.get(k) or self._nothing(a)
            added.update((r.position, data) for r, data in zip(refs, planes.parts(a), strict=True))
        storages = [args[i]._storage for i in active]
        self._add(entry, (which, moving), made, added, grads, apart=len(set(storages)) == len(storages))

    def _nothing(self, a: Array) -> Planes:
        """Tangents of a content that had none: a thread may write them, and takes that back."""
        made = Planes(a.root._data, self.width)
        self.program.keep(made)
        return made


def _copied(data: Data) -> Data:
    return np.array(data.host() if is_on_gpu(data) else data)


def _host(data: Data | None) -> Data | None:
    """In double precision, where NumPy can read it."""
    if data is None:
        return None
    return (data.host() if is_on_gpu(data) else data).astype(np.float64)
