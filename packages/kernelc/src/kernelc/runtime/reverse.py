"""The reverse sweep of a tape as one native program: seeds, the adjoints in reverse order, what leaves had before.

Most of the time of a small adjoint goes into memory, so gradients are cleared only where a step needs zeros: the first
launch that adds to a gradient writes it instead, if it writes all of it, and the launch that wrote an output reads the
caller's weights where they are.
"""

from __future__ import annotations

import struct
from bisect import bisect
from collections.abc import Container, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from ..codegen import SPECIAL, UNASKED
from . import launches, strips
from .arrays import Array, as_view
from .cuda.device import device
from .cuda.launching import Launching, binary_of, check, facts
from .cuda.operations import add_in_place, adding
from .elements import gradient_dtype
from .memory import add_copy, add_zero, address_of, array_words, is_on_gpu, zeros_for
from .storage import Storage

if TYPE_CHECKING:
    from .entries import Entry, Need
    from .tape import Tape

Seeds = Sequence[tuple[Array, Any]]
Data = np.ndarray[Any, Any]


class Content(Enum):
    """What the memory of a gradient holds at one point of the sweep."""

    UNTOUCHED = "nothing was added yet; whatever an earlier sweep or the user left"
    WEIGHTS = "nothing but the weights of the caller, which are not copied yet"
    SPENT = "what was taken already: it counts as zero"
    ZERO = "zeros"
    SUM = "what was added so far"


