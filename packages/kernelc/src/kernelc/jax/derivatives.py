"""A launch and its derivatives as primitives of JAX: forward mode, reverse mode, batches, all of them in any order.

With y = f(x), arrays x of which some may move, and weights w of the real outputs:

    launch   y                                               its tangent is the slope
    slope    J ẋ              linear in ẋ                     transposed, it is the sweep
    sweep    Jᵀ w             linear in w                     transposed, it is the slope; its tangent by x the bend
    bend     ∂(Jᵀ w)/∂x · ẋ   linear in ẋ and in w            transposed by ẋ, it is itself

Slopes and bends are launches and sweeps of the kernel's forward mode (runtime/lifted.py), and so are their derivatives.
A batch is a number in front of every argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

if TYPE_CHECKING:
    from .calls import Call

Values = list[Any]


def launch(call: Call, *arrays: Any) -> Values:
    """The outputs, as what JAX may transform in every way."""
    return list(_launch.bind(*arrays, call=call, batch=()))


# -- what they compute
def _run_launch(call: Call, *arrays: Any) -> Values:
    return call.launch(*arrays)


def _run_slope(call: Call, *both: Any) -> Values:
    n = len(call.arrays)
    made = call.lifted.launch(*call.spread(both[:n], both[n:]))[len(call.results) :]
    return _slopes(call, made)


def _run_sweep(call: Call, *both: Any) -> Values:
    return call.sweep(*both)


def _run_bend(call: Call, *both: Any) -> Values:
    arrays, weights, ways = _parts(call, both)
    found = call.lifted.sweep(*call.spread(arrays, ways), *_lifted_weights(call, weights))
    return _of_arrays(call, found)


def _slopes(call: Call, made: Sequence[Any]) -> Values:
    """The tangents of the real outputs, of those that the lifted kernel writes."""
    by_output = dict(zip(call.later, made, strict=True))
    return [by_output[j] if j in by_output else jnp.zeros(r.shape, r.dtype)
            for j, r in zip(call.reals, call.weights, strict=True)]  # fmt: skip


def _lifted_weights(call: Call, weights: Sequence[Any]) -> Values:
    """Nothing for the outputs themselves, the weights for their tangents."""
    sides = dict(zip(call.reals, weights, strict=True))
    return [*(jnp.zeros_like(w) for w in weights), *(sides[j] for j in call.later)]


def _of_arrays(call: Call, found: Sequence[Any]) -> Values:
    """Of what belongs to the arrays of the lifted kernel that may move, that of the kernel's own."""
    by_place = dict(zip(call.lifted.moving, found, strict=True))
    return [by_place[k] for k in call.moving]


