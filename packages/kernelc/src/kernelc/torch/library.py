"""Kernels as operators of `torch.library`: what torch's compiler, its transforms and its fake tensors see.

    kernelc::push(spec, tensors, …) -> outputs                  a launch
    kernelc::pull(spec, tensors, weights, …) -> gradients       its reverse sweep

Each says what its results will be (fake), how it goes over a batch (vmap), and how it is differentiated, backward and
forward. The derivatives are the same two operators on the kernel's forward mode (specs.py): with y = f(x),

    push     ẏ = J(x) ẋ                  by push of the lifted kernel         x̄ = J(x)ᵀ ȳ       by pull
    pull     g = J(x)ᵀ w:  w̄ = J(x) ḡ    by push of the lifted kernel         x̄ = ∂⟨w, J(x) ḡ⟩/∂x   by pull of it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from .calls import wants_graph
from .sharing import is_seen
from .specs import Spec, specs

LIBRARY = torch.library.Library("kernelc", "DEF")
SAFE = (torch.Tag.pt2_compliant_tag,)
LIBRARY.define("push(str spec, Tensor[] tensors, SymInt[] ints, float[] floats, SymInt[] dim, SymInt[] shapes)"
                " -> Tensor[]", tags=SAFE)  # fmt: skip
LIBRARY.define("pull(str spec, Tensor[] tensors, Tensor[] weights, SymInt[] ints, float[] floats, SymInt[] dim,"
                " SymInt[] shapes, int[] wanted) -> Tensor[]", tags=SAFE)  # fmt: skip
push, pull = torch.ops.kernelc.push.default, torch.ops.kernelc.pull.default


# -- on memory
def _run_push(spec: str, tensors: Sequence[Tensor], ints: Any, floats: Any, dim: Any, shapes: Any) -> list[Tensor]:
    return specs[spec].push(tensors, ints, floats, dim, shapes)


def _run_pull(
    spec: str, tensors: Sequence[Tensor], weights: Sequence[Tensor], ints: Any, floats: Any, dim: Any, shapes: Any,
    wanted: Sequence[int],
) -> list[Tensor]:  # fmt: skip
    return specs[spec].pull(tensors, weights, ints, floats, dim, shapes, wanted)


# -- without memory
def _fake_push(spec: str, tensors: Sequence[Tensor], ints: Any, floats: Any, dim: Any, shapes: Any) -> list[Tensor]:
    return [tensors[0].new_empty(size, dtype=dtype) for size, dtype in specs[spec].outputs(tensors, shapes)]


def _fake_pull(
    spec: str, tensors: Sequence[Tensor], weights: Sequence[Tensor], ints: Any, floats: Any, dim: Any, shapes: Any,
    wanted: Sequence[int],
) -> list[Tensor]:  # fmt: skip
    return [tensors[i].new_empty(tensors[i].shape) for i in wanted]


# -- over a batch
def _batched_push(info: Any, in_dims: Any, spec: str, tensors: Any, *rest: Any) -> tuple[list[Tensor], list[int]]:
    if not info.batch_size:
        return _none_of(_fake_push(spec, _element(tensors, in_dims[1]), *rest))
    rows = _rows(info.batch_size, tensors, in_dims[1])
    if not (is_seen(tensors) or wants_graph(tensors)):  # nobody else looks: without torch's dispatcher in between
        return _stacked([specs[spec].push(row, *rest) for row in rows])
    return _stacked([push(spec, row, *rest) for row in rows])


def _batched_pull(
    info: Any, in_dims: Any, spec: str, tensors: Any, weights: Any, *rest: Any
) -> tuple[list[Tensor], list[int]]:
    if not info.batch_size:
        return _none_of(_fake_pull(spec, _element(tensors, in_dims[1]), weights, *rest))
    rows, sides = _rows(info.batch_size, tensors, in_dims[1]), _rows(info.batch_size, weights, in_dims[2])
    if not (is_seen([*tensors, *weights]) or wants_graph([*tensors, *weights])):
        return _stacked([specs[spec].pull(row, side, *rest) for row, side in zip(rows, sides, strict=True)])
    return _stacked([pull(spec, row, side, *rest) for row, side in zip(rows, sides, strict=True)])


def _rows(size: int, tensors: Sequence[Tensor], dims: Sequence[int | None]) -> list[list[Tensor]]:
    """The tensors of each element of the batch."""
    cut = [[x] * size if d is None else x.unbind(d) for x, d in zip(tensors, dims, strict=True)]
    return [list(row) for row in zip(*cut, strict=True)]


def _element(tensors: Sequence[Tensor], dims: Sequence[int | None]) -> list[Tensor]:
    """What an element of a batch would look like, where there is none."""
    shapes = [[n for k, n in enumerate(x.shape) if k != d] for x, d in zip(tensors, dims, strict=True)]
    return [x.new_empty(shape) for x, shape in zip(tensors, shapes, strict=True)]


def _none_of(like: list[Tensor]) -> tuple[list[Tensor], list[int]]:
    """The results of an empty batch."""
    return [x.new_empty((0, *x.shape)) for x in like], [0] * len(like)


def _stacked(made: list[list[Tensor]]) -> tuple[list[Tensor], list[int]]:
    found = [torch.stack(row) for row in zip(*made, strict=True)]
    return found, [0] * len(found)


# -- derivatives
def push_tangents(name: str, tensors: Sequence[Tensor], directions: Sequence[Tensor | None], *rest: Any) -> list[Any]:
    """The derivatives of the outputs in a direction; None for those that have none."""
    spec = specs[name]
    lifted, given = _lifted(spec, tensors, directions)
    ints, floats, dim, shapes = rest
    made = push(lifted.name, given, ints, floats, dim, _twice(spec, lifted, shapes))
    found = dict(zip(lifted.derivatives(), made[len(spec.ranks) :], strict=True))
    return [found.get(i) for i in range(len(spec.ranks))]


def pull_again(
    name: str, tensors: Sequence[Tensor], directions: Sequence[Tensor | None], weights: Sequence[Tensor],
    rest: Sequence[Any], wanted: Sequence[int],
) -> list[Tensor]:  # fmt: skip
    """The gradient by the tensors `wanted` of the weighted sum of `push_tangents`: by second derivatives."""
    spec = specs[name]
    lifted, given = _lifted(spec, tensors, directions)
    ints, floats, dim, shapes = rest
    flat = _twice(spec, lifted, shapes)
    below = dict(zip(spec.reals, weights, strict=True))
    sides = [torch.zeros_like(w) for w in weights] + [below[i] for i in lifted.derivatives()]
    found: list[Tensor] = pull(lifted.name, given, sides, ints, floats, dim, flat, wanted)
    return found


def _lifted(
    spec: Spec, tensors: Sequence[Tensor], directions: Sequence[Tensor | None]
) -> tuple[Spec, list[Tensor]]:  # fmt: skip
    """The spec of forward mode, and its tensors."""
    lifted = spec.lift(tensors, [i for i, d in enumerate(directions) if d is not None])
    moved = [(directions[i], tensors[i]) for i in lifted.directions()]
    return lifted, [*tensors, *(torch.zeros_like(x) if d is None else d for d, x in moved)]


def _twice(spec: Spec, lifted: Spec, flat: Sequence[int]) -> list[int]:
    """The shapes of the outputs and of their derivatives."""
    shapes = [shape for shape, _ in spec.shapes(flat)]
    return [n for shape in [*shapes, *(shapes[i] for i in lifted.derivatives())] for n in shape]


class _Level:
    """One level of torch's transforms, or none: what is below it runs as if the function above were not there."""

    def __init__(self, keys: Any):
        self.keys, self.graph, self.forward = keys, torch.is_grad_enabled(), torch._C._is_fwd_grad_enabled()

    @contextmanager
    def around(self) -> Iterator[None]:
        """Other levels take derivatives of their own, which torch turns off inside of an autograd function."""
        with torch.set_grad_enabled(self.graph), forward_ad._set_fwd_grad_enabled(self.forward):
            yield

    def below(self, operator: Any, *args: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd(), self.around():
            return operator.redispatch(self.keys & torch._C._after_autograd_keyset, *args)


class _Push(_SingleLevelFunction):
    """A launch in torch's graph."""

    @staticmethod
    def forward(ctx: Any, level: _Level, spec: str, rest: tuple[Any, ...], moving: list[int], *tensors: Tensor) -> Any:
        made = level.below(push, spec, list(tensors), *rest)
        active = specs[spec].active(tensors, moving)
        ctx.mark_non_differentiable(*[y for i, y in enumerate(made) if i not in active])
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)
        ctx.level, ctx.spec, ctx.rest, ctx.active = level, spec, rest, active
        ctx.sizes = [(tuple(y.shape), y.dtype) for y in made]
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        tensors, spec = ctx.saved_tensors, specs[ctx.spec]
        wanted = [i for i in range(len(tensors)) if ctx.needs_input_grad[4 + i]]
        weights = [tensors[0].new_zeros(ctx.sizes[i][0], dtype=ctx.sizes[i][1]) if grads[i] is None else grads[i]
                   for i in spec.reals]  # fmt: skip
        found = dict(zip(wanted, pull(ctx.spec, list(tensors), weights, *ctx.rest, wanted), strict=True))
        return (None, None, None, None, *(found.get(i) for i in range(len(tensors))))

    @staticmethod
    def jvp(ctx: Any, *directions: Any) -> Any:
        with ctx.level.around():
            tensors = [_primal(x) for x in ctx.saved_tensors]
            found = push_tangents(ctx.spec, tensors, directions[4:], *ctx.rest)
            zeros = [tensors[0].new_zeros(size, dtype=dtype) for size, dtype in ctx.sizes]
        return tuple(None if i not in ctx.active else zeros[i] if d is None else d for i, d in enumerate(found))


