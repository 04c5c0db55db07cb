"""The tape: launches as a program that can run again, and backwards. Each sweep is one native call.

Every piece of memory has a version. A recorded launch knows which versions its adjoint will read; when a later launch
is about to overwrite one of them, a copy is kept first. The reverse sweep then reads the copy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_not
from typing import Any

import numpy as np

from .. import _native
from ..config import config
from ..errors import (
    FAILURES,
    CudaError,
    CutGradient,
    NotRecorded,
    Overlap,
    Overwritten,
    StoreRace,
    TapeError,
    WrongChoice,
    caller,
    public,
)
from ..structs import arrays_in, kept
from ..types import leaves
from . import launches, recording, reports, strips
from .arrays import Array
from .creation import refresh
from .cuda.data import upload
from .cuda.launching import Launching, binary_of, facts, forward_job, record_table
from .curvature import Curve
from .directions import read_directions, stacked
from .entries import Entry, Need
from .kernels import Plan
from .ledger import Ledger
from .memory import add_copy, add_zero, dense_copy, is_on_gpu
from .reverse import Sweep
from .seeds import Asked, read_seeds
from .storage import Storage, clock
from .tangents import Push


class Tape:
    """Records launches while it is open: `with kc.Tape() as tape: …`, then `tape.backward(loss)`.

    on_overwrite: "copy" keeps a copy of what a later launch overwrites and the reverse sweep needs; "error" raises.
    """

    def __init__(self, on_overwrite: str = "copy"):
        if on_overwrite not in ("copy", "error"):
            raise WrongChoice(f"on_overwrite cannot be {on_overwrite!r}", advice='choose one of "copy", "error"')
        self.on_overwrite = on_overwrite
        self.entries: list[Entry] = []
        self._forward: Any = _native.Program()  # a tape that never runs again has something else that takes steps
        self._codes: dict[int, Any] = {}
        self._names: dict[int, str] = {}
        self._needed: dict[Need, Entry] = {}
        self._copies: dict[Need, np.ndarray[Any, Any]] = {}
        self._versions: dict[Storage, int] = {}
        self._replayed = self._seen = -1
        """When the program ran last, and when it was last found that nobody else has written its memory."""
        self._written: dict[Storage, None] = {}
        self._active: dict[Storage, Array] = {}
        self._inputs: set[Storage] = set()
        """No leaves, but sweeps add to their gradients all the same; and gradients that are read after a sweep."""
        self._results: set[Storage] = set()
        self._ledger = Ledger()
        self._scratch = strips.Scratch()
        self._keepers: list[Callable[[], int]] = []
        self._sweeps: dict[Any, Any] = {}
        """Programs that were made for a question, backwards or along."""
        self._last: Asked | None = None
        self._replayable = True
        self._clearing, self._cleared = _native.Program(), list[np.ndarray[Any, Any]]()

    def __enter__(self) -> Tape:
        self._sweeps.clear()  # what is recorded from here on belongs to the way back, too
        self._last = None
        recording.start(self)
        return self

    def __exit__(self, *error: object) -> None:
        recording.stop(self)

    @staticmethod
    def current() -> Tape | None:
        """The tape that records this thread's launches, the innermost one that is open; None if there is none."""
        tape = recording.current()
        return tape if isinstance(tape, Tape) else None

    def __repr__(self) -> str:
        return f"<kc.Tape of {len(self.entries)} steps, {self.memory()} bytes kept>"

    # -- recording
    def _carries(self, array: Array) -> bool:
        root = array.root
        if root.requires_grad or array.requires_grad or root._storage in self._active:
            return True
        outer = recording.outer(self)
        return bool(outer) and any(other._carries(array) for other in outer)

    def _launch(self, plan: Plan, args: list[Any], dim: tuple[int, ...], device: str, parts: int = 1) -> None:
        """Run and record a launch."""
        variant = plan.variant
        entry = Entry(f"launch {len(self.entries)} ({plan.kernel.name})", plan, args, dim, device, parts)
        # Values as they are now: what a user passes may change before the tape runs again, or backwards.
        entry.args = args = [
            self._ledger.canonical(a, entry) if a.__class__ is Array else kept(kind, a)
            for a, kind in zip(args, plan.kernel.params.values(), strict=True)
        ]
        for a in args:
            if a.__class__ is Array and a.origin is not None:
                self._copy_again(a)
        touched = [i for i in plan.arrays if i in variant.touched]
        seeds = frozenset(i for i in touched if args[i].real is not None and self._carries(args[i]))
        self._touch([args[i] for i in plan.arrays], entry)
        entry.found = {i: (args[i]._storage, args[i]._storage.version) for i in plan.arrays}
        if seeds:
            self._plan_adjoint(entry, seeds)
        self._protect([args[i] for i in variant.written], entry)
        try:
            self._run_first(entry)
        except BaseException as error:  # Ctrl-C, too: what was written until then stays
            launches.bump(plan, args)
            # A driver that refuses a launch has written nothing.
            for i in variant.written if seeds and not isinstance(error, CudaError) else ():
                self._ledger.foreign[args[i]._storage] = f"by {entry.label}, which failed"
            raise
        for i in variant.written:
            self._bump(args[i])
        for i, (storage, _) in list(entry.finals.items()):
            entry.finals[i] = (storage, storage.version)
            self._needed[entry.finals[i]] = entry
        for i in variant.extrema:
            entry.after[i] = (args[i]._storage, args[i]._storage.version)
        self.entries.append(entry)

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
        args = entry.args
        plan, total = entry.plan, launches.packed(entry.dim)[0]
        entry.seeds = entry.adjoint = seeds
        if entry.device == "cpu":
            entry.adjoint = plan.variant.served(seeds, plan.contiguous, total)
        entry.active = active = plan.variant.adjoint_reads(seeds)[0]
        _, values, finals = plan.variant.adjoint_reads(entry.adjoint)
        self._activate([args[i] for i in active])
        for i in values:
            storage = args[i]._storage
            need = entry.needs[i] = (storage, storage.version)
            self._needed.setdefault(need, entry)
        for i in finals:
            entry.finals[i] = (args[i]._storage, -1)

    def _activate(self, carriers: Sequence[Array]) -> None:
        """These arrays carry a gradient on this tape."""
        for a in carriers:
            root = a.root
            if root._storage not in self._active:
                self._ledger.mark(root._storage)
                self._active[root._storage] = root
                root._carries = True

    def _run_first(self, entry: Entry) -> None:
        """Run a launch where it belongs, and remember how to do so again."""
        plan, args, dim = entry.plan, entry.args, entry.dim
        assert plan is not None
        if entry.device == "python":
            entry.record = {}
            if entry.watched and np.prod(dim) > 1:
                launches.watch_python(plan, args, dim, entry.watched)
            entry.record.update(launches.run_python(plan, "forward", frozenset(), args, dim, {}, entry.record))
            self._forward.add_call(lambda: self._again_in_python(entry))
        elif entry.device == "cuda":
            self._run_on_gpu(entry)
        else:
            self._run(entry)

    def _run(self, entry: Entry) -> None:
        plan = entry.plan
        assert plan is not None
        launches.apply_settings()
        total, head = launches.packed(entry.dim)
        if entry.active and plan.binaries[total >= plan.width] is None:
            # Both sweeps are built in one run of the tool chain.
            plan.variant.binaries([("forward", frozenset()), ("adjoint", entry.adjoint)], plan.contiguous, total)
        binary = launches.prepare(plan, total)
        if plan.variant.records:
            entry.record = _native.Record()
            head = head[:32] + struct.pack("<q", entry.record.pointer)
        block = launches.block_of(plan, entry.args, head)
        if entry.watched and total > 1:
            seen = self._index_versions(entry)
            self._forward.add_call(lambda: self._watch_again(entry, block, total, seen))
        if binary.strips or binary.rows:
            step = strips.add_launch(self._forward, binary, block, total, entry.args, self._scratch, True,
                                     parts=entry.parts)  # fmt: skip
        else:
            step = self._forward.add_launch(binary.entry, block, total, binary.parallel, entry.record)
        self._codes[step], self._names[step] = binary.code, plan.kernel.name
        self._forward.keep(entry.args)
        if entry.watched and total > 1 and not config.debug:
            self._watch(entry, block, total)
        checked = bytes(launches.with_shadows(plan, entry.args, bytearray(block))) if config.debug else block
        failure = strips.launch(binary, checked, total, entry.args, entry.parts)
        if failure is not None or binary.prints:
            reports.report(binary.code, failure, plan.kernel.name)

    def _run_on_gpu(self, entry: Entry) -> None:
        plan = entry.plan
        assert plan is not None
        total, head = launches.packed(entry.dim)
        known = facts(plan, entry.args, entry.dim)
        job, entry.count = forward_job(plan, entry.seeds, known)
        binary = binary_of(plan.variant, job)
        if plan.variant.records:
            entry.record = record_table(binary, total, known)
        block = bytearray(launches.block_of(plan, entry.args, head))
        if entry.watched and total > 1:
            seen, words = self._index_versions(entry), bytes(block)
            self._forward.add_call(lambda: self._watch_again(entry, words, total, seen))
            if not config.debug:
                self._watch(entry, words, total)
        launch = Launching(binary, block, total, known, entry.count, entry.record, keep=entry.args)
        self._forward.add_call(launch.run)
        launches.with_shadows(plan, entry.args, block)
        launch.run()

    def _index_versions(self, entry: Entry) -> list[int]:
        """Versions of the integer arrays that may decide which elements the threads of a launch touch."""
        assert entry.plan is not None
        return [a._storage.version for a in (entry.args[i] for i in entry.plan.arrays) if a.real is None]

    def _watch_again(self, entry: Entry, block: bytes, total: int, seen: list[int]) -> None:
        """In a replay: other indices may make threads meet that did not before."""
        assert entry.plan is not None
        if entry.plan.variant.indexes_by_reals or self._index_versions(entry) != seen:
            self._watch(entry, block, total)

    def _watch(self, entry: Entry, block: bytes, total: int) -> None:
        """See whether the threads of a launch depend on each other: then their adjoints one by one would be wrong.

        Runs the launch on copies, once, when it is recorded; only kernels whose indices leave it open come here.
        """
        plan, watched = entry.plan, entry.watched
        assert plan is not None
        # What is on a GPU is looked at on the CPU, all of it in copies without gaps.
        dense = frozenset(plan.arrays) if plan.on_gpu else plan.contiguous
        (binary,) = plan.variant.binaries([("watched", watched)], dense)
        words, kept = bytearray(block), []
        for i in plan.arrays if plan.on_gpu else plan.variant.written:
            slot, a = plan.variant.layout.slots[i], entry.args[i]
            copy = a.numpy() if plan.on_gpu else a._data.copy()
            shadow = np.zeros(3 * a.size * len(leaves(a.element)) + 1, np.int64)
            kept += [copy, shadow]
            struct.pack_into("<q", words, 8 * slot.role("value"), copy.ctypes.data)
            for axis in range(a.ndim):
                struct.pack_into("<q", words, 8 * slot.stride(axis), copy.strides[axis])
            if i in watched:
                struct.pack_into("<q", words, 8 * slot.role("shadow"), shadow.ctypes.data)
        struct.pack_into("<q", words, 32, 0)
        failure = _native.launch(binary.entry, bytes(words), total, False)
        _native.take_prints()
        if failure is not None and FAILURES[failure.code] is StoreRace:
            raise reports.error_of(binary.code, failure, plan.kernel.name)

    def _again_in_python(self, entry: Entry) -> None:
        assert entry.plan is not None
        entry.record.clear()
        launches.run_python(entry.plan, "forward", frozenset(), entry.args, entry.dim, {}, entry.record)

    def _touch(self, used: Sequence[Array], entry: Entry | None = None) -> None:
        """Remember which memory belongs to this tape; nobody else may have written it in between."""
        for a in used:
            storage = a._storage
            self._ledger.enter(a, entry)
            known = self._versions.setdefault(storage, storage.version)
            if known != storage.version:
                if storage.version <= self._replayed:
                    self._rename(storage, known)
                else:
                    self._check_outside(storage, known, entry)
                self._versions[storage] = storage.version

    def _check_outside(self, storage: Storage, known: int, entry: Entry | None) -> None:
        """A write from outside between two recorded launches: what was read before is gone."""
        if (storage, known) in self._needed and (storage, known) not in self._copies:
            reader, did = self._needed[storage, known], "read"
        elif entry is not None and entry.keeps(storage) and storage in self._active and storage in self._written:
            # What it holds now does not come from where its gradient would go.
            wrote = next(e for e in reversed(self.entries) if any(a._storage is storage for a in e.written))
            reader, did = wrote, "wrote"
        else:
            return
        raise Overwritten(f"an array that {reader.label} {did} was written from outside the tape", reader.span,
                          advice="write it with .assign() or .zero_() while the tape records")  # fmt: skip

    def _rename(self, storage: Storage, before: int) -> None:
        """The tape ran again: its memory holds what the recorded launches need, under another version."""
        old, new = (storage, before), (storage, storage.version)
        if old in self._needed:
            self._needed[new] = self._needed.pop(old)
        for entry in self.entries:
            for noted in (entry.needs, entry.finals, entry.found, entry.after):
                noted.update({i: new for i, need in noted.items() if need == old})

    def _bump(self, a: Array) -> None:
        storage = a._storage
        self._versions[storage] = now = clock.tick()
        storage.wrote(now)
        if storage not in self._written:
            self._ledger.mark(storage)
            self._written[storage] = None
        for outer in recording.outer(self):
            # A tape around this one does not see this launch: it must not go on with what it wrote.
            if storage in self._active or storage in outer._active:
                outer._ledger.foreign[storage] = "by a launch that an inner tape recorded"

    def _protect(self, targets: Sequence[Array], entry: Entry) -> None:
        """Copy what is about to be overwritten, if a reverse sweep will read it."""
        for a in targets:
            need = (a._storage, a._storage.version)
            if need not in self._needed or need in self._copies:
                continue
            reader = self._needed[need]
            if self.on_overwrite == "error":
                raise Overwritten(f"{entry.label} overwrites what the reverse sweep of {reader.label} needs",
                                  entry.span or reader.span,
                                  advice='write to another array, or use kc.Tape(on_overwrite="copy")')  # fmt: skip
            root = a.root
            copy = self._copies[need] = dense_copy(root._data)
            add_copy(self._forward, copy, root._data)
            self._forward.keep(root)

    def _write(self, target: Array, kind: str, source: Any) -> bool:
        """`zero_` and `assign` while recording."""
        entry = Entry(f"{kind}{'_' if kind == 'zero' else ''} {len(self.entries)}", writes=[target])
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

        def write() -> None:
            target._put(content)

        write()
        if kind == "zero" and target._data.flags.c_contiguous and target._source is None:
            add_zero(self._forward, target._data)
        else:
            self._forward.add_call(write)
        self._forward.keep((target, source))
        self._bump(target)
        self.entries.append(entry)
        return True

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
        reads, writes = arrays_in(reads), arrays_in(writes)
        label = f"operation {len(self.entries)} ({_name_of(backward)})"
        entry = Entry(label, backward=backward, tangent=tangent, place=caller(), reads=reads, writes=writes)
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
        for a in writes:
            self._bump(a)
        if forward is not None:
            self._forward.add_call(forward)
        else:
            self._replayable = False
        self.entries.append(entry)

    # -- running again
    @public
    def replay(self) -> None:
        """Run the recorded program again, with what the arrays hold now."""
        if recording.records(self):
            raise TapeError("a tape cannot be replayed while it records", advice="leave its `with` block first")
        if not self._replayable:
            raise TapeError("an operation on the tape has no forward function, so it cannot be replayed",
                            advice="give it: tape.record(backward, …, forward=function)")  # fmt: skip
        launches.apply_settings()
        done = False
        try:
            failure = self._forward.run()
            done = True
        finally:
            now = clock.tick()
            for storage in self._written:
                storage.wrote(now)
            if done:  # what was left in the middle is no state that backward could start from
                self._replayed = self._seen = now
        self._report(failure, self._codes, self._names)

    def _report(self, failure: Any, codes: dict[int, Any], names: dict[int, str]) -> None:
        prints = _native.take_prints()
        if prints:
            reports.show_prints(prints, codes)
        if failure is not None:
            raise reports.error_of(codes[failure.step], failure, names[failure.step])

    # -- going back
    @public
    def backward(
        self, loss: Array | None = None, grads: Mapping[Array, Any] | None = None, *, add: bool = True
    ) -> None:
        """Add the gradients of a one-element `loss`, or of Σ grads[a]·a, to those of the leaves.

        `add=False`: to zero, whatever the leaves had. That is faster than `tape.zero()` first.
        """
        if recording.records(self):
            raise TapeError("a tape cannot go back while it records", advice="leave its `with` block first")
        last = self._last
        if last is not None and last.is_same(loss, grads, add):
            self._check_versions()
            sweep, weights = last.sweep, last.contents
        else:
            sweep, weights = self._prepare(loss, grads, add)
        launches.apply_settings()
        failure = sweep.program.run()
        del weights  # their memory was read until here
        self._report_sweep(failure, sweep.codes)

    # -- going along
    @public
    def jvp(self, tangents: Mapping[Array, Any], outputs: Sequence[Array] | None = None) -> dict[Array, Array]:
        """The derivatives of `outputs` along directions of arrays: `tape.jvp({x: dx}) -> {y: dy}`.

        tangents: a direction in the shape of each array, or k of them along an axis in front, which the results then
            have, too. All other arrays that the tape began with stay as they were.
        outputs: arrays that the tape wrote; default: all of them that hold reals.
        """
        if recording.records(self):
            raise TapeError("a tape cannot push tangents while it records", advice="leave its `with` block first")
        given, count = read_directions(tangents)
        directions = {self._known(a): content for a, content in given.items()}
        asked = self._reals_written() if outputs is None else arrays_in(outputs)
        results = [self._known(a) for a in asked]
        self._check_versions()
        number = len(next(iter(directions.values()))) if directions else 1
        push = self._push(list(directions), results, number)
        push.give(directions)
        launches.apply_settings()
        self._report_sweep(push.program.run(), push.codes)
        return {a: _result(a, stacked(push.take(k), count)) for a, k in zip(asked, results, strict=True)}

    @public
    def hvp(self, loss: Array, tangents: Mapping[Array, Any]) -> dict[Array, Array]:
        """Products of the Hessian of a one-element loss with directions: `tape.hvp(loss, {x: v}) -> {x: Hv}`.

        tangents: a direction in the shape of each array, or k of them along an axis in front, as for `jvp`. With
            several arrays the Hessian is that by all of them together. Gradients are left as they are.
        """
        if recording.records(self):
            raise TapeError("a tape cannot go back while it records", advice="leave its `with` block first")
        read_seeds(loss, None, self._writer)
        self._check_path(loss)
        given, count = read_directions(tangents)
        directions = {self._known(a): content for a, content in given.items()}
        for a in directions:
            if not self._carries(a):
                raise CutGradient("an array that has a direction does not require a gradient", self._entry_span(a),
                                  advice="mark it before it is launched with: requires_grad=True")  # fmt: skip
        self._check_versions()
        number = len(next(iter(directions.values()))) if directions else 1
        key = ("hvp", number, _place(loss), *map(_place, directions))
        curve = self._sweeps.get(key)
        if curve is None:
            ones = {self._known(loss): np.ones(loss._data.shape, loss._data.dtype)}
            curve = self._sweeps[key] = Curve(self, ones, list(directions), number)
        curve.give(directions)
        launches.apply_settings()
        self._report_sweep(curve.program.run(), curve.codes)
        return {a: _result(a, stacked(curve.take(self._known(a)), count)) for a in given}

    def _entry_span(self, a: Array) -> Any:
        entry = self._reader(a._storage)
        return entry.span if entry is not None else None

    def __contains__(self, a: object) -> bool:
        """Whether a recorded launch has to do with the memory of an array."""
        return isinstance(a, Array) and self._ledger.canonical(a)._storage in self._versions

    def _push(self, inputs: list[Array], outputs: list[Array], count: int) -> Push:
        """The program for these arrays; the same question needs no more preparation."""
        key = ("push", count, *[tuple(_place(a) for a in arrays) for arrays in (inputs, outputs)])
        if key not in self._sweeps:
            self._sweeps[key] = Push(self, inputs, outputs, count)
        push: Push = self._sweeps[key]
        return push

    def _known(self, a: Array) -> Array:
        """The array under which the tape knows this memory; raises if it does not know it."""
        if not isinstance(a, Array):
            raise TapeError(f"an output is an array, not {a!r}", advice="write outputs=[array, …]")
        known = self._ledger.canonical(a)
        if known._storage not in self._versions:
            if any(s in self._versions for s in known._storage.relatives()):
                raise Overlap("an array shares memory with another one, which this tape has recorded",
                              advice="give the array that was launched with, or a view of it")  # fmt: skip
            raise NotRecorded("no launch that this tape recorded has to do with an array that jvp was given")
        return known

    def _reals_written(self) -> list[Array]:
        found = {a._storage: a.root for entry in self.entries for a in entry.written if a.real is not None}
        return list(found.values())

    def _report_sweep(self, failure: Any, codes: dict[int, Any]) -> None:
        self._report(failure, codes, {failure.step: codes[failure.step].kernel} if failure is not None else {})

    def _prepare(self, loss: Array | None, grads: Mapping[Array, Any] | None, add: bool) -> tuple[Sweep, list[Any]]:
        """The sweep for these seeds, told where their weights are; these must live until it has run."""
        self._last = None
        seeds = read_seeds(loss, grads, self._writer)
        for a, _ in seeds:
            self._check_path(a)
        self._check_versions()
        # By memory, not by object: a view that is made anew for each call is the same seed.
        key = (add, *[_place(a) for a, _ in seeds])
        sweep = self._sweeps.get(key)
        if sweep is None:
            sweep = self._sweeps[key] = Sweep(self, seeds, add=add)
        contents = sweep.give(seeds)
        self._last = Asked.of(sweep, loss, grads, add, contents)
        return sweep, contents

    def _writer(self, a: Array) -> Entry | None:
        """The launch that wrote an array last."""
        for entry in reversed(self.entries):
            plan = entry.plan
            if plan is not None and any(entry.args[i]._storage is a._storage for i in plan.variant.written):
                return entry
        return None

    def _reader(self, storage: Storage) -> Entry | None:
        """A launch that used a piece of memory."""
        for entry in self.entries:
            if entry.plan is not None and any(entry.args[i]._storage is storage for i in entry.plan.arrays):
                return entry
        return None

    def _check_path(self, a: Array) -> None:
        if a._storage not in self._versions:
            last = self.entries[-1].span if self.entries else None
            raise NotRecorded("the loss was not written by a launch that this tape recorded", last)
        if not self._carries(a):
            self._refuse_cut(a)

    def _refuse_cut(self, a: Array) -> None:
        """Say why no gradient reaches the loss: an operation that ends it, or no leaf that requires one."""
        leading = {a._storage}
        for entry in reversed(self.entries):
            if not any(x._storage in leading for x in entry.written):
                continue
            leading.update(x._storage for x in entry.read)
            if entry.plan is not None and entry.seeds:
                for span, operation in entry.plan.variant.adjoint(entry.seeds).activity.cuts:
                    raise CutGradient(
                        f"{operation} ends the gradient on the way to the loss: its derivative is zero", span,
                        advice="use a smooth function here, or mark a leaf that comes after it")  # fmt: skip
        writer = self._writer(a)
        raise CutGradient(
            "no array that requires a gradient leads to the loss", writer.span if writer else None,
            advice="mark the leaves: kc.array(…, requires_grad=True); kc.explain(kernel) shows cuts")  # fmt: skip

    def _check_versions(self) -> None:
        now = clock.now
        if now == self._seen:
            return
        replayed = self._replayed
        for storage, version in self._versions.items():
            if storage.version > replayed and storage.version > version:
                reader = self._reader(storage)
                what = f"an array of {reader.label}" if reader is not None else "an array of this tape"
                raise Overwritten(
                    f"{what} was written from outside after it was recorded", reader.span if reader else None,
                    advice="call tape.replay() first, so that the recorded values are those of today")  # fmt: skip
        self._seen = now

    # -- housekeeping
    def zero(self) -> None:
        """Clear the gradients of every array on the tape."""
        grads = [storage.grad for storage in self._active if storage.grad is not None]
        if len(grads) != len(self._cleared) or any(map(is_not, grads, self._cleared)):
            self._cleared, self._clearing = grads, _native.Program()
            for grad in grads:
                add_zero(self._clearing, grad)
        self._clearing.run()

    def memory(self) -> int:
        """Bytes that the tape keeps for the reverse sweep: copies of overwritten arrays, states of checkpoints."""
        return sum(c.nbytes for c in self._copies.values()) + sum(bytes() for bytes in self._keepers)


def _place(a: Array) -> tuple[Any, ...]:
    """What an array is to a program: its memory. A view that is made anew for each call is the same."""
    return (id(a._storage), a._address, a._data.shape, a._data.strides)


def _result(a: Array, data: np.ndarray[Any, Any]) -> Array:
    """Tangents of an array, where it is."""
    return Array(upload(data).as_array() if is_on_gpu(a._data) else data, a.element)


def _name_of(function: Callable[..., Any]) -> str:
    """What a function of the user is called, or what of ours it belongs to."""
    name = str(getattr(function, "__qualname__", type(function).__name__))
    if str(getattr(function, "__module__", "")).startswith("kernelc."):
        return "kc.checkpoint" if "Checkpoint" in name else f"kc.{name.split('.')[0]}"
    return name.split("<locals>.")[-1]
