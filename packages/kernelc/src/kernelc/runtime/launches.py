"""Launching: arguments to an argument block, one native call, and its report turned into Python."""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from .. import _native, ir
from .. import types as t
from ..config import config
from ..errors import KernelError, LaunchError, Overlap, WrongDim, WrongUse, shorn
from ..structs import Bundle
from . import strips
from .arrays import Array
from .checked import CheckedThread, WatchedThread
from .cuda.data import zeros as device_zeros
from .cuda.launching import Launching, binary_of, facts
from .interpreter import Memory, interpret
from .kernels import Kernel, Plan, _flat, check_device
from .memory import is_tensor, may_share, shares
from .passing import Passed, known, remember
from .recording import current, open_tapes
from .reports import report
from .storage import clock

_dims: dict[int, tuple[int, bytes]] = {}
_settings: list[Any] = [None, None]


def launch(
    kernel: Kernel, dim: int | Sequence[int], inputs: Sequence[Any] = (), outputs: Sequence[Any] = (),
    device: str | None = None, *, parts: int = 1,
) -> None:  # fmt: skip
    """Run a kernel over a grid of `dim` threads. `inputs` and `outputs` are one list to the kernel.

    parts: a promise that the threads fall into so many parts of the same size, one after the other, that share nothing:
        no element that a part writes, or whose gradient is asked for, is touched by another. Each part then computes
        the same bits as a launch of its own, and parts run side by side.
    """
    args: list[Any] = []
    block = None
    try:
        args = [*inputs, *outputs]
        bundled = kernel.bundled
        plan: Plan = kernel._plans[
            tuple([a._sig if a.__class__ is Array else a.__class__ for a in args])
            if not bundled
            else tuple([a._sig if a.__class__ is Array or a.__class__ is Bundle else a.__class__ for a in args])
        ]
        total, head = _dims[dim] if dim.__class__ is int else grid(dim, kernel)
        binary = plan.binaries[total >= plan.width]
        # As `plan.stale()`, in place: this runs in every launch.
        steady = plan.generation == config._generation and not plan.variant.changed()
        if binary is not None and plan.plain and device is None and steady:
            fits = plan.dims == 0 or plan.dims == (1 if dim.__class__ is int else len(_shape(dim)))
            if fits and (not plan.block or plan.block == _shape(dim)[-1]):
                if parts != 1:
                    check_parts(parts, dim)
                if bundled:
                    args, block = unbundled(plan, args, head)
                else:
                    check_overlap(plan, args)
                    block = block_of(plan, args, head)
    except (AttributeError, KeyError, TypeError, struct.error, KernelError):
        pass  # of a new kind, or something does not fit: then the checks say what
    try:
        if block is None:
            passed = known(kernel, args) if device is None and parts == 1 and not open_tapes else None
            if passed is not None and launch_passed(passed, kernel, dim):
                return None
            return check_and_launch(kernel, dim, listed(args, inputs, outputs), device, parts)
        if open_tapes:
            tape = current()
            if tape is not None:
                tape._launch(plan, args, (dim,) if dim.__class__ is int else _shape(dim), "cpu", parts, block)
                return None
        try:
            if binary.strips or binary.rows:
                failure = strips.launch(binary, block, total, args, parts)
            else:
                failure = _native.launch(binary.entry, block, total, binary.parallel)
        finally:  # Ctrl-C leaves what was written until then
            now = clock.tick()
            for i in plan.written:
                storage = args[i]._storage
                storage.version = now
                if storage.kin or storage.tensors:
                    storage.spread(now)
        if failure is not None or binary.prints:
            report(binary.code, failure, kernel.name)
    except KernelError as error:
        if isinstance(error, LaunchError) and isinstance(kernel, Kernel):
            error.locate(kernel.source.head)
        shorn(error)
        raise