class _Pull(_SingleLevelFunction):
    """A reverse sweep in torch's graph. The first `n` tensors are those of the launch, then come the weights."""

    @staticmethod
    def forward(ctx: Any, level: _Level, spec: str, n: int, rest: tuple[Any, ...], *tensors: Tensor) -> Any:
        made = level.below(pull, spec, list(tensors[:n]), list(tensors[n:]), *rest)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)
        ctx.level, ctx.spec, ctx.n, ctx.rest, ctx.wanted = level, spec, n, rest[:-1], rest[-1]
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        n, spec = ctx.n, specs[ctx.spec]
        tensors, weights = list(ctx.saved_tensors[:n]), list(ctx.saved_tensors[n:])
        directions = _spread(n, ctx.wanted, grads)
        needs = ctx.needs_input_grad[4:]
        results: list[Any] = [None] * len(needs)
        if all(d is None for d in directions):
            return (None, None, None, None, *results)
        wanted = [i for i in range(n) if needs[i]]
        if wanted:
            found = pull_again(ctx.spec, tensors, directions, weights, ctx.rest, wanted)
            for i, x in zip(wanted, found, strict=True):
                results[i] = x
        if any(needs[n:]):
            moved = push_tangents(ctx.spec, tensors, directions, *ctx.rest)
            results[n:] = [moved[i] for i in spec.reals]
        return (None, None, None, None, *results)

    @staticmethod
    def jvp(ctx: Any, *directions: Any) -> Any:
        with ctx.level.around():
            return tuple(_pull_tangents(ctx, [_primal(x) for x in ctx.saved_tensors], directions[4:]))


