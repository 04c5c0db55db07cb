"""Pictures as operations of torch: each way through the kernels is recorded once, and replayed with other numbers.

Recording costs as much as drawing a small picture; a replay is one native call, and so is its reverse sweep. A
recording belongs to one call until torch frees what it saved for that call's gradient. Then the next call of the same
kind may have it. So calls may be nested, repeated, and go back in any order.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

import kernelc as kc
from kernelc.torch import follow, once
from nablasim.render.either import below, is_mapped

MOST_IDLE = 8
"""How many recordings a renderer keeps for later."""

FIRST_ONLY = (
    "pictures have a first derivative only: leave out create_graph=True, or take differences of the gradient"
)

Draw = Callable[[dict[str, Any], dict[str, Any]], tuple[list[Any], list[tuple[Any, Any]]]]
"""From arrays and numbers (arrays of one element) to pictures, and the lists that have to be long enough."""


class Recording:
    """One way through the kernels: arrays for what goes in and comes out, and the tape between them."""

    def __init__(self, draw: Draw, names: Sequence[str], tensors: Sequence[Any], needs: Sequence[bool],
                 numbers: Mapping[str, float]):  # fmt: skip
        self.inputs = [
            kc.array(np.array(_numpy(x), order="C"), requires_grad=bool(wants)) for x, wants in zip(tensors, needs)
        ]
        real = kc.float64 if tensors[0].dtype == torch.float64 else kc.float32
        self.numbers = {name: kc.array(np.array([value]), real=real, dtype=float) for name, value in numbers.items()}
        self.values = dict(numbers)
        with kc.Tape() as self.tape:
            self.outputs, self.lists = draw(dict(zip(names, self.inputs)), self.numbers)

    def run(self, tensors: Sequence[Any], numbers: Mapping[str, float]) -> bool:
        """Draw again; whether the lists of tiles were long enough. If not, it took long, but is right."""
        for array, x in zip(self.inputs, tensors):
            array.assign(_numpy(x))
        for name, value in numbers.items():
            if value != self.values[name]:
                self.numbers[name].assign(np.array([value]))
        self.values = dict(numbers)
        self.tape.replay()
        return all(starts.numpy()[:, -1].max(initial=0) <= items.shape[1] for starts, items in self.lists)

    def results(self) -> list[torch.Tensor]:
        return [torch.from_numpy(a.numpy().copy()) for a in self.outputs]

    def gradients(self, grads: Sequence[Any]) -> list[Any]:
        """Of what goes in, for gradients of what came out."""
        seeds = {a: _numpy(g) for a, g in zip(self.outputs, grads) if g is not None and g.dtype.is_floating_point}
        if not seeds:
            return [None] * len(self.inputs)
        self.tape.zero()
        self.tape.backward(grads=seeds)
        found = [a.grad if a.requires_grad else None for a in self.inputs]
        return [None if g is None else torch.from_numpy(g.numpy().copy()) for g in found]

    def tangents(self, moving: Mapping[int, Any]) -> list[Any]:
        """Of what came out, (k, ...), where inputs by number move by (k, ...); None where that is not real."""
        real = [a for a in self.outputs if a.real is not None]
        given = {self.inputs[i]: _numpy(x) for i, x in moving.items() if self.inputs[i] in self.tape}
        count = len(next(iter(moving.values())))
        found = self.tape.jvp(given, outputs=real) if given else {}
        return [
            None if a.real is None
            else torch.from_numpy(found[a].numpy() if a in found else np.zeros((count, *a.numpy().shape)))
            for a in self.outputs
        ]  # fmt: skip


class Pool:
    """The recordings of one renderer that nobody uses at the moment, the latest last."""

    def __init__(self) -> None:
        self.idle: list[tuple[Hashable, Recording]] = []
        self.lock = threading.Lock()

    def take(self, key: Hashable) -> Recording | None:
        with self.lock:
            for k in reversed(range(len(self.idle))):
                if self.idle[k][0] == key:
                    return self.idle.pop(k)[1]
        return None

    def give_back(self, key: Hashable, recording: Recording) -> None:
        with self.lock:
            self.idle.append((key, recording))
            del self.idle[:-MOST_IDLE]


_pools: weakref.WeakKeyDictionary[Any, Pool] = weakref.WeakKeyDictionary()


def pool_of(renderer: Any) -> Pool:
    """Not an attribute of the renderer: copies of a module have recordings of their own."""
    return _pools.setdefault(renderer, Pool())


def run(
    pool: Pool, key: Hashable, draw: Draw, names: Sequence[str], tensors: Sequence[torch.Tensor],
    numbers: Mapping[str, float],
) -> list[torch.Tensor]:  # fmt: skip
    """Draw pictures of tensors: one node of torch's graph, where one of them requires a gradient."""
    if any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors)):
        op = Drawing(pool, key, draw, names, tensors, numbers)
        return list(follow(op, [tensors[i] for i in op.leaves]))
    if any(map(_moves, tensors)) or (torch.is_grad_enabled() and any(x.requires_grad for x in tensors)):
        return list(_Pictures.apply(pool, key, draw, names, numbers, *tensors))
    recording, key = _recorded(pool, key, draw, names, tensors, (False,) * len(tensors), numbers)
    results = recording.results()
    pool.give_back(key, recording)
    return results


