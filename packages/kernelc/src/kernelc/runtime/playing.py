"""How a recorded launch runs for the first time, and what it leaves in the program of its tape to run again."""

from __future__ import annotations

import struct

import numpy as np

from .. import _native
from ..config import config
from ..errors import FAILURES, StoreRace
from ..types import leaves
from . import launches, reports, strips
from .cuda.launching import Launching, binary_of, facts, forward_job, record_table
from .entries import Entry
from .versions import Versions


class Player(Versions):
    """Launches on the CPU, on a GPU and in the interpreter, once and again."""

    def _run_first(self, entry: Entry, block: bytes | None = None) -> None:
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
            self._run(entry, block)

    def _run(self, entry: Entry, block: bytes | None) -> None:
        plan = entry.plan
        assert plan is not None
        launches.apply_settings()
        total, head = launches.packed(entry.dim)
        binary = plan.binaries[total >= plan.width]
        if block is None or binary is None:
            if entry.active and binary is None:
                # Both sweeps are built in one run of the tool chain.
                plan.variant.binaries([("forward", frozenset()), ("adjoint", entry.adjoint)], plan.contiguous, total)
            binary = launches.prepare(plan, total)
        if block is None:
            block = launches.block_of(plan, entry.args, head)
        if plan.variant.records:
            entry.record = _native.Record()
            block = block[:32] + struct.pack("<q", entry.record.pointer) + block[len(head) :]
        entry.block = block
        watched = entry.watched if plan.variant.watched and total > 1 else ()
        if watched:
            seen = self._index_versions(entry)
            self._forward.add_call(lambda: self._watch_again(entry, entry.block, total, seen))
        alone = not binary.strips and not binary.rows
        if alone:
            step = self._forward.add_launch(binary.entry, block, total, binary.parallel, entry.record)
        else:
            step = strips.add_launch(self._forward, binary, block, total, entry.args, self._scratch, True,
                                     parts=entry.parts)  # fmt: skip
        self._codes[step] = binary.code
        if self._dry is not None:
            return
        if watched and not config.debug:
            self._watch(entry, block, total)
        if alone and not config.debug:
            failure = _native.launch(binary.entry, block, total, binary.parallel)
        else:
            checked = bytes(launches.with_shadows(plan, entry.args, bytearray(block)))
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