def _pull_tangents(ctx: Any, both: list[Tensor], directions: Sequence[Any]) -> list[Any]:
    """J(x)ᵀ w moves with x and with w."""
    n = ctx.n
    total: list[Any] = [None] * len(ctx.wanted)
    tensors, weights, moved, sides = both[:n], both[n:], directions[:n], directions[n:]
    if any(d is not None for d in moved):
        total = list(pull_again(ctx.spec, tensors, moved, weights, ctx.rest, ctx.wanted))
    if any(d is not None for d in sides):
        given = [torch.zeros_like(w) if d is None else d for w, d in zip(weights, sides, strict=True)]
        more = pull(ctx.spec, tensors, given, *ctx.rest, ctx.wanted)
        total = [b if a is None else a + b for a, b in zip(total, more, strict=True)]
    return total


def _spread(n: int, wanted: Sequence[int], found: Sequence[Any]) -> list[Any]:
    by_place = dict(zip(wanted, found, strict=True))
    return [by_place.get(i) for i in range(n)]


def _moves(x: Tensor) -> bool:
    """Whether a derivative by this tensor is asked for, backward or forward."""
    return x.requires_grad or (forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None)


def _primal(x: Tensor) -> Tensor:
    return forward_ad.unpack_dual(x).primal if forward_ad._current_level >= 0 else x


