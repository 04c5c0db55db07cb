"""What a tape records: launches, writes from Python, and operations of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..errors import CudaError, CutGradient, Overwritten, WrongUse, caller, public
from ..structs import arrays_in, kept
from . import launches, recording
from .arrays import Array
from .content import check_copied
from .creation import refresh
from .entries import Entry, Need
from .kernels import Plan
from .memory import add_zero, dense_copy
from .playing import Player
from .storage import clock
from .versions import is_leaf


class Recorder(Player):
    """Each step is noted with what its adjoint will need, and run."""

    def _launch(
        self, plan: Plan, args: list[Any], dim: tuple[int, ...], device: str, parts: int = 1,
        block: bytes | None = None,
    ) -> None:  # fmt: skip
        """Run and record a launch. block: its argument block, if launching has found that nothing about it is new."""
        self._record_launch(plan, args, dim, device, parts, block)

    def _record_launch(
        self, plan: Plan, args: list[Any], dim: tuple[int, ...], device: str, parts: int, block: bytes | None
    ) -> None:  # fmt: skip
        # Loops record thousands of launches: what is usual is asked in place here, once for each array.
        ledger, versions, active = self._ledger, self._versions, self._active
        uses, foreign, variant, outer = ledger.uses, ledger.foreign, plan.variant, recording.outer(self)
        by_leaves = self._by_leaves and not outer
        entry = Entry("launch", len(self.entries), plan, dim, device, parts)
        entry.args = args = self._as_now(plan, args, entry) if plan.numbers else args[:]
        found: dict[int, Need] = {}
        flags, carriers = [], []
        for i in plan.arrays:
            a = args[i]
            storage = a._storage
            if storage not in uses:
                args[i] = a = ledger.canonical(a, entry)
                storage = a._storage
                if storage not in uses:
                    ledger.enter(a, entry, 3)
            elif foreign:
                ledger.enter(a, entry)
            if a.origin is not None:
                self._copy_again(a)
            version = storage.version
            if versions.setdefault(storage, version) != version:
                self._touch((a,), entry)
            found[i] = (storage, version)
            if a.requires_grad or (a._parent is not None and a.root.requires_grad):
                flags.append(i)
                if by_leaves:
                    carriers.append(i)
            elif by_leaves and storage in active:
                carriers.append(i)
            if not by_leaves and self._carries(a):
                carriers.append(i)
        entry.flags, entry.found = flags, found
        seeds = plan.reals.intersection(carriers)
        if seeds:
            self._plan_adjoint(entry, seeds)
        written = [args[i] for i in plan.written]
        self._protect(written, entry)
        try:
            if device == "cpu":
                self._run(entry, block)
            else:
                self._run_first(entry)
        except BaseException as error:  # Ctrl-C, too: what was written until then stays
            launches.bump(plan, args)
            # A driver that refuses a launch has written nothing.
            self._note_failed(entry, bool(seeds) and not isinstance(error, CudaError))
            raise
        now = clock.tick()
        for a in written:
            self._bump(a, now, outer)
        if entry.finals:
            for i, (storage, _) in list(entry.finals.items()):
                entry.finals[i] = (storage, storage.version)
                self._needed[entry.finals[i]] = entry
        if variant.extrema:
            entry.after = {i: (args[i]._storage, args[i]._storage.version) for i in variant.extrema}
        self.entries.append(entry)

    def _as_now(self, plan: Plan, args: list[Any], entry: Entry) -> list[Any]:
        """The arguments with their numbers as they are now: a user may change what was passed before the tape runs
        again, or backwards."""
        entry.args = args
        for a in args:
            if a.__class__ is not Array and a.__class__ is not float and a.__class__ is not int:
                check_copied(a)
        return [a if a.__class__ is Array or a.__class__ is float or a.__class__ is int else kept(kind, a)
                for a, kind in zip(args, plan.kinds, strict=True)]  # fmt: skip

    def _note_failed(self, entry: Entry, carries: bool) -> None:
        self._forward.keep(entry.args)
        for a in entry.written if carries else ():
            self._ledger.foreign[a._storage] = f"by {entry.label}, which failed"

    def _record_failed(self, plan: Plan, args: list[Any], dim: tuple[int, ...], parts: int, block: bytes) -> None:
        """A launch has failed before it was recorded: as above, a replay will run it again."""
        entry = Entry("launch", len(self.entries), plan, dim, "cpu", parts)
        entry.args = list(args)
        self._dry = True
        try:
            self._run_first(entry, block)
        finally:
            self._dry = None
        self._note_failed(entry, any(self._carries(args[i]) for i in plan.reals))

    def _copy_again(self, a: Array) -> None:
        """An argument was converted for its launch: so it will be in a replay."""
        assert a.origin is not None
        origin = self._ledger.canonical(a.origin)
        if self._carries(origin):
            raise CutGradient("an argument is a copy of an array that carries a gradient, which would end there",
                              advice="pass the array itself, contiguous and of the kernel's element type")  # fmt: skip
        self._touch([origin])
        self._forward.add_call(partial(refresh, a))

    def _plan_adjoint(self, entry: Entry, seeds: frozenset[int]) -> None:
        """Find out what the adjoint will read, and which arrays carry a gradient from here on."""
        assert entry.plan is not None
        args, plan = entry.args, entry.plan
        variant = plan.variant
        entry.seeds = entry.adjoint = seeds
        entry.active, values, finals = variant.reads.get(seeds) or variant.adjoint_reads(seeds)
        if entry.device == "cpu" and variant.shipped is not None:
            entry.adjoint = variant.served(seeds, plan.contiguous, launches.packed(entry.dim)[0])
            _, values, finals = variant.adjoint_reads(entry.adjoint)
        active = self._active
        new = [args[i] for i in entry.active if args[i]._storage not in active]
        if new:
            self._activate(new)
        found, needed = entry.found, self._needed
        entry.needs = needs = {}
        for i in values:
            needs[i] = need = found[i]
            if need not in needed:
                needed[need] = entry
        if finals:
            entry.finals = {i: (args[i]._storage, -1) for i in finals}

    def _write(self, target: Array, kind: str, source: Any) -> bool:
        """`zero_` and `assign` while recording."""
        entry = Entry(f"{kind}{'_' if kind == 'zero' else ''}", len(self.entries))
        entry.writes = [target]
        target = self._ledger.canonical(target, entry)
        if isinstance(source, Array):
            entry.reads = [source]
            source = self._ledger.canonical(source, entry)
            entry.reads = [source]
        entry.writes = [target]
        if target._data.size == target.root._data.size:
            # All of it is overwritten: where it came from no longer matters.
            self._ledger.foreign.pop(target._storage, None)
        self._touch([*entry.writes, *entry.reads], entry)
        self._protect([target], entry)
        # An integer that a real is copied to, or from, is one for good: it passes no gradient on.
        if isinstance(source, Array) and source.real is not None and target.real is not None:
            if self._carries(source):
                self._activate([source, target])
        if target.real is not None and self._carries(target):
            self._activate([target])
        content = source if source is None or isinstance(source, Array) else dense_copy(source)
        entry.flags = [is_leaf(a) for a in entry.arrays]

        def write() -> None:
            target._put(content)

        if self._dry is None:
            write()
        if kind == "zero" and target._data.flags.c_contiguous and target._source is None:
            add_zero(self._forward, target._data)
        else:
            self._forward.add_call(write)
        self._forward.keep((target, source))
        self._bump(target, clock.tick(), recording.outer(self))
        self.entries.append(entry)
        return True

    @public
    def record(
        self, backward: Callable[[], Any], reads: Sequence[Any] = (), writes: Sequence[Any] = (),
        forward: Callable[[], Any] | None = None, tangent: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        """Put an operation of your own on the tape, after it has run.

        `backward()` reads the gradients of `writes` and adds to those of `reads`; afterwards the gradients of
        `writes` are cleared, as by a store. `forward()` runs it again in `replay`. `tangent(*dots)` is for `jvp`: it
        gets the tangents of `reads`, each a NumPy array with an axis of tangents in front (None for integers), and
        returns those of `writes` in the same form.
        """
        if not callable(backward):
            raise WrongUse(f"what tape.record puts on a tape is a function, not {backward!r}",
                           advice="write tape.record(backward, reads=[…], writes=[…])")  # fmt: skip
        reads, writes = arrays_in(reads), arrays_in(writes)
        entry = Entry("operation", len(self.entries), name=_name_of(backward))
        entry.backward, entry.tangent, entry.place = backward, tangent, caller()
        entry.reads, entry.writes, entry.needs = reads, writes, {}
        self._touch([*reads, *writes], entry)
        carried = [a for a in reads if self._carries(a)]
        self._activate([*carried, *(a for a in writes if a.real is not None and (carried or self._carries(a)))])
        for a in writes:
            need = (a._storage, a._storage.version)
            if need in self._needed and need not in self._copies:
                raise Overwritten(f"{entry.label} has overwritten what the reverse sweep of "
                                  f"{self._needed[need].label} needs", self._needed[need].span,
                                  advice="let it write to an array of its own")  # fmt: skip
        own = {a._storage for a in writes}
        for i, a in enumerate(reads):
            if a._storage not in own:
                entry.needs[i] = (a._storage, a._storage.version)
                self._needed.setdefault(entry.needs[i], entry)
        now, outer = clock.tick(), recording.outer(self)
        for a in writes:
            self._bump(a, now, outer)
        if forward is not None:
            self._forward.add_call(forward)
        else:
            self._replayable = False
        self.entries.append(entry)


def _name_of(function: Callable[..., Any]) -> str:
    """What a function of the user is called, or what of ours it belongs to."""
    name = str(getattr(function, "__qualname__", type(function).__name__))
    if str(getattr(function, "__module__", "")).startswith("kernelc."):
        return "kc.checkpoint" if "Checkpoint" in name else f"kc.{name.split('.')[0]}"
    return name.split("<locals>.")[-1]