def launch_passed(passed: Passed, kernel: Kernel, dim: Any) -> bool:
    """Launch with arguments of a kind that was passed before; whether that could be."""
    plan, shape = passed.plan, _shape(dim)
    total, head = _dims[dim] if dim.__class__ is int and dim in _dims else grid(dim, kernel)
    binary = plan.binaries[total >= plan.width]
    if binary is None or plan.stale() or plan.dims not in (0, len(shape)) or (plan.block and plan.block != shape[-1]):
        return False
    if not strips.is_alone(binary, total):
        return False
    block = b"".join([head, *passed.words])
    try:
        failure = _native.launch(binary.entry, block, total, binary.parallel)
    finally:
        now = clock.tick()
        for a in passed.arrays:
            a._storage.wrote(now)
    for tensor in passed.tensors:
        sys.modules["torch"].autograd.graph.increment_version(tensor)
    if failure is not None or binary.prints:
        report(binary.code, failure, kernel.name)
    return True


def listed(args: list[Any], inputs: Any, outputs: Any) -> list[Any]:
    """The arguments, if they came in lists; an array would be taken apart."""
    for name, given in (("inputs", inputs), ("outputs", outputs)):
        if not isinstance(given, Iterable) or isinstance(given, (Array, np.ndarray, str, dict)):
            raise WrongUse(f"{name} is a list of arguments, not {type(given).__name__}", advice=f"write {name}=[…]")
    return args


def check_and_launch(
    kernel: Kernel, dim: int | Sequence[int], args: list[Any], device: str | None, parts: int
) -> None:  # fmt: skip
    """A launch of a kind that was not seen before, or that is recorded, or that runs elsewhere."""
    if not isinstance(kernel, Kernel):
        raise WrongUse(f"kc.launch runs a kernel, not {kernel!r}", advice="decorate the function with @kc.kernel")
    grid(dim, kernel)
    given = args
    plan, args = kernel.plan(args)
    check_dims(plan, dim)
    check_parts(parts, dim)
    check_overlap(plan, args)
    where = check_device(device, plan, args)
    tape = current()
    if tape is not None:
        tape._launch(plan, args, _shape(dim), where, parts)
    else:
        run(plan, args, _shape(dim), where, parts)
        if where == "cpu" and parts == 1:
            remember(kernel, plan, given, args)
    tell_torch(given if len(given) == len(args) else kernel.spread(given), plan)


def tell_torch(given: Sequence[Any], plan: Plan) -> None:
    """Count writes to tensors as torch does its own: what it has saved of them for a gradient is no longer true."""
    for i in plan.variant.written:
        if is_tensor(given[i]) and not given[i].is_inference():
            sys.modules["torch"].autograd.graph.increment_version(given[i])


def grid(dim: Any, kernel: Kernel) -> tuple[int, bytes]:
    """The number of threads and the packed sizes of a launch grid."""
    sizes = _shape(dim)
    if not 1 <= len(sizes) <= 4 or min(sizes) < 0 or max(sizes) >= 2**31:
        raise WrongDim(f"{kernel.name}: dim is one to four whole numbers below 2**31, not {dim!r}")
    total, head = packed(sizes)
    if total >= 2**63:
        raise WrongDim(f"{kernel.name}: {total} threads are more than can be counted", advice="launch a smaller grid")
    if len(_dims) > 4096:
        _dims.clear()
    if dim.__class__ is int:  # 1.0 and True would be found under 1
        _dims[dim] = (total, head)
    return total, head


@lru_cache(maxsize=4096)
def packed(sizes: tuple[int, ...]) -> tuple[int, bytes]:
    """The number of threads and the first words of the argument block for a grid that was checked."""
    return prod(sizes), struct.pack("<5q", *sizes, *([1] * (4 - len(sizes))), 0)


def _shape(dim: Any) -> tuple[int, ...]:
    try:
        return (int(dim.__index__()),) if hasattr(dim, "__index__") else tuple(int(n.__index__()) for n in dim)
    except (AttributeError, TypeError):
        raise WrongDim(f"dim is a whole number or a tuple of them, not {dim!r}") from None


