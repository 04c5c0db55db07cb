"""Tangents of a tape: directions pushed through its launches in the order they ran, as one native program.

The launches themselves do not run again. A tangent kernel reads what its launch has read, where the reverse sweep would
find it: in the arrays, or in the copies that the tape keeps of what was overwritten.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .. import types as t
from ..adjoint import TangentKernel
from ..config import config
from ..errors import NotDifferentiable, Overwritten, TapeError, WrongShape
from . import launches, strips
from .arrays import Array, as_view
from .checked import CheckedThread
from .compile import tangent_name
from .cuda.data import upload
from .cuda.device import device
from .cuda.launching import Launching, binary_of, check, facts
from .directions import WIDTHS, chunks
from .interpreter import interpret
from .memory import Data, add_copy, add_zero, array_words, is_on_gpu, zeros_for
from .storage import Storage

if TYPE_CHECKING:
    from .entries import Entry, Need
    from .tape import Tape

_MOST_WORDS = 500
"""A launch on a GPU takes four kilobytes of arguments."""


class Planes:
    """The tangents of a piece of memory: `width` arrays, each as the whole of it.

    Those of a number lie side by side, unless they are fields of structs (adjoint/forward.py).
    """

    def __init__(self, like: Data, width: int):
        self.key = (width, like.shape, like.dtype)
        self.width, self.together = width, width > 1 and like.dtype.names is None
        self.dense = not is_on_gpu(like) and like.flags.c_contiguous
        self.block: Data | None = None
        if self.together:
            # In the order of the memory, which need not be that of its axes.
            block: Data = np.zeros_like(like, np.dtype([("dots", like.dtype, (width,))]))["dots"]
            self.block, self.each = block, [block[..., j] for j in range(width)]
        else:
            self.each = [zeros_for(like) for _ in range(width)]

    def parts(self, a: Array) -> list[Data]:
        """The tangents of an array of this memory: one by one, or all with an axis behind where they lie together."""
        if not self.together:
            return [as_view(a, data) for data in self.each]
        first = as_view(a, self.each[0])
        shape, strides = (*first.shape, self.width), (*first.strides, first.itemsize)
        return [np.lib.stride_tricks.as_strided(first, shape, strides)]

    def seen(self, a: Array) -> Sequence[Data]:
        """The tangents of an array of this memory, one by one, where NumPy can read them."""
        views = [as_view(a, data) for data in self.each]
        return [data.host() if is_on_gpu(data) else data for data in views]

    def put(self, a: Array, content: Data) -> None:
        """Write the first tangents of an array of this memory."""
        for data, part in zip(self.each, content, strict=False):
            as_view(a, data)[...] = upload(part) if is_on_gpu(data) else part

    def clear(self) -> None:
        for data in self.each if self.block is None else [self.block]:
            data[...] = np.zeros((), data.dtype)

    def add_zero(self, program: Any, a: Array) -> None:
        """Add the step that clears the tangents of an array of this memory to a program."""
        for data in self.parts(a):
            add_zero(program, data)


class Push:
    """Builds the program that pushes `count` tangents of the arrays `inputs` to the arrays `outputs`."""

    def __init__(self, tape: Tape, inputs: Sequence[Array], outputs: Sequence[Array], count: int):
        self.tape, self.inputs, self.outputs = tape, inputs, outputs
        self.program = _native.Program()
        self.codes: dict[int, Any] = {}
        self.on_gpu = any(e.device == "cuda" for e in tape.entries)
        self.given: list[tuple[int, int, dict[Storage, Planes]]] = []
        self.found: list[tuple[int, dict[Storage, Planes]]] = []
        self.wanted = {a._storage for a in outputs}
        self.last = {a._storage: n for n, e in enumerate(tape.entries) for a in _arrays_of(e)}
        self.pool: dict[Any, list[Planes]] = {}
        self.dots: dict[Storage, Planes] = {}
        self.there = self.width = 1
        for first, there, width in chunks(count, 1 if self.on_gpu else WIDTHS[-1]):
            self.there, self.width = there, width
            self._chunk(first)
        if self.on_gpu:
            self.program.add_call(lambda: check(device()))

    # -- the whole
    def _chunk(self, first: int) -> None:
        self.dots = {a._storage: self._planes(a) for a in self.inputs}
        self.given.append((first, self.there, dict(self.dots)))
        self.program.keep(list(self.dots.values()))
        for n, entry in enumerate(self.tape.entries):
            self._push(entry)
            for a in _arrays_of(entry):
                if self.last[a._storage] == n and a._storage not in self.wanted:
                    self._drop(a._storage)
        self.found.append((self.there, {s: self.dots[s] for s in self.wanted if s in self.dots}))

    def give(self, directions: Mapping[Array, Data]) -> None:
        """Put the directions where the program begins."""
        for first, there, planes in self.given:
            for each in planes.values():
                each.clear()
            for a, content in directions.items():
                planes[a._storage].put(a, content[first : first + there])

    def take(self, a: Array) -> list[Data]:
        """The tangents of an output after the program ran."""
        parts: list[Data] = []
        for there, planes in self.found:
            known = planes.get(a._storage)
            if known is None:
                parts.extend(np.zeros((there, *a._data.shape), self.dtype(a)))
            else:
                parts.extend(known.seen(a)[:there])
        return parts

    def dtype(self, a: Array) -> np.dtype[Any]:
        """Of the tangents of an array."""
        found: np.dtype[Any] = a._data.dtype
        return found

    # -- memory of tangents
    def _drop(self, storage: Storage) -> None:
        """The tangents of this memory are zero, or of no use, from here on."""
        planes = self.dots.pop(storage, None)
        if planes is not None and planes.dense:
            self.pool.setdefault(planes.key, []).append(planes)

    def _planes(self, a: Array) -> Planes:
        return Planes(a.root._data, self.width)

    def _ready(self, a: Array, *, whole: bool = False) -> Planes:
        """The tangents of the memory of an array: zeros, if there were none so far, unless all of it is written."""
        planes = self.dots.get(a._storage)
        if planes is None:
            free = self.pool.get((self.width, a.root._data.shape, a.root._data.dtype))
            planes = free.pop() if free else self._planes(a)
            if not whole:
                planes.add_zero(self.program, a.root)
            self.program.keep(planes)
            self.dots[a._storage] = planes
        return planes

    def _clear(self, a: Array) -> None:
        """An array is written with something that does not move."""
        if a._storage in self.dots:
            if a._data.size == a.root._data.size:
                self._drop(a._storage)
            else:
                self.dots[a._storage].add_zero(self.program, a)

    def _content(self, entry: Entry, need: Need, a: Array) -> Data:
        """What an argument held when its launch ran."""
        copy = self.tape._copies.get(need)
        if copy is not None:
            return as_view(a, copy)
        if need[1] != self.tape._versions[need[0]]:
            raise Overwritten(
                f"a later step overwrites what the tangents of {entry.label} need, and the tape kept no copy of it",
                entry.span,
                advice="mark what has tangents before it is launched with: requires_grad=True",
            )
        return a._data

    # -- one step of the tape
    def _push(self, entry: Entry) -> None:
        if entry.backward is not None:
            self._operation(entry)
        elif entry.plan is None:
            self._write(entry)
        else:
            self._launch(entry)

    def _write(self, entry: Entry) -> None:
        (target,) = entry.writes
        for source in entry.reads:
            if source._storage in self.dots and target.real is not None:
                moved, apart = self.dots[source._storage], source._storage is not target._storage
                for into, what in zip(self._ready(target).parts(target), moved.parts(source), strict=True):
                    self._add_copy(into, what, apart=apart)
                return
        self._clear(target)

    def _add_copy(self, into: Data, what: Data, *, apart: bool) -> None:
        if apart and into.shape == what.shape:
            add_copy(self.program, into, what)
        else:
            self.program.add_call(lambda: into.__setitem__(..., what if apart else what.copy()))

    def _operation(self, entry: Entry) -> None:
        if not any(a._storage in self.dots for a in entry.reads):
            for a in entry.writes:
                self._clear(a)
            return
        if entry.tangent is None:
            raise NotDifferentiable(
                f"{entry.label} has no tangent, but a tangent goes through it", entry.span,
                advice="give it one: tape.record(backward, …, tangent=function)")  # fmt: skip
        reads = [self.dots.get(a._storage) for a in entry.reads]
        writes = [self._ready(a) if a.real is not None else None for a in entry.writes]
        there = self.there
        self.program.add_call(lambda: self._run_operation(entry, reads, writes, there))

    def _run_operation(
        self, entry: Entry, reads: list[Planes | None], writes: list[Planes | None], there: int
    ) -> None:  # fmt: skip
        """Run the user's function, with what it read put back where it has been overwritten since."""
        assert entry.tangent is not None
        given = [
            None if a.real is None
            else np.zeros((there, *a._data.shape), a._data.dtype) if planes is None
            else np.stack(planes.seen(a)[:there])
            for a, planes in zip(entry.reads, reads, strict=True)
        ]  # fmt: skip
        with entry.restored(self.tape._copies):
            found = entry.tangent(*given)
        results = found if isinstance(found, (tuple, list)) else (found,)
        if len(results) != len(writes):
            raise TapeError(f"the tangent of {entry.label} returned {len(results)} arrays for {len(writes)} that it "
                            "writes", entry.span, advice="return one for each, in their order")  # fmt: skip
        for a, planes, result in zip(entry.writes, writes, results, strict=True):
            if planes is not None:
                self._put(entry, a, planes, result, there)

    def _put(self, entry: Entry, a: Array, planes: Planes, result: Any, there: int) -> None:
        content = np.zeros((there, *a._data.shape)) if result is None else np.asarray(result)
        if content.shape != (there, *a._data.shape):
            raise WrongShape(f"the tangent of {entry.label} returned an array of shape {content.shape}, not "
                             f"{(there, *a._data.shape)}")  # fmt: skip
        planes.put(a, content.astype(a._data.dtype, copy=False))

    # -- launches
    def _launch(self, entry: Entry) -> None:
        plan, args = entry.plan, entry.args
        assert plan is not None
        variant = plan.variant
        touched = [i for i in plan.arrays if i in variant.touched]
        seeds = frozenset(i for i in touched if args[i].real is not None and args[i]._storage in self.dots)
        if not seeds:
            return
        if variant.has_ties and entry.seeds:
            seeds = seeds.union(~i for i in entry.seeds - seeds)
        which = tangent_name(self.width)
        made = variant.tangent(which, seeds)
        if made.works:
            self._add(entry, (which, seeds), made, self._added(entry, made))

    def _add(
        self, entry: Entry, kernel: tuple[str, frozenset[int]], made: TangentKernel, added: Mapping[int, Data],
        grads: Mapping[int, Data] = MappingProxyType({}), apart: bool = True,
    ) -> None:  # fmt: skip
        """Add the launch of a tangent kernel: `added` is the memory of the parameters that it has beside its own.

        grads: the memory of adjoints, by position; apart: whether no two of them are one.
        """
        plan, args = entry.plan, entry.args
        assert plan is not None
        total, head = launches.packed(entry.dim)
        if entry.record is not None and entry.device == "cpu":
            head = head[:32] + struct.pack("<q", entry.record.pointer)
        contents = {i: self._content(entry, entry.found[i], args[i]) if i in made.reads else args[i]._data
                    for i in plan.arrays}  # fmt: skip
        finals = {i: self._final(entry, i) for i in made.finals}
        if entry.device == "python":
            self.program.add_call(lambda: self._run_in_python(entry, made, contents, finals, added, grads))
            return
        planes = {i: [added[r.position] for k, refs in made.planes.items() if max(k, ~k) == i for r in refs]
                  for i in plan.arrays}  # fmt: skip
        dense = frozenset(
            i for i in plan.arrays
            if not args[i]._sig[-1]
            and all(d.flags.c_contiguous for d in (contents[i], grads.get(i, contents[i]), *planes[i]))
        )  # fmt: skip
        words = [head]
        for i, (pack, a) in enumerate(zip(plan.packers, args, strict=True)):
            if pack is not None:
                words.append(pack(a))
            else:
                final = _address(finals[i]) if i in finals else 0
                words.append(array_words(_address(contents[i]), a.shape, contents[i].strides, grads.get(i), final))
        for param in made.kernel.params[len(args) :]:
            assert param.array is not None
            words.append(self._words(added[param.array.position], param.array.type.ndim, made, param.array.position))
        self.program.keep((entry, contents, finals, added, grads))
        if entry.device == "cuda":
            self._add_on_gpu(entry, made, (*kernel, dense, not apart), b"".join(words), added)
            return
        (binary,) = plan.variant.binaries([kernel], dense, total if apart else 1)
        spread = [*args, *[SimpleNamespace(_data=added[p]) for p in sorted(added)]]
        step = strips.add_launch(self.program, binary, b"".join(words), total, spread, self.tape._scratch, apart,
                                 grads, parts=entry.parts)  # fmt: skip
        self.codes[step] = binary.code

    def _added(self, entry: Entry, made: TangentKernel) -> dict[int, Data]:
        """By position: the memory of what was added to the parameters of a launch."""
        assert entry.plan is not None
        found: dict[int, Data] = {}
        for i, refs in made.planes.items():
            a = entry.args[i]
            covers = i in made.whole and a.shape == entry.dim and a._data.size == a.root._data.size
            planes = self._ready(a, whole=covers)
            found.update((r.position, data) for r, data in zip(refs, planes.parts(a), strict=True))
        for i, ref in made.claims.items():
            a = entry.args[i]
            ones = np.ones(a._data.shape, a._data.dtype)
            kept: Any = upload(ones) if is_on_gpu(a._data) else ones
            free: Any = zeros_for(a._data)
            add_copy(self.program, free, kept)
            found[ref.position] = free
        return found

    def _words(self, data: Data, ndim: int, made: TangentKernel, position: int) -> bytes:
        claimed = any(ref.position == position for ref in made.claims.values())
        if claimed:
            return array_words(0, data.shape[:ndim], data.strides, data)
        return array_words(_address(data), data.shape[:ndim], data.strides)

    def _final(self, entry: Entry, i: int) -> Data:
        return entry.dense(i, self._content(entry, entry.finals.get(i) or entry.after[i], entry.args[i]))

    def _add_on_gpu(
        self, entry: Entry, made: TangentKernel, job: Any, words: bytes, added: Mapping[int, Data]
    ) -> None:  # fmt: skip
        plan = entry.plan
        assert plan is not None
        binary = binary_of(plan.variant, job)
        if binary.layout.words > _MOST_WORDS:
            raise TapeError(f"the tangents of {entry.label} take more arguments than a launch on a GPU can have",
                            entry.span, advice="split the kernel, or run it on the CPU")  # fmt: skip
        known = facts(plan, entry.args, entry.dim)
        refs = {p.array.position: p.array for p in made.kernel.params if p.array is not None}
        known.shapes.update({p: data.shape[: refs[p].type.ndim] for p, data in added.items()})  # type: ignore[attr-defined]
        total, _ = launches.packed(entry.dim)
        launch = Launching(binary, bytearray(words), total, known, None, entry.record)
        self.program.add_call(launch.run)

    def _run_in_python(
        self, entry: Entry, made: TangentKernel, contents: Mapping[int, Data], finals: Mapping[int, Data],
        added: Mapping[int, Data], grads: Mapping[int, Data],
    ) -> None:  # fmt: skip
        assert entry.plan is not None
        memory = launches.memory_of(entry.plan.variant.kernel, entry.plan, entry.args, entry.dim)
        memory.arrays.update({(i, "value"): data for i, data in contents.items()})
        memory.arrays.update({(i, "final"): data for i, data in finals.items()})
        claimed = {ref.position for ref in made.claims.values()}
        refs = {p.array.position: p.array.type for p in made.kernel.params if p.array is not None}
        for p, data in added.items():
            shape = data.shape[: refs[p].ndim] + t.element_dtype(refs[p].element)[1]
            memory.arrays[p, "grad" if p in claimed else "value"] = data.reshape(shape)
        memory.arrays.update({(i, "grad"): data for i, data in grads.items()})
        memory.record = entry.record or {}
        interpret(made.kernel, memory, CheckedThread if config.debug else None)


def _address(data: Data) -> int:
    return int(data.ctypes.data)


def _arrays_of(entry: Entry) -> list[Array]:
    """All arrays that a step has to do with."""
    if entry.plan is not None:
        return [entry.args[i] for i in entry.plan.arrays]
    return [*entry.reads, *entry.writes]