def _differentiable_push(keys: Any, spec: str, tensors: Sequence[Tensor], *rest: Any) -> Any:
    moving = [i for i, x in enumerate(tensors) if _moves(x)]
    with enable_single_level_autograd_function():
        return list(_Push.apply(_Level(keys), spec, rest, moving, *tensors))  # type: ignore[attr-defined]


def _differentiable_pull(keys: Any, spec: str, tensors: Sequence[Tensor], weights: Sequence[Tensor], *rest: Any) -> Any:
    with enable_single_level_autograd_function():
        return list(_Pull.apply(_Level(keys), spec, len(tensors), rest, *tensors, *weights))  # type: ignore[attr-defined]


# -- over a batch, as before torch.func
def _one_by_one(which: str) -> Any:
    """torch.autograd.functional and `is_grads_batched` run an operator for each element of a batch by themselves, if it
    takes tensors and no lists of them: an operator for so many tensors as there are is made of that with lists."""

    def call(spec: str, tensors: Sequence[Tensor], *rest: Any) -> Any:
        lists = [tensors, rest[0]] if which == "pull" else [tensors]
        rest = rest[len(lists) - 1 :]
        results = len(rest[-1]) if which == "pull" else len(specs[spec].ranks)
        name = "_".join(map(str, [which, *map(len, lists), results]))
        if not hasattr(torch.ops.kernelc, name):
            taken = [f"Tensor {'xw'[k]}{i}" for k, given in enumerate(lists) for i in range(len(given))]
            more = "SymInt[] ints, float[] floats, SymInt[] dim, SymInt[] shapes" + ", int[] wanted" * (which == "pull")
            LIBRARY.define(f"{name}(str spec, {', '.join(taken)}, {more}) -> ({', '.join(['Tensor'] * results)})")
            LIBRARY.impl(name, _with_lists(which, [len(given) for given in lists]), "CompositeImplicitAutograd")
        made = getattr(torch.ops.kernelc, name)(spec, *(x for given in lists for x in given), *rest)
        return [made] if results == 1 else list(made)

    return call


def _with_lists(which: str, sizes: Sequence[int]) -> Any:
    def call(spec: str, *args: Any) -> Any:
        tensors, rest = args[: sum(sizes)], args[sum(sizes) :]
        lists = [list(tensors[: sizes[0]])] + [list(tensors[sizes[0] :])] * (which == "pull")
        made = (pull if which == "pull" else push)(spec, *lists, *rest)
        return made[0] if len(made) == 1 else tuple(made)

    return call


for _name in ("push", "pull"):
    LIBRARY.impl(_name, _one_by_one(_name), "Batched")
for _key in ("CPU", "CUDA"):
    LIBRARY.impl("push", _run_push, _key)
    LIBRARY.impl("pull", _run_pull, _key)
LIBRARY.impl("push", _differentiable_push, "Autograd", with_keyset=True)
LIBRARY.impl("pull", _differentiable_pull, "Autograd", with_keyset=True)
torch.library.register_fake("kernelc::push", _fake_push, lib=LIBRARY)
torch.library.register_fake("kernelc::pull", _fake_pull, lib=LIBRARY)
if hasattr(torch.library, "register_vmap"):  # from torch 2.5 on; before, torch says that there is no rule
    torch.library.register_vmap("kernelc::push", _batched_push, lib=LIBRARY)
    torch.library.register_vmap("kernelc::pull", _batched_pull, lib=LIBRARY)