def push(
    pool: Pool, key: Hashable, draw: Draw, names: Sequence[str], tensors: Sequence[torch.Tensor],
    numbers: Mapping[str, float], moving: Mapping[str, torch.Tensor],
) -> tuple[list[torch.Tensor], list[Any]]:  # fmt: skip
    """Draw pictures, and say how they move where inputs by name do: k directions along an axis in front."""
    needs = [name in moving for name in names]
    recording, key = _recorded(pool, key, draw, names, tensors, needs, numbers)
    results = recording.results()
    found = recording.tangents({names.index(name): way for name, way in moving.items()})
    pool.give_back(key, recording)
    return results, found


def _recorded(
    pool: Pool, key: Hashable, draw: Draw, names: Sequence[str], tensors: Sequence[Any], needs: Sequence[bool],
    numbers: Mapping[str, float],
) -> tuple[Recording, Hashable]:  # fmt: skip
    """A recording that has just drawn these tensors."""
    key = (key, tuple(needs), tuple((x.dtype, x.shape) for x in tensors), kc.config.debug, kc.config.singular)
    found = pool.take(key)
    if found is None or not found.run(tensors, numbers):
        found = Recording(draw, names, tensors, needs, numbers)
    return found, key


class Drawing:
    """Pictures as a function of the inputs that move or ask for gradients: see `kernelc.torch.Followed`."""

    name = "a picture"

    def __init__(
        self, pool: Pool, key: Hashable, draw: Draw, names: Sequence[str], tensors: Sequence[Any],
        numbers: Mapping[str, float],
    ):  # fmt: skip
        self.pool, self.how, self.numbers = pool, (key, draw, names), numbers
        reals = [x.dtype.is_floating_point for x in tensors]
        for name, x, real in zip(names, tensors, reals):
            if not real and is_mapped(x):
                raise TypeError(f"vmap goes over {name}, which are whole numbers: draw such pictures one by one")
        wrapped = torch._C._functorch.is_functorch_wrapped_tensor
        self.leaves = [i for i, x in enumerate(tensors) if reals[i] and (wrapped(x) or x.requires_grad)]
        self.tensors = [x if real else below(x) for x, real in zip(tensors, reals)]

    def _drawn(self, values: Sequence[Any], needs: bool, look: Callable[[Recording], list[Any]]) -> list[Any]:
        """What there is to see of a recording that has drawn these values."""
        given = dict(zip(self.leaves, values))
        tensors = [torch.from_numpy(given[i]) if i in given else x for i, x in enumerate(self.tensors)]
        asks = [needs and i in given for i in range(len(tensors))]
        recording, key = _recorded(self.pool, *self.how, tensors, asks, self.numbers)
        found = look(recording)
        self.pool.give_back(key, recording)
        return found

    def run(self, values: list[Any]) -> list[Any]:
        return self._drawn(values, False, lambda r: [x.numpy() for x in r.results()])

    def pull(self, values: list[Any], seeds: Sequence[Any]) -> list[Any]:
        given = [None if g is None else torch.from_numpy(g) for g in seeds]
        found = self._drawn(values, True, lambda r: r.gradients(given))
        return [np.zeros_like(v) if found[i] is None else found[i].numpy() for i, v in zip(self.leaves, values)]

    def push(self, values: list[Any], ways: Sequence[Any]) -> list[Any]:
        moving = {i: torch.from_numpy(w) for i, w in zip(self.leaves, ways) if w is not None}
        count = len(next(iter(moving.values())))

        def look(recording: Recording) -> list[Any]:
            found = zip(recording.tangents(moving), recording.outputs)
            return [np.zeros((count, *a.numpy().shape), a.numpy().dtype) if x is None else x.numpy() for x, a in found]

        return self._drawn(values, True, look)

    def bend(self, *given: Any) -> tuple[list[Any], list[Any]]:
        raise TypeError(FIRST_ONLY)


class _Pictures(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pool: Pool, key: Hashable, draw: Draw, names: Any, numbers: Any, *tensors: Any) -> Any:
        ctx.set_materialize_grads(False)
        needs = [need or _moves(x) for need, x in zip(ctx.needs_input_grad[5:], tensors)]
        recording, key = _recorded(pool, key, draw, names, tensors, needs, numbers)
        ticket = _ticket(pool, key, recording)
        ctx.number = int(ticket)
        ctx.save_for_backward(ticket)
        ctx.save_for_forward(ticket)
        results = recording.results()
        ctx.mark_non_differentiable(*[x for x in results if not x.dtype.is_floating_point])
        return tuple(results)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        moving = {i: x[None] for i, x in enumerate(tangents[5:]) if x is not None}
        return tuple(None if x is None else x[0] for x in _lent[ctx.number].tangents(moving))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (ticket,) = ctx.saved_tensors
        found = _lent[int(ticket)].gradients(grads)
        return (None, None, None, None, None, *once(ctx, found, grads, TypeError(FIRST_ONLY)))


_lent: dict[int, Recording] = {}
_numbers = count(1)


def _ticket(pool: Pool, key: Hashable, recording: Recording) -> torch.Tensor:
    """A tensor that stands for a recording: when torch frees it, the recording goes back to the pool."""
    number = next(_numbers)
    _lent[number] = recording
    memory = np.array(number)
    weakref.finalize(memory, _return, pool, key, number)
    return torch.from_numpy(memory)


def _return(pool: Pool, key: Hashable, number: int) -> None:
    pool.give_back(key, _lent.pop(number))


def _duals() -> bool:
    """Whether tangents of torch's forward mode may be on tensors."""
    return bool(forward_ad._current_level >= 0)


def _moves(x: Any) -> bool:
    return _duals() and forward_ad.unpack_dual(x).tangent is not None


def _numpy(tensor: Any) -> Any:
    return tensor.detach().numpy()
