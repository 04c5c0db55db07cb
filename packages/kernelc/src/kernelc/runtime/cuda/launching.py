"""Launches on a GPU: machine code for a kernel, room for its loop tape, the call of the driver, and what it reports."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import ir
from ... import types as t
from ...codegen import (
    DEVICE_HEADER,
    Code,
    Launch,
    Layout,
    Need,
    claims,
    counted_for,
    first_arrays,
    largest_frame,
    need_of,
    runs_in_order,
    taken_arrays,
)
from ...config import config
from ...errors import TapeFull
from ...records import record
from ...toolchain import fatbins
from .. import reports
from . import data
from .device import Device, Memory, device

if TYPE_CHECKING:
    from ..compile import Variant
    from ..kernels import Plan

THREADS = 128
"""Threads of a block (include/kernelc/device.h)."""
_WARP = 32
_UNDO = 24
"""Bytes of an entry of the undo log."""
_MUCH = 1 << 26
"""Bytes of loop tapes for which the GPU is asked whether it has them."""
_SHARE = 1 << 16
"""Bytes that every thread on the GPU should have where nothing tells how much it keeps."""
_PRINT_WORDS = 1 << 17
_REPORT = struct.Struct("<4i3q2Q")
"""kc_report in include/kernelc/device.h: lock, code, site, kernel, thread, a, b, words of prints, values lost."""
_LAUNCH = struct.Struct("<12q")


# -- machine code
@dataclass
class DeviceBinary:
    """A kernel compiled for the GPU, and what its launches need."""

    kernel: ir.Kernel
    layout: Layout
    code: Code
    function: int
    counts: bool = False
    """Whether it is the forward kernel that counts what its adjoint will keep."""
    first: frozenset[int] = frozenset()
    taken: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        walk = list(self.kernel.body.walk())
        self.claims = claims(self.kernel)
        self.in_order = runs_in_order(self.kernel)
        self.frame = largest_frame(self.kernel)
        self.logs = any(isinstance(s, (ir.Store, ir.Atomic)) and s.logged for s in walk)
        self.records = any(isinstance(s, (ir.Record, ir.Recall)) for s in walk)
        self.prints = any(s.parts for s in self.code.sites)
        self.fails = bool(self.code.sites) or bool(self.frame) or self.logs or self.records
        """Whether a launch may report anything."""
        self.number = len(_codes)
        _codes.append(self.code)


_codes: list[Code] = []
"""By number: kernels that may report a failure later than they were launched."""


Job = tuple[str, frozenset[int], frozenset[int], bool]
"""Which kernel, the arrays that carry gradients, those that lie densely, whether gradients may share memory."""


def binary_of(variant: Variant, job: Job) -> DeviceBinary:
    """Machine code for a kernel of a variant."""
    key = (*job, config.debug)
    if key not in variant._on_gpu:
        prebuild([(variant, job)])
    found: DeviceBinary = variant._on_gpu[key]
    return found


def prebuild(jobs: list[tuple[Variant, Job]]) -> None:
    """Compile many kernels as one fat binary."""
    gpu = device()
    pending: dict[Any, tuple[Variant, Code]] = {}
    for n, (variant, job) in enumerate(jobs):
        key = (id(variant), *job, config.debug)
        if key[1:] not in variant._on_gpu and key not in pending:
            which, seeds, contiguous, shared = job
            code = variant.device_code(which, seeds, contiguous, shared, f"_{n}" if len(jobs) > 1 else "")
            pending[key] = (variant, code)
    if not pending:
        return
    text = DEVICE_HEADER + "".join(code.text for _, code in pending.values())
    name = next(iter(pending.values()))[1].name
    (library,) = fatbins({name: text}, [gpu.architecture]).values()
    for key, (variant, code) in pending.items():
        kernel = variant.device_ir(key[1], key[2])
        special = (first_arrays(kernel), taken_arrays(kernel)) if not config.debug else ()
        function = gpu.function(library, code.name)
        counts = key[1] == "counted"
        variant._on_gpu[key[1:]] = DeviceBinary(kernel, variant.layout_of(kernel), code, function, counts, *special)


# -- what a launch needs to know before
def facts(plan: Plan, args: list[Any], dim: tuple[int, ...]) -> Launch:
    """What the arguments say about loops."""
    from ..kernels import _flat

    values: dict[ir.Value, Any] = {}
    for param, arg in zip(plan.variant.kernel.params, args, strict=True):
        if param.array is None and arg is not None:
            kind = t.resolve(plan.kernel.params[param.name], plan.variant.real)
            numbers = zip(param.leaves, _flat(arg, kind), strict=True)
            values.update((leaf, leaf.type.numpy.type(value)) for leaf, value in numbers)
    return Launch(dim, {i: args[i].shape for i in plan.arrays}, values)


@dataclass
class Count:
    """What the adjoint of a recorded launch will keep per thread: counted by the launch itself, on the GPU."""

    memory: data.DeviceData = field(default_factory=lambda: data.zeros((2,), np.int64))

    def read(self) -> tuple[int, int]:
        tape, undo = self.memory.host()
        return int(tape), int(undo)


def forward_job(plan: Plan, seeds: frozenset[int] | None, known: Launch) -> tuple[Job, Count | None]:
    """The forward kernel of a recorded launch: the one that counts, if its adjoint leaves open how much it keeps."""
    variant = plan.variant
    if seeds:
        adjoint = variant.adjoint(seeds).kernel
        need = need_of(adjoint, known)
        if (need.tape is None or need.undo is None) and counted_for(variant.primal, adjoint):
            return ("counted", seeds, plan.contiguous, False), Count()
    return ("forward", frozenset(), plan.contiguous, False), None


# -- one launch
@dataclass
class Launching:
    """A launch that can run again and again: the words of its arguments, and where its loop tape gets its size from.

    keep: what must live as long as this does
    """

    binary: DeviceBinary
    block: bytearray
    total: int
    known: Launch
    count: Count | None = None
    """Where the launch counts, or where it was counted."""
    records: data.DeviceData | None = None
    keep: Any = None

    def __post_init__(self) -> None:
        self.need = Need()
        if self.binary.frame or self.binary.logs:
            self.need = need_of(self.binary.kernel, self.known)
        self.guessed = self.records is not None and need_of(self.binary.kernel, self.known).records is None
        """Whether there may be more results of atomics than there is room for."""

    def run(self) -> None:
        """Run it; raises what it reports, as far as that is known without waiting."""
        if self.total == 0:
            return
        gpu, binary = device(), self.binary
        tape, undo, shared = self.room(gpu)
        if shared:
            slots = self.slots(gpu, max(least_room(binary), min(_SHARE, config.tape_limit)))
            tape, undo = self.shared_room(gpu, slots)
        else:
            slots = self.slots(gpu, tape + _UNDO * undo)
        winners = self.claim(gpu)
        if binary.claims:
            self.start(gpu, slots, tape, undo, dry=True)
        self.start(gpu, slots, tape, undo)
        del winners  # in the order of the stream, its memory is free again
        if binary.code.sites or shared or self.guessed:
            check(gpu, binary.code)

    def room(self, gpu: Device) -> tuple[int, int, bool]:
        """Bytes of tape and entries of the undo log per thread; True: not known, so that slots share the limit."""
        tape, undo = self.need.tape, self.need.undo
        if tape is None or undo is None:
            if self.count is None:
                return 0, 0, True
            tape, undo = self.count.read() if self.binary.frame or self.binary.logs else (0, 0)
        if self.binary.frame:
            tape = max(tape, self.binary.frame)
        return tape, undo, False

    def shared_room(self, gpu: Device, slots: int) -> tuple[int, int]:
        """Nothing tells how much a thread keeps: every slot gets the same part of what is allowed."""
        blocks, threads = self.grid(slots)
        allowed = config.tape_limit
        if allowed > _MUCH:
            allowed = min(allowed, max(_MUCH, gpu.spare("tape") * 9 // 10))
        part = allowed // (blocks * threads)
        if self.binary.logs and self.binary.frame:
            return part // 2 // 8 * 8, part // 2 // _UNDO
        return (part // 8 * 8, 0) if self.binary.frame else (0, part // _UNDO)

    def slots(self, gpu: Device, nbytes: int) -> int:
        """How many threads of the GPU run the launch, if each needs this much memory."""
        if nbytes > config.tape_limit:
            kernel = self.binary.code.kernel.removesuffix("_adjoint")
            text = f"{kernel}: the loop tape of a thread needs {nbytes} bytes, more than {config.tape_limit}"
            raise TapeFull(text, self.binary.code.span, kernel=kernel)
        if self.binary.in_order:
            return 1
        if not (self.binary.frame or self.binary.logs):
            return self.total
        slots = min(self.total, gpu.most_threads)
        if not nbytes:
            return slots
        most = config.tape_limit // nbytes
        if min(slots, most) * nbytes > _MUCH:
            most = max(1, min(most, gpu.spare("tape") * 9 // 10 // nbytes))
        slots = min(slots, most)
        # Blocks are made of whole warps: where there is no room for so many tapes, rather fewer than more.
        whole = THREADS if slots >= THREADS else _WARP if slots >= _WARP else 1
        return slots if -(-slots // whole) * whole <= most else slots // whole * whole

    def claim(self, gpu: Device) -> list[Memory]:
        """Tables of who takes the adjoint of minima and maxima, all ones."""
        made = []
        for position in self.binary.claims:
            param = self.binary.kernel.params[position].array
            assert param is not None
            leaves = len(t.leaves(param.type.element))
            nbytes = 8 * leaves * int(np.prod(self.known.shapes[position]))
            table = gpu.allocate(nbytes)
            gpu.fill(table.address, 0xFF, nbytes)
            at = 8 * self.binary.layout.slots[position].role("shadow")
            struct.pack_into("<q", self.block, at, table.address)
            made.append(table)
        return made

    def grid(self, slots: int) -> tuple[int, int]:
        """How many blocks, of how many threads."""
        threads = min(THREADS, -(-slots // _WARP) * _WARP) if slots >= _WARP else slots
        return -(-slots // threads) if slots >= self.total else max(1, slots // threads), threads

    def start(self, gpu: Device, slots: int, tape: int, undo: int, dry: bool = False) -> None:
        blocks, threads = self.grid(slots)
        held = blocks * threads
        # Kept until the launch is queued: another thread may need larger ones meanwhile, and free these.
        tapes = gpu.scratch("tape", tape * held) if tape else None
        undos = gpu.scratch("undo", _UNDO * undo * held) if undo else None
        report = report_of(gpu).address if self.binary.fails else 0
        counts = self.count.memory.address if self.count and self.binary.counts else 0
        records, record_room = (self.records.address, self.records.shape[0]) if self.records is not None else (0, 0)
        launch = _LAUNCH.pack(self.total, tapes.address if tapes else 0, tape, undos.address if undos else 0, undo,
                              report, _PRINT_WORDS, counts, records, record_room, dry, self.binary.number)  # fmt: skip
        gpu.launch(self.binary.function, blocks, threads, [bytes(self.block), launch])


def least_room(binary: DeviceBinary) -> int:
    """Bytes without which a thread could not even say that it needs more: a frame of the tape, an entry of the log."""
    frame = -(-binary.frame // 8) * 8
    return 2 * max(frame, _UNDO) if binary.logs and frame else _UNDO if binary.logs else frame


def record_table(binary: DeviceBinary, total: int, known: Launch) -> data.DeviceData:
    """Room for what integer atomics return: as much as is known to be needed, or as is allowed."""
    need = need_of(binary.kernel, known).records
    if need is None:
        need = min(max(1, config.tape_limit // (8 * max(total, 1))), 1 << 12)
    return data.zeros((max(need, 1), total), np.int64)


# -- reports
def report_of(gpu: Device) -> Memory:
    """Where launches of this stream report; clean when nothing was reported."""
    fresh = ("report", gpu.stream) not in gpu._scratch
    memory = gpu.scratch("report", _REPORT.size + 8 * _PRINT_WORDS)
    if fresh:
        gpu.fill(memory.address, 0, _REPORT.size)
    return memory


def check(gpu: Device, last: Code | None = None) -> None:
    """Wait for the launches of this stream, print what the last one printed, and raise what made one fail."""
    memory = report_of(gpu)
    head = np.empty(_REPORT.size, np.uint8)
    gpu.download(memory.address, head)
    _, code, site, number, thread, a, b, words, lost = _REPORT.unpack(head.tobytes())
    if not code and not words:
        return
    gpu.fill(memory.address, 0, _REPORT.size)
    if words and last is not None:
        raw = np.empty(min(words, _PRINT_WORDS), np.int64)
        gpu.download(memory.address + _REPORT.size, raw)
        entries = prints_in(raw, thread if code else None)
        if lost:
            entries.append((-1, -1, -1, [float(lost)]))
        reports.show_prints(entries, {-1: last})
    if code:
        raise reports.error_of(_codes[number], Failure(code, site, thread, a, b), _codes[number].kernel)


@record
class Failure:
    """As the native core reports it."""

    code: int
    site: int
    thread: int
    a: int
    b: int


def prints_in(raw: np.ndarray[Any, Any], last: int | None) -> list[tuple[int, int, int, list[float]]]:
    """What was printed, in the order of the threads. A failed launch prints up to the thread that failed."""
    found, at = [], 0
    while at + 4 <= len(raw) and raw[at] >= 0:
        thread, number, site, count = (int(w) for w in raw[at : at + 4])
        found.append((thread, number, site, raw[at + 4 : at + 4 + count].view(np.float64).tolist()))
        at += 4 + count
    found.sort(key=lambda p: p[:2])
    return [(-1, site, thread, values) for thread, _, site, values in found if last is None or thread <= last]
