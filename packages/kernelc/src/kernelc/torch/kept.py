"""What a call from torch keeps for its reverse sweep: its tape, safe from later calls, as long as torch wants it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import torch

from ..errors import Overwritten
from ..runtime import Array, Tape
from ..runtime.kernels import Plan
from ..runtime.launches import apply_settings, run
from ..runtime.memory import Data, dense_copy
from ..runtime.reverse import Sweep
from ..runtime.storage import Storage
from .sharing import is_there, memory_of, tensor_of

alive: set[int] = set()
"""The tapes that may still go back."""


class CallTape(Tape):
    """The tape of one call: it runs forward once, and is safe from what later calls write."""

    def __init__(self) -> None:
        super().__init__()
        self._forward = _Nothing()
        self._ledger.detached = True
        self.watched: dict[Storage, int] = {}
        self.born = 0
        alive.add(id(self))

    def __del__(self, known: set[int] = alive) -> None:  # the name may be gone when the interpreter ends
        known.discard(id(self))

    def leads_to(self, a: Array) -> bool:
        """Whether an output depends on an input that requires a gradient."""
        root = a.root
        return a.real is not None and (root.requires_grad or root._storage in self._active)

    def seal(self, born: int) -> None:
        """Keep copies of arrays from outside that the call has written: others will write them again."""
        self.born = born
        me = ref(self)
        for entry in self.entries:
            used = entry.args or entry.reads
            for i, need in [*entry.needs.items(), *entry.finals.items()]:
                storage, version = need
                if need in self._copies:
                    continue
                if storage.number < born and storage in self._written:
                    self._copies[need] = dense_copy(used[i].root._data)
                elif storage not in self.watched:
                    self.watched[storage] = version
                    readers = [r for r in storage.readers if r() is not None] if storage.readers else []
                    storage.readers = [*readers, me]

    def _protect(self, targets: Sequence[Array], entry: Any) -> None:
        keep_for_readers(targets)
        super()._protect(targets, entry)

    def keep(self, a: Array) -> None:
        """Copy an array that another call is about to write."""
        storage = a._storage
        if self.watched.get(storage) == storage.version:
            del self.watched[storage]
            self._copies[storage, storage.version] = dense_copy(a.root._data)

    def _check_versions(self) -> None:
        for storage, version in self.watched.items():
            if storage.version != version:
                raise Overwritten(
                    "an array that the reverse sweep of a kernel operation needs was written after it ran",
                    advice="write to another array, or call backward first",
                )

    def sweep(self, seeds: Sequence[tuple[Array, Data]]) -> None:
        """Go back once: into new gradients of the call's own arrays, adding to those of leaves from outside."""
        self._check_versions()
        own = {storage for storage in self._active if storage.number >= self.born}
        for storage in own:
            storage.grad = None  # the last sweep's belongs to the caller
        sweep = Sweep(self, seeds, add=True, fresh=own)
        weights = sweep.give(seeds)
        apply_settings()
        failure = sweep.program.run()
        del weights  # their memory was read until here
        self._report(failure, sweep.codes)


def keep_for_readers(targets: Sequence[Array]) -> None:
    """`fn` may keep arrays for its next call: what is written there was perhaps read here."""
    for a in targets:
        for reader in a._storage.readers or ():
            tape = reader()
            if tape is not None:
                tape.keep(a)


class Guard(Tape):
    """Records nothing, but keeps what the reverse sweeps of earlier calls will read."""

    def _launch(
        self, plan: Plan, args: list[Any], dim: tuple[int, ...], device: str, parts: int = 1, block: bytes | None = None
    ) -> None:
        keep_for_readers([args[i] for i in plan.written])
        run(plan, args, dim, device, parts)

    def _write(self, target: Array, kind: str, source: Any) -> bool:
        keep_for_readers([target])
        return False


class _Nothing:
    """Stands for the program of a forward sweep that never runs again."""

    def _ignore(self, *args: Any, **named: Any) -> int:
        return 0

    add_launch = add_copy = add_zero = add_accumulate = add_call = keep = set_words = _ignore


class Input(NamedTuple):
    """A tensor as an array. `tensor` is detached: it has the version counter of the caller's, but not its graph."""

    tensor: torch.Tensor
    array: Array
    shared: bool


class Saved:
    """Everything that the reverse sweep of one call needs."""

    __slots__ = ("graph", "inputs", "lock", "name", "outputs", "tape", "watched")

    def __init__(
        self, name: str, tape: CallTape, inputs: list[Input | None], outputs: list[Array],
        watched: list[tuple[torch.Tensor, int, str]],
    ):  # fmt: skip
        self.name, self.tape, self.inputs, self.outputs, self.watched = name, tape, inputs, outputs, watched
        self.lock = threading.Lock()
        self.graph: tuple[Any, Sequence[Any], list[int]] | None = None
        """How gradients are made that have derivatives, from which arguments, and their versions."""

    def differentiable(self, wanted: Sequence[int], grads: Sequence[Any]) -> list[Any]:
        """The gradients of the inputs as operations of torch."""
        assert self.graph is not None
        again, args, versions = self.graph
        for n, (a, version) in enumerate(zip(args, versions, strict=True)):
            if isinstance(a, torch.Tensor) and a._version != version:
                raise Overwritten(f"{self.name}: argument {n} was changed in place, but its second derivative needs it",
                                  advice="change a copy: x = x.clone()")  # fmt: skip
        found: list[Any] = again(args, wanted, grads)
        return found

    def backward(self, grads: Sequence[Any]) -> list[Any]:
        """The gradients of the inputs, each in memory of its own."""
        for tensor, version, what in self.watched:
            if tensor._version != version:
                raise Overwritten(f"{self.name}: {what} was changed in place, but the reverse sweep needs it",
                                  advice="change a copy: x = x.clone()")  # fmt: skip
        seeds = [(a, _weights(g)) for a, g in zip(self.outputs, grads, strict=True) if g is not None]
        with self.lock:
            for i in self.inputs:
                if i is not None:
                    i.array._storage.grad = None
            self.tape.sweep(seeds)
            return [None if i is None else _gradient(i) for i in self.inputs]


def _weights(grad: torch.Tensor) -> Data:
    return memory_of(grad.contiguous() if is_there(grad) else grad)


def _gradient(i: Input) -> torch.Tensor | None:
    grad = i.array._storage.grad
    if grad is None:
        return None
    found = tensor_of(Array(grad, i.array.element))
    return found if i.tensor.ndim else found.reshape(())


tickets: dict[int, Saved] = {}
_numbers = count(1)


class _Ticket(np.ndarray[Any, Any]):
    """A number that stands for what a call keeps, as memory of a tensor.

    torch frees saved tensors after the reverse sweep, unless the graph is retained. The ticket goes with its memory,
    and what it stands for with the ticket. Copies of the tensor that share its memory are as good.
    """

    number = 0

    def __del__(self) -> None:
        tickets.pop(self.number, None)


def ticket_for(saved: Saved) -> torch.Tensor:
    number = next(_numbers)
    made = np.array(number).view(_Ticket)
    made.number = number
    tickets[number] = saved
    return torch.from_numpy(made)
