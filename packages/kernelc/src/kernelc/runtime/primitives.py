"""Whole arrays at once: running sums, sorting, reductions and runs of equal numbers, with their gradients on tapes.

They run in NumPy, in one thread and in a fixed order: the same bits on every run. Sums of float32 are made in double
precision and rounded once. Sums and products of small integers are int32, those of halves float32: they would not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import types as t
from ..errors import TapeError, WrongChoice, WrongDtype, WrongShape, public
from .arrays import Array
from .creation import array, empty
from .elements import holds_bfloats
from .memory import Data
from .recording import current
from .tape import Tape

_REDUCTIONS = ("sum", "min", "max", "prod")


@public
def scan(a: Any, exclusive: bool = False) -> Array:
    """Running sums of a one-dimensional array: out[i] = a[0] + … + a[i], without a[i] if `exclusive`."""
    source = _numbers("scan", a)
    out = _like(source, source.shape, wide=True)

    def run() -> None:
        out._put(_running(source.numpy().astype(out._data.dtype), exclusive).astype(out._data.dtype))

    def pull(g: Data) -> list[Data]:
        return [_running(g[::-1], exclusive)[::-1]]

    def back() -> None:
        _add(source, pull(_grad(out))[0])

    def along(dots: Data) -> Data:
        return np.stack([_running(dot, exclusive) for dot in dots])

    return _recorded(run, back, along, [source], [out], pull)[0]


@public
def sort(keys: Any, values: Any = None) -> Any:
    """The keys in rising order, as a new array; with `values`, the pair of both, moved alike. Equal keys keep theirs.

    NaN come last. Gradients go back to where each element came from.
    """
    given = [_line("sort", keys)] if values is None else [_line("sort", keys), _line("sort", values)]
    if not isinstance(given[0].element, t.Scalar):
        raise WrongDtype(f"kc.sort: keys are numbers, not {given[0].element!r}",
                         advice="compute one number for each element, and give the elements as values")  # fmt: skip
    if len({a.shape for a in given}) > 1:
        raise WrongShape(f"kc.sort: {given[0].shape[0]} keys, but {given[1].shape[0]} values")
    outs = [_like(a, a.shape) for a in given]
    order: Data = np.zeros(0, np.int64)

    def run() -> None:
        nonlocal order
        order = np.argsort(given[0].numpy(), kind="stable")
        for a, out in zip(given, outs, strict=True):
            out._put(a.numpy()[order])

    def pull(*weights: Data | None) -> list[Data | None]:
        return [None if g is None else g[np.argsort(order)] for g in weights]

    def back() -> None:
        for a, out in zip(given, outs, strict=True):
            if a.real is not None and a.grad is not None:
                _add(a, _grad(out)[np.argsort(order)])

    def along(*dots: Data | None) -> list[Data | None]:
        return [None if d is None else d[:, order] for d in dots]

    sorted_ = _recorded(run, back, along, given, outs, pull)
    return sorted_[0] if values is None else tuple(sorted_)


@public
def reduce(a: Any, op: str = "sum") -> Array:
    """The sum, minimum, maximum or product of all elements, as an array of one; of vectors, component by component.

    The gradient of a minimum or maximum goes to the first element that has it.
    """
    if op not in _REDUCTIONS:
        raise WrongChoice(
            f"kc.reduce has no operation {op!r}", advice=f"choose one of {', '.join(map(repr, _REDUCTIONS))}"
        )
    source = _numbers("reduce", a)
    if not source.size and op in ("min", "max"):
        raise WrongShape(f"kc.reduce: an empty array has no {op}", advice="look at its shape first")
    out, seen = _like(source, (1,), wide=op in ("sum", "prod")), np.zeros(0)

    def run() -> None:
        nonlocal seen
        seen = _flat(source).astype(out._data.dtype)
        out._put(_reduced(seen, op).astype(out._data.dtype))

    def pull(g: Data) -> list[Data]:
        return [(g * _slopes(seen, op)).reshape(source._data.shape)]

    def back() -> None:
        _add(source, pull(_grad(out))[0])

    def along(dots: Data) -> Data:
        return np.stack([(d.reshape(seen.shape) * _slopes(seen, op)).sum(0, keepdims=True) for d in dots])

    return _recorded(run, back, along, [source], [out], pull if op != "prod" else None)[0]


@public
def unique(a: Any) -> tuple[Array, Array]:
    """The different numbers of a sorted array, and how often each stands there. Gradients go to the first of a run."""
    source = _line("unique", a)
    if not isinstance(source.element, t.Scalar):
        raise WrongDtype(f"kc.unique takes numbers, not {source.element!r}")
    starts = _starts(source.numpy())
    values, counts = _like(source, starts.shape), empty(starts.shape, int, device=source.device)

    def run() -> None:
        nonlocal starts
        found = _starts(source.numpy())
        if found.shape != values.shape:
            raise TapeError(f"kc.unique found {values.shape[0]} different numbers when it was recorded, and "
                            f"{found.shape[0]} now", advice="record the tape anew")  # fmt: skip
        starts = found
        values._put(source.numpy()[starts])
        counts._put(np.diff(np.append(starts, source.shape[0])).astype(np.int32))

    def pull(g: Data, _: None = None) -> list[Data]:
        delta = np.zeros(source.shape)
        delta[starts] = g
        return [delta]

    def back() -> None:
        _add(source, pull(_grad(values))[0])

    def along(dots: Data | None) -> tuple[Data | None, None]:
        return (None if dots is None else dots[:, starts]), None

    _recorded(run, back, along, [source], [values, counts], pull)
    return values, counts


# -- what all of them share
def _recorded(
    run: Callable[[], None], back: Callable[[], None], along: Callable[..., Any], reads: list[Array],
    writes: list[Array], linear: Callable[..., Any] | None = None,
) -> list[Array]:  # fmt: skip
    """Run an operation, and put it on the tape that is open. `linear`: its transpose, if it is linear where it is."""
    run()
    tape = current()
    if tape is not None:
        tape.record(back, reads=reads, writes=writes, forward=run, tangent=along)
        if isinstance(tape, Tape):
            tape.entries[-1].linear = linear
    return writes


def _line(name: str, a: Any) -> Array:
    made = a if isinstance(a, Array) else array(a)
    if made.ndim != 1:
        raise WrongShape(f"kc.{name} takes an array of one dimension, not of shape {made.shape}",
                         advice="give a row of it, a[i], or a.reshape(-1)")  # fmt: skip
    return _known(name, made)


def _known(name: str, a: Array) -> Array:
    if holds_bfloats(a.element):
        raise WrongDtype(f"kc.{name} does not take bfloat16, which NumPy has no numbers of",
                         advice="copy it to an array of float in a kernel first")  # fmt: skip
    return a


def _numbers(name: str, a: Any) -> Array:
    made = _line(name, a) if name == "scan" else a if isinstance(a, Array) else array(a)
    if isinstance(made.element, t.Struct) or t.BOOL in t.leaves(made.element):
        raise WrongDtype(f"kc.{name} takes numbers and vectors, not {made.element!r}",
                         advice="take one field of a struct; convert bools to integers first")  # fmt: skip
    return _known(name, made)


def _like(a: Array, shape: tuple[int, ...], *, wide: bool = False) -> Array:
    element = t.computed(a.element, t.FLOAT32) if wide else a.element
    return empty(shape, element, device=a.device)


def _grad(out: Array) -> Data:
    """The adjoint of a result, in double precision; zeros where nothing asked for it."""
    grad = out.grad
    return np.zeros(out._data.shape) if grad is None else grad.numpy().astype(np.float64)


def _add(a: Array, delta: Data) -> None:
    grad = a.grad
    if grad is not None:
        grad._put(grad.numpy() + delta.astype(grad._data.dtype))


def _flat(a: Array) -> Data:
    """A copy of all elements, one after the other: (n, *element). What is overwritten later is still needed."""
    return a.numpy().copy().reshape(-1, *a._data.shape[a.ndim :])


def _wide(data: Data) -> Data:
    return data.astype(np.float64) if data.dtype.kind == "f" else data


def _running(data: Data, exclusive: bool) -> Data:
    sums = np.cumsum(_wide(data), axis=0, dtype=_wide(data[:0]).dtype)
    if exclusive:
        sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])
    return sums


def _reduced(data: Data, op: str) -> Data:
    wide = _wide(data)
    whole: Any = {"sum": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}[op]
    return np.asarray(whole.reduce(wide, axis=0, dtype=wide.dtype))[None]


def _slopes(data: Data, op: str) -> Data:
    """The derivative of a reduction by each element."""
    wide = data.astype(np.float64)
    if op == "sum":
        return np.ones_like(wide)
    if op == "prod":  # Products of the others, without dividing: right where an element is zero.
        ones = np.ones_like(wide[:1])
        before = np.cumprod(np.concatenate([ones, wide[:-1]]), axis=0)
        after = np.cumprod(np.concatenate([ones, wide[:0:-1]]), axis=0)[::-1]
        return np.asarray(before * after)
    first = np.expand_dims((np.argmin if op == "min" else np.argmax)(wide, axis=0), 0)
    weights = np.zeros_like(wide)
    np.put_along_axis(weights, first, 1.0, axis=0)
    return weights


def _starts(data: Data) -> Data:
    """Where runs of equal numbers begin."""
    nan = data != data
    falls = (data[1:] < data[:-1]) | (nan[:-1] & ~nan[1:])
    if np.any(falls):
        raise WrongShape(f"kc.unique takes a sorted array, but element {int(np.argmax(falls)) + 1} is smaller than the "
                         "one before", advice="sort it first: kc.unique(kc.sort(a))")  # fmt: skip
    differs = (data[1:] != data[:-1]) & ~(nan[1:] & nan[:-1])
    return np.flatnonzero(np.append(np.ones(min(1, len(data)), bool), differs))