def check_dims(plan: Plan, dim: Any) -> None:
    wanted, given = plan.variant.kernel.dims, len(_shape(dim))
    if wanted not in (0, given):
        asked = f"{wanted} ind{'ices' if wanted > 1 else 'ex'}"
        advice = f"launch it with dim=({', '.join('nmkl'[:wanted])})" if wanted > 1 else "launch it with dim=n"
        raise WrongDim(f"{plan.kernel.name} takes {asked} from kc.tid(), but is launched over {given} "
                       f"dimension{'s' * (given > 1)}", advice=advice)  # fmt: skip
    block = plan.variant.kernel.block
    if block and _shape(dim)[-1] != block:
        raise WrongDim(f"{plan.kernel.name} runs in blocks of {block} threads, but is launched over {dim!r}",
                       advice=f"launch it with dim=(…, {block}), or decorate it without block")  # fmt: skip


def check_parts(parts: Any, dim: Any) -> None:
    total = prod(_shape(dim))
    if not isinstance(parts, int) or parts < 1 or total % parts:
        raise WrongDim(f"parts is into how many parts of the same size the {total} threads fall, not {parts!r}",
                       advice="give a whole number that divides them, or leave it out")  # fmt: skip


def check_overlap(plan: Plan, args: Sequence[Any]) -> None:
    """What a launch writes must not be another argument as well: which of the two a kernel means would be unclear."""
    bases = {args[i]._base for i in plan.arrays} if plan.numbers else {a._base for a in args}
    if len(bases) == len(plan.arrays) and 0 not in bases:
        return
    names = list(plan.kernel.params)
    for i in plan.variant.written:
        for j in plan.arrays:
            if i != j and may_share(args[i]._data, args[j]._data):
                if shares(args[i]._data, args[j]._data):
                    raise Overlap(f"{plan.kernel.name}: {names[i]!r} is written, and shares memory with {names[j]!r}")


def block_of(plan: Plan, args: Sequence[Any], head: bytes) -> bytes:
    """The argument block of a launch (codegen/layout.py)."""
    if not plan.numbers:
        return b"".join([head, *[a._words for a in args]])
    return b"".join([head, *[a._words if p is None else p(a) for p, a in zip(plan.packers, args, strict=True)]])


def unbundled(plan: Plan, args: Sequence[Any], head: bytes) -> tuple[list[Any], bytes]:
    """The members of a launch with bundles, and its argument block."""
    flat: list[Any] = []
    words, apart, real = [head], True, plan.variant.real
    bases: Collection[int] = ()
    for a in args:
        if a.__class__ is Bundle:
            note = a._noted  # it was looked up by its signature: there is a note of this moment
            assert note is not None
            found = note.words.get(real)
            if found is None:
                found = note.words[real] = words_of(plan, note.flat, len(flat))
            words.append(found)
            flat += note.flat
            apart = apart and note.bases.isdisjoint(bases) and note.apart
            bases = [*bases, *note.bases] if bases else note.bases
        elif a.__class__ is Array:
            words.append(a._words)
            flat.append(a)
            apart = apart and a._base not in bases and a._base != 0
            bases = [*bases, a._base]
        else:
            words.append(plan.packers[len(flat)](a))  # type: ignore[misc]
            flat.append(a)
    if not apart:
        check_overlap(plan, flat)
    return flat, b"".join(words)


def words_of(plan: Plan, members: Sequence[Any], first: int) -> bytes:
    """The words of arguments that begin at position `first`."""
    packers = plan.packers[first : first + len(members)]
    return b"".join([a._words if p is None else p(a) for p, a in zip(packers, members, strict=True)])


def prepare(plan: Plan, total: int) -> Any:
    """The machine code of a plan's forward kernel for a launch of `total` threads."""
    plan.width = plan.variant.width("forward", frozenset())
    fills = total >= plan.width
    if plan.binaries[fills] is None:
        (plan.binaries[fills],) = plan.variant.binaries([("forward", frozenset())], plan.contiguous, total)
    return plan.binaries[fills]