class Sweep:
    """Builds the program for one set of seeds.

    add: to what the leaves have; else they begin from zero
    fresh: the gradients that are known to be zero
    """

    def __init__(self, tape: Tape, seeds: Seeds, *, add: bool, fresh: Container[Storage] = ()):
        self.tape, self.add, self.fresh = tape, add, fresh
        self.copies = tape._copies
        self.program = _native.Program()
        self.on_gpu = False
        self.codes: dict[int, Any] = {}
        self.places: list[tuple[int, int] | Data] = []
        self.roots = tape._active | {a._storage: a.root for a, _ in seeds}
        self.contents = {storage: self._at_first(storage) for storage in self.roots}
        self.weights: dict[Storage, int] = {}
        self._build(seeds)
        grads = [(s.grad_address(), s.grad.nbytes) for s in self.roots if s.grad is not None]
        spans = sorted((at, at + size) for at, size in grads)
        self._begins, self._ends = [begin for begin, _ in spans], [end for _, end in spans]
        self._held = [(root, root.requires_grad, storage.grad) for storage, root in self.roots.items()]
        # The tape holds its sweeps: without a circle it goes when it is dropped.
        del self.tape

    def holds(self) -> bool:
        """Whether the leaves, and the memory of all gradients, are those that it was made for."""
        return all(root.requires_grad is flag and root._storage.grad is grad for root, flag, grad in self._held)

    def give(self, seeds: Seeds) -> list[Any]:
        """Tell the program where the weights are; what is returned must live until it has run."""
        kept = []
        for place, (_, content) in zip(self.places, seeds, strict=True):
            if not isinstance(place, tuple):
                place[...] = content.reshape(place.shape)
                continue
            content = np.ascontiguousarray(content)
            address = address_of(content)
            if self._meets_gradient(address, address + content.nbytes) or not content.flags.writeable:
                content = content.copy()  # the sweep changes gradients while it still reads weights
                address = address_of(content)
            self.program.set_words(*place, address)
            kept.append(content)
        return kept

    def _meets_gradient(self, begin: int, end: int) -> bool:
        i = bisect(self._begins, begin)
        return (i > 0 and begin < self._ends[i - 1]) or (i < len(self._begins) and self._begins[i] < end)

    # -- the whole
    def _build(self, seeds: Seeds) -> None:
        before = self._keep_leaves() if self.add else []
        self.places = [self._seed(n, a, seeds) for n, (a, _) in enumerate(seeds)]
        for entry in reversed(self.tape.entries):
            self._reverse(entry)
        for storage, root in self.roots.items():
            content = self.contents[storage]
            seen = root.requires_grad or storage in self.tape._results
            if content in (Content.WEIGHTS, Content.SPENT) or (seen and content is Content.UNTOUCHED):
                self._settle(storage)
            self.program.keep(root._grad_memory())
        for grad, kept in before:
            accumulate(self.program, grad, kept)
        if self.on_gpu:
            self.program.add_call(lambda: check(device()))

    def _at_first(self, storage: Storage) -> Content:
        if storage in self.fresh:
            return Content.ZERO
        leaf = self.roots[storage].requires_grad or storage in self.tape._inputs
        return Content.SUM if self.add and leaf and storage not in self.tape._written else Content.UNTOUCHED

    def _keep_leaves(self) -> list[tuple[Data, Data]]:
        """A leaf that is overwritten: its buffer is the adjoint of the last content while going back."""
        before = []
        for storage, root in self.roots.items():
            if root.requires_grad and storage in self.tape._written and storage not in self.fresh:
                grad = root._grad_memory()
                assert grad is not None
                kept = zeros_for(grad)
                add_copy(self.program, kept, grad)
                before.append((grad, kept))
        return before

    def _seed(self, number: int, a: Array, seeds: Seeds) -> tuple[int, int] | Data:
        """Where the program is to be told of the weights of an array, or a buffer for them."""
        grad, storage = a._grad_memory(), a._storage
        assert grad is not None
        self.program.keep(grad)
        plain = grad.dtype.names is None and grad.flags.c_contiguous and not is_on_gpu(grad)
        alone = sum(other._storage is storage for other, _ in seeds) == 1
        if plain and alone and grad.size == a.root._data.size and self._is_nothing(storage):
            self.contents[storage] = Content.WEIGHTS
            self.weights[storage] = number
            return (-1, 0)  # known as soon as somebody reads them
        self._settle(storage)
        self.contents[storage] = Content.SUM
        if plain:
            return self.program.add_accumulate(grad.ctypes.data, 0, grad.size, grad.itemsize), 1
        buffer: Data = zeros_for(a._data, gradient_dtype(a.element))
        accumulate(self.program, grad, buffer)
        return buffer

    def _settle(self, storage: Storage) -> None:
        """From here on the memory holds what it means."""
        grad = self._root_grad(storage)
        content = self.contents[storage]
        if content is Content.WEIGHTS:
            step = self.program.add_copy(grad.ctypes.data, 0, grad.nbytes)
            self.places[self.weights.pop(storage)] = (step, 1)
            self.contents[storage] = Content.SUM
        elif content in (Content.UNTOUCHED, Content.SPENT):
            self._clear(grad)
            self.contents[storage] = Content.ZERO

    def _root_grad(self, storage: Storage) -> Data:
        grad = self.roots[storage]._grad_memory()
        assert grad is not None
        return grad

    def _clear(self, grad: Data) -> None:
        add_zero(self.program, grad)

    def _is_nothing(self, storage: Storage) -> bool:
        """Whether a gradient is known to be zero here."""
        return self.contents.get(storage) in (None, Content.UNTOUCHED, Content.SPENT, Content.ZERO)

    # -- one step of the tape
    def _reverse(self, entry: Entry) -> None:
        if entry.backward is not None:
            self._reverse_operation(entry)
        elif entry.plan is None:
            self._reverse_write(entry)
        elif entry.seeds is not None and entry.active:
            if all(self._is_nothing(a._storage) for a in entry.written):
                return  # nobody asks for what this launch wrote
            if entry.device == "python":
                self._use([entry.args[i] for i in entry.active])
                self.program.add_call(lambda: self._reverse_in_python(entry))
            else:
                self._reverse_launch(entry)

    def _use(self, arrays: Sequence[Array]) -> None:
        """A step reads and changes these gradients in ways that are not known."""
        for a in arrays:
            if a._storage in self.contents:
                self._settle(a._storage)
                self.contents[a._storage] = Content.SUM

    def _take(self, a: Array) -> None:
        """The gradient of an array has been passed on: it is zero now."""
        storage = a._storage
        grad = a._grad_memory()
        if storage not in self.contents or grad is None:
            return
        if a._data.size == a.root._data.size:
            self.contents[storage] = Content.SPENT
        else:
            self._clear(grad)

    def _reverse_operation(self, entry: Entry) -> None:
        self._use([*entry.reads, *entry.writes])
        self.program.add_call(lambda: self._run_operation(entry))
        for a in entry.writes:
            if all(a._storage is not r._storage for r in entry.reads):
                self._take(a)

    def _run_operation(self, entry: Entry) -> None:
        """Run the user's backward function, with what it read put back where it has been overwritten since."""
        assert entry.backward is not None
        with entry.restored(self.copies):
            entry.backward()

    def _reverse_write(self, entry: Entry) -> None:
        target = entry.writes[0]
        if target.grad is None or self._is_nothing(target._storage):
            return
        for source in entry.reads:
            if source.grad is None:
                continue
            self._use([target, source])
            if source._storage is target._storage:
                # Both are parts of one gradient: all of it is read before any of it is cleared.
                passed = zeros_for(target.grad._data)
                add_copy(self.program, passed, target.grad._data)
                self._clear(target.grad._data)
                accumulate(self.program, source.grad._data, passed)
                return
            accumulate(self.program, source.grad._data, target.grad._data)
        self._use([target])
        self._take(target)

    # -- launches
    def _reverse_launch(self, entry: Entry) -> None:
        plan = entry.plan
        assert plan is not None and entry.seeds is not None
        total, head = launches.packed(entry.dim)
        on_gpu = entry.device == "cuda"
        if entry.record is not None and not on_gpu:
            head = head[:32] + struct.pack("<q", entry.record.pointer)
        memory = [self._memory(entry, i) if pack is None else None for i, pack in enumerate(plan.packers)]
        dense = frozenset(i for i, m in enumerate(memory) if m is not None and m[2])
        grads = [entry.args[i]._storage for i in entry.active]
        # Two arguments that are parts of one array have one gradient: threads must not add to it at the same time, nor
        # may a group see part of it through a copy.
        apart = len(set(grads)) == len(grads)
        binary: Any
        if on_gpu:
            binary = binary_of(plan.variant, ("adjoint", entry.seeds, dense, not apart))
        else:
            (binary,) = plan.variant.binaries([("adjoint", entry.adjoint)], dense, total if apart else 1)
        if apart:
            special = self._special(entry, binary)
        else:
            special = {}
            self._use([entry.args[i] for i in entry.active])
        spare = self._spare(entry)
        words = [head]
        for i, (pack, a, m) in enumerate(zip(plan.packers, entry.args, memory, strict=True)):
            if pack is not None:
                words.append(pack(a))
            else:
                assert m is not None
                address, content, _, grad, grad_at, final = m
                grad, at = (spare[i], 0) if i in spare else (grad, grad_at)
                word = UNASKED if i in spare else SPECIAL if i in special else 0
                words.append(array_words(address, a.shape, content.strides, grad, final, special=word, grad_at=at))
        self.program.keep((entry, binary, memory))
        if on_gpu:
            known = facts(plan, entry.args, entry.dim)
            launch = Launching(binary, bytearray(b"".join(words)), total, known, entry.count, entry.record)
            self.program.add_call(launch.run)
            self.on_gpu = True
            return
        step = strips.add_launch(self.program, binary, b"".join(words), total, entry.args, self.tape._scratch, apart,
                                 spare, parts=entry.parts)  # fmt: skip
        for i, number in special.items():
            if number is not None:
                self.places[number] = (step, binary.layout.slots[i].role("grad"))
        self.codes[step] = binary.code

    def _spare(self, entry: Entry) -> dict[int, Data]:
        """Zeros for the gradients that the adjoint brings, and nobody asked for."""
        assert entry.plan is not None
        if entry.adjoint == entry.seeds:
            return {}
        found = {}
        for i in entry.plan.variant.adjoint_reads(entry.adjoint)[0] - entry.active:
            like, dtype = entry.args[i]._data, gradient_dtype(entry.args[i].element)
            buffer = self.tape._scratch.get(-1 - i, like.size * dtype.itemsize)
            self.program.add_zero(buffer.ctypes.data, buffer.nbytes)
            self.program.keep(buffer)
            found[i] = buffer.view(dtype).reshape(like.shape)
        return found

    def _special(self, entry: Entry, binary: Any) -> dict[int, int | None]:
        """The arguments whose gradient the launch writes instead of adding to it (None), or only reads: the weights of
        a seed, with its number. All other gradients are made ready."""
        found: dict[int, int | None] = {}
        for i in entry.active:
            a, storage = entry.args[i], entry.args[i]._storage
            whole = a.shape == entry.dim and a._data.size == a.root._data.size
            content = self.contents[storage]
            if whole and a._data.flags.c_contiguous and i in binary.taken and content is Content.WEIGHTS:
                found[i] = self.weights.pop(storage)
                self.contents[storage] = self._at_first(storage)
            elif whole and i in binary.first and self._is_nothing(storage):
                found[i] = None
                self.contents[storage] = Content.SUM
            else:
                self._settle(storage)
                taken = whole and i in binary.taken
                self.contents[storage] = Content.ZERO if taken else Content.SUM
        return found

    def _memory(self, entry: Entry, i: int) -> tuple[int, Data, bool, Data | None, int, int]:
        """Where the content of an argument was; whether it lies densely, and its gradient, too; that, and its address
        if it is known; where the final content is."""
        a = entry.args[i]
        copy = self.copies.get(entry.needs[i]) if i in entry.needs else None
        content, address = a._data, a._address
        if copy is not None:
            content = as_view(a, copy)
            address = content.ctypes.data
        grad = a._grad_memory() if i in entry.active else None
        grad_at = a._storage.grad_address() if grad is not None and grad is a._storage.grad else 0
        final = 0
        if i in entry.finals:
            found = entry.dense(i, self._content(entry.finals[i], a))
            final = found.ctypes.data
            self.program.keep(found)
        dense = content.flags.c_contiguous and (grad is None or grad.flags.c_contiguous)
        return address, content, dense, grad, grad_at, final

    def _content(self, need: Need, a: Array) -> Data:
        """The memory that holds what an argument held at a version, seen as the argument sees it."""
        copy = self.copies.get(need)
        return a._data if copy is None else as_view(a, copy)

    def _reverse_in_python(self, entry: Entry) -> None:
        assert entry.plan is not None and entry.seeds is not None
        roles: dict[tuple[int, str], Data] = {}
        for i in entry.plan.arrays:
            a = entry.args[i]
            if i in entry.needs:
                roles[i, "value"] = self._content(entry.needs[i], a)
            if i in entry.finals:
                roles[i, "final"] = self._content(entry.finals[i], a)
            if i in entry.active and a.grad is not None:
                roles[i, "grad"] = a.grad._data
        launches.run_python(entry.plan, "adjoint", entry.seeds, entry.args, entry.dim, roles, entry.record)


def accumulate(program: Any, into: Data, what: Data) -> None:
    """Add the step `into += what` to a program."""
    program.keep((into, what))
    same = into.dtype.names is None and into.dtype == what.dtype and is_on_gpu(into) == is_on_gpu(what)
    if same and into.flags.c_contiguous and what.flags.c_contiguous:
        if is_on_gpu(into) and is_on_gpu(what):
            program.add_call(adding(into, what).run)
        else:
            program.add_accumulate(into.ctypes.data, what.ctypes.data, into.size, into.itemsize)
    else:
        program.add_call(lambda: add_in_place(into, what))