def _parts(call: Call, both: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Arrays, weights and ways."""
    n, m = len(call.arrays), len(call.arrays) + len(call.reals)
    return both[:n], both[n:m], both[m:]


# -- how they move
def _move_launch(primals: Values, tangents: Values, *, call: Call, batch: tuple[int, ...]) -> tuple[Values, Values]:
    made = _launch.bind(*primals, call=call, batch=batch)
    ways = _ways(call, primals, tangents)
    if ways is None:
        return made, [_nothing(y) for y in made]
    by_output = dict(zip(call.reals, _slope.bind(*primals, *ways, call=call, batch=batch), strict=True))
    return made, [by_output[j] if j in by_output else _nothing(y) for j, y in enumerate(made)]


def _move_slope(primals: Values, tangents: Values, *, call: Call, batch: tuple[int, ...]) -> tuple[Values, Values]:
    n = len(call.arrays)
    made = _slope.bind(*primals, call=call, batch=batch)
    total: list[Any] = [None] * len(made)
    if any(not _is_zero(d) for d in tangents[n:]):
        linear = [_full(d, x) for d, x in zip(tangents[n:], primals[n:], strict=True)]
        total = _slope.bind(*primals[:n], *linear, call=call, batch=batch)
    ways = _ways(call, primals[:n], tangents[:n])
    if ways is not None:
        total = _added(total, _turn(call, batch, primals[:n], primals[n:], ways))
    return made, _or_zero(total, made)


def _turn(call: Call, batch: tuple[int, ...], arrays: Values, ways: Values, others: Values) -> Values:
    """How slopes along ways move where arrays do along others."""
    lifted = call.lifted
    given = _over(lambda *both: call.spread(both[: len(arrays)], both[len(arrays) :]), batch)(*arrays, *ways)
    still = [jnp.zeros_like(given[k]) for k in lifted.moving]
    for k, way in zip(call.moving, others, strict=True):
        still[lifted.moving.index(k)] = way
    made = dict(zip(lifted.reals, _slope.bind(*given, *still, call=lifted, batch=batch), strict=True))
    after = [made[len(call.results) + n] for n in range(len(call.later))]
    return _over(lambda *some: _slopes(call, some), batch)(*after) if after else \
        [jnp.zeros((*batch, *r.shape), r.dtype) for r in call.weights]


def _move_sweep(primals: Values, tangents: Values, *, call: Call, batch: tuple[int, ...]) -> tuple[Values, Values]:
    n = len(call.arrays)
    made = _sweep.bind(*primals, call=call, batch=batch)
    total: list[Any] = [None] * len(made)
    if any(not _is_zero(d) for d in tangents[n:]):
        linear = [_full(d, x) for d, x in zip(tangents[n:], primals[n:], strict=True)]
        total = _sweep.bind(*primals[:n], *linear, call=call, batch=batch)
    ways = _ways(call, primals[:n], tangents[:n])
    if ways is not None:
        total = _added(total, _bend.bind(*primals, *ways, call=call, batch=batch))
    return made, _or_zero(total, made)


def _move_bend(primals: Values, tangents: Values, *, call: Call, batch: tuple[int, ...]) -> tuple[Values, Values]:
    """As the sweep of the lifted kernel that it is."""

    def sweep(*both: Any) -> Values:
        arrays, weights, ways = _parts(call, both)
        front = len(arrays)
        given = _over(lambda *some: call.spread(some[:front], some[front:]), batch)(*arrays, *ways)
        sides = _over(lambda *some: _lifted_weights(call, some), batch)(*weights)
        return _of_arrays(call, _sweep.bind(*given, *sides, call=call.lifted, batch=batch))

    full = [jax.custom_derivatives.zero_from_primal(x) if _is_zero(d) else d
            for x, d in zip(primals, tangents, strict=True)]  # fmt: skip
    made: tuple[Values, Values] = jax.jvp(sweep, tuple(primals), tuple(full))
    return made


# -- backwards
def _back_slope(weights: Values, *both: Any, call: Call, batch: tuple[int, ...]) -> Values:
    n = len(call.arrays)
    full = [_full_weight(w, r, batch) for w, r in zip(weights, call.weights, strict=True)]
    return [*[None] * n, *_sweep.bind(*both[:n], *full, call=call, batch=batch)]


def _back_sweep(directions: Values, *both: Any, call: Call, batch: tuple[int, ...]) -> Values:
    n = len(call.arrays)
    full = [_full_weight(d, r, batch) for d, r in zip(directions, call.ways, strict=True)]
    return [*[None] * n, *_slope.bind(*both[:n], *full, call=call, batch=batch)]


def _back_bend(directions: Values, *both: Any, call: Call, batch: tuple[int, ...]) -> Values:
    arrays, weights, ways = _parts(call, both)
    full = [_full_weight(d, r, batch) for d, r in zip(directions, call.ways, strict=True)]
    if any(map(ad.is_undefined_primal, weights)):
        by_weight = _turn(call, batch, list(arrays), list(ways), full)
        return [*[None] * len(arrays), *by_weight, *[None] * len(ways)]
    by_way = _bend.bind(*arrays, *weights, *full, call=call, batch=batch)
    return [*[None] * (len(arrays) + len(weights)), *by_way]


# -- tangents that may be none
def _is_zero(d: Any) -> bool:
    return isinstance(d, ad.Zero)


def _nothing(y: Any) -> Any:
    return ad.Zero(jax.typeof(y).to_tangent_aval())


def _full(d: Any, like: Any) -> Any:
    return jnp.zeros_like(like) if _is_zero(d) else d


def _full_weight(d: Any, like: Any, batch: tuple[int, ...]) -> Any:
    return jnp.zeros((*batch, *like.shape), like.dtype) if _is_zero(d) else d


def _ways(call: Call, arrays: Values, tangents: Values) -> Values | None:
    """The directions of the arrays that may move; None where none does."""
    if all(_is_zero(tangents[k]) for k in call.moving):
        return None
    return [_full(tangents[k], arrays[k]) for k in call.moving]


def _added(total: Values, more: Values) -> Values:
    return [b if a is None else a + b for a, b in zip(total, more, strict=True)]


def _or_zero(total: Values, made: Values) -> Values:
    return [_nothing(y) if d is None else d for d, y in zip(total, made, strict=True)]


# -- batches
def _over(run: Callable[..., Any], batch: tuple[int, ...]) -> Callable[..., Any]:
    for _ in batch:
        run = jax.vmap(run)
    return run


def _batched(primitive: Primitive, args: Values, dims: Sequence[Any], *, call: Call, batch: tuple[int, ...]
             ) -> tuple[Values, list[int]]:  # fmt: skip
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    front = [jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
             for x, d in zip(args, dims, strict=True)]  # fmt: skip
    made = primitive.bind(*front, call=call, batch=(size, *batch))
    return made, [0] * len(made)


# -- the primitives
def _primitive(name: str, run: Callable[..., Values], shapes: Callable[[Call], Values]) -> Primitive:
    made = Primitive(f"kernelc_{name}")
    made.multiple_results = True

    def compute(*args: Any, call: Call, batch: tuple[int, ...]) -> Values:
        return list(_over(partial(run, call), batch)(*args))

    def abstract(*args: Any, call: Call, batch: tuple[int, ...]) -> Values:
        return [ShapedArray((*batch, *r.shape), r.dtype) for r in shapes(call)]

    made.def_impl(compute)
    made.def_abstract_eval(abstract)
    mlir.register_lowering(made, mlir.lower_fun(compute, multiple_results=True))
    batching.primitive_batchers[made] = partial(_batched, made)
    return made


_launch = _primitive("launch", _run_launch, lambda call: call.results)
_slope = _primitive("slope", _run_slope, lambda call: call.weights)
_sweep = _primitive("sweep", _run_sweep, lambda call: call.ways)
_bend = _primitive("bend", _run_bend, lambda call: call.ways)
for _made, _move in ((_launch, _move_launch), (_slope, _move_slope), (_sweep, _move_sweep), (_bend, _move_bend)):
    ad.primitive_jvps[_made] = _move
for _made, _back in ((_slope, _back_slope), (_sweep, _back_sweep), (_bend, _back_bend)):
    ad.primitive_transposes[_made] = _back