def run(plan: Plan, args: list[Any], dim: tuple[int, ...], device: str, parts: int = 1) -> None:
    """Run the forward kernel on a device, outside of any tape."""
    apply_settings()
    if device == "python":
        run_python(plan, "forward", frozenset(), args, dim, {})
    elif device == "cuda":
        run_on_gpu(plan, args, dim)
    else:
        total, head = grid(dim, plan.kernel)
        binary = prepare(plan, total)
        block = block_of(plan, args, head)
        block = bytes(with_shadows(plan, args, bytearray(block))) if config.debug else block
        try:
            failure = strips.launch(binary, block, total, args, parts)
        finally:
            bump(plan, args)
        report(binary.code, failure, plan.kernel.name)
        return
    bump(plan, args)


def run_on_gpu(plan: Plan, args: list[Any], dim: tuple[int, ...]) -> None:
    """Run the forward kernel on the GPU, outside of any tape."""
    total, head = packed(dim)
    binary = binary_of(plan.variant, ("forward", frozenset(), plan.contiguous, False))
    block = with_shadows(plan, args, bytearray(block_of(plan, args, head)))
    Launching(binary, block, total, facts(plan, args, dim)).run()


def bump(plan: Plan, args: Sequence[Any]) -> None:
    now = clock.tick()
    for i in plan.variant.written:
        args[i]._storage.wrote(now)


_shadows = threading.local()
"""Keeps the shadows of this thread's last launch: `arrays`."""


def with_shadows(plan: Plan, args: Sequence[Any], block: bytearray) -> bytearray:
    """Debug mode: for every array that the launch writes, who stored to and who touched each of its numbers."""
    if not config.debug:
        return block
    _shadows.arrays = []
    zeros = device_zeros if plan.on_gpu else np.zeros
    for i in plan.variant.written:
        leaves = len(t.leaves(args[i].element))
        shadow = zeros((max(1, 3 * leaves * args[i].size),), np.int64)
        _shadows.arrays.append(shadow)
        struct.pack_into("<q", block, 8 * plan.variant.layout.slots[i].role("shadow"), shadow.ctypes.data)
    return block


def apply_settings() -> None:
    """Tell the native core what kc.config says."""
    if _settings != [config.threads, config.tape_limit]:
        _native.set_threads(config.threads)
        _native.set_tape_limit(config.tape_limit)
        _settings[:] = [config.threads, config.tape_limit]


# -- the interpreter as a device
def run_python(
    plan: Plan, which: str, seeds: frozenset[int], args: Sequence[Any], dim: tuple[int, ...],
    roles: dict[tuple[int, str], np.ndarray[Any, Any]], record: dict[tuple[int, int], int] | None = None,
) -> dict[tuple[int, int], int]:  # fmt: skip
    """Interpret a kernel on the arguments; `roles` holds arrays other than the arguments themselves."""
    kernel = plan.variant.ir_of(which, seeds)
    memory = memory_of(kernel, plan, args, dim)
    memory.arrays.update(roles)
    if record is not None:
        memory.record = record
    memory.shadow = {} if which == "forward" else None
    try:
        interpret(kernel, memory, CheckedThread if config.debug else None)
    finally:
        for line in memory.printed:
            print(line)
    return memory.record


def watch_python(plan: Plan, args: Sequence[Any], dim: tuple[int, ...], watched: frozenset[int]) -> None:
    """Interpret a launch on copies of what it writes; raise if its threads depend on each other."""
    memory = memory_of(plan.variant.kernel, plan, args, dim)
    memory.arrays.update({(i, "value"): args[i]._data.copy() for i in plan.variant.written})
    memory.shadow, memory.watched = {}, watched
    interpret(plan.variant.kernel, memory, WatchedThread)


def memory_of(kernel: ir.Kernel, plan: Plan, args: Sequence[Any], dim: tuple[int, ...]) -> Memory:
    memory = Memory({}, {}, dim)
    for i, (param, arg) in enumerate(zip(kernel.params, args, strict=True)):
        if param.array is not None:
            memory.arrays[i, "value"] = arg._data
        elif arg is not None:
            kind = t.resolve(plan.kernel.params[param.name], plan.variant.real)
            for leaf, value in zip(param.leaves, _flat(arg, kind), strict=True):
                memory.values[leaf] = leaf.type.numpy.type(value)
    return memory
