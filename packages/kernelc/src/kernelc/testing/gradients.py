"""Gradients against central differences, and Jacobians, for any kernel: on float64 copies of what it is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import ir
from .. import types as t
from ..errors import KernelError, WrongArity, WrongChoice, WrongDtype, WrongUse, public
from ..runtime import Tape, array, launch
from ..runtime.arrays import Array
from ..runtime.content import plain
from ..runtime.elements import holds_bfloats
from ..runtime.kernels import Kernel
from ..structs import Bundle, arrays_in, gathered, spread

Data = np.ndarray[Any, Any]
Which = str | int | Array | Data
"""An argument: the name of the parameter, its position, or the array that was passed."""


class GradientMismatch(KernelError, AssertionError):
    """The adjoint is not what differences say. `adjoint` and `differences` are the two numbers of the worst entry,
    `of` and `wrt` name it: `out[2]`, `x[3].y`."""

    code = "KC601"
    hint = "near a jump or a kink choose other inputs; otherwise this is a mistake of kernelc, or of a rule of your own"

    def __init__(self, message: str, of: str, wrt: str, adjoint: float, differences: float):
        self.of, self.wrt, self.adjoint, self.differences = of, wrt, adjoint, differences
        super().__init__(message)


@public
def gradcheck(
    kernel: Kernel | Callable[..., Any], dim: int | Sequence[int] | None, inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (), *, eps: float | None = None, atol: float | None = None, rtol: float | None = None,
    seed: int = 0, device: str = "cpu", wrt: Sequence[Which] | None = None, raise_exception: bool = True,
) -> bool:  # fmt: skip
    """Whether the adjoint of a launch equals central differences, in double precision.

    kernel: a kernel, or a function that launches several on the arrays it is given (then `dim` is not used).
    eps: the step, relative to entries above 1; atol, rtol: how far apart the two may be. The defaults are 1e-6, 1e-6
        and 1e-5; coarser for a kernel that pins float32.
    seed: of the random weights by which each output is summed up.
    wrt: the inputs to check by, bundles among them; default: the arrays that require a gradient, or all reals that
        are read, if none does.
    raise_exception: raise `GradientMismatch` with the worst entry, or return False.

    At a kink anything between the two one-sided slopes is right.
    """
    trial = _Trial(kernel, dim, inputs, outputs, device, wrt)
    coarse = any(s is t.FLOAT32 for i in {*trial.wrt, *trial.of} for s in t.leaves(trial.args[i].element))
    eps = eps or (1e-2 if coarse else 1e-6)
    atol = (1e-3 if coarse else 1e-6) if atol is None else atol
    rtol = (1e-2 if coarse else 1e-5) if rtol is None else rtol
    wrong = _compare(trial, eps, atol, rtol, np.random.default_rng(seed))
    if wrong and raise_exception:
        raise _mismatch(trial, wrong)
    return not wrong


@public
def jacobian(
    kernel: Kernel | Callable[..., Any], dim: int | Sequence[int] | None, inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (), *, wrt: Which, of: Which, device: str = "cpu",
) -> Data:  # fmt: skip
    """The derivative of one argument after the launch by one before it: shape of `of`, then shape of `wrt`.

    Computed row by row through the tape, in double precision. Components count as dimensions: n vectors of three are
    (n, 3); in arrays of structs the reals of one struct are the last dimension.
    """
    trial = _Trial(kernel, dim, inputs, outputs, device, [wrt])
    (column,), row = trial.wrt, trial.position(of)
    size = sum(view.size for _, view in trial.reals(row))
    rows = [trial.pull(row, one)[column] for one in np.eye(size)]
    return np.array(rows).reshape(*_shape(trial.args[row]), *_shape(trial.args[column]))


def _shape(a: Array) -> tuple[int, ...]:
    reals = sum(s.is_float for s in t.leaves(a.element))
    return (*a.shape, reals) if isinstance(a.element, t.Struct) else a._data.shape


# -- a launch that can be repeated
class _Trial:
    """A launch on copies of its arguments. The reals of each array make a vector, element by element."""

    def __init__(
        self, kernel: Kernel | Callable[..., Any], dim: Any, inputs: Sequence[Any], outputs: Sequence[Any], device: str,
        wrt: Sequence[Which] | None,
    ):  # fmt: skip
        self.kernel, self.dim, self.device = kernel, dim, device
        self.whole = [*inputs, *outputs]
        names, kinds = _parameters(kernel, self.whole)
        if len(names) != len(self.whole):
            raise WrongArity(f"{_name(kernel)} takes {len(names)} arguments ({', '.join(names)}), "
                             f"but got {len(self.whole)}")  # fmt: skip
        # Bundles as their members: those are what a gradient goes to.
        self.names = [path for name, kind in zip(names, kinds) for path, _ in _members(name, kind)]
        declared = [inner for name, kind in zip(names, kinds) for _, inner in _members(name, kind)]
        parts = [[v for _, v in _spread(n, k, a)] for n, k, a in zip(names, kinds, self.whole)]
        self.kinds, self.given = kinds, [value for part in parts for value in part]
        asked = [self.position(w) for w in arrays_in(wrt)] if wrt is not None else None
        self.args = [_double(a, d, box=i in (asked or ())) for i, (a, d) in enumerate(zip(self.given, declared))]
        self.wrt = self.readable(sum(len(part) for part in parts[: len(inputs)])) if asked is None else asked
        for i in self.wrt:
            a = self.args[i]
            if not isinstance(a, Array) or a.real is None:
                raise WrongDtype(f"{self.names[i]} holds no reals: nothing can be differentiated by it")
            self.check_smooth(i)
            a.requires_grad = True
        self.start = {i: a._data.copy() for i, a in enumerate(self.args) if isinstance(a, Array)}
        self.run()
        # What was written has another version; nothing else tells for a function of many launches.
        self.of = [i for i in self.start if self.args[i].version > 0 and self.args[i].real is not None]
        for i in self.of:
            self.check_smooth(i)

    def check_smooth(self, i: int) -> None:
        """Differences see no slope of what is rounded to a few digits."""
        if self.args[i].real.is_half:
            raise WrongDtype(f"{self.names[i]} holds {self.args[i].real}, which is too coarse for differences",
                             advice="check the same kernel with parameters of float")  # fmt: skip

    def position(self, which: Which) -> int:
        """The argument that a name, a position or an array means."""
        if isinstance(which, str) and which in self.names:
            return self.names.index(which)
        if isinstance(which, int) and -len(self.given) <= which < len(self.given):
            return which % len(self.given)
        for i, a in enumerate(self.given):
            if a is which:
                return i
        raise WrongChoice(f"{which!r} is no argument of {_name(self.kernel)}", advice=f"it has {', '.join(self.names)}")

    def readable(self, inputs: int) -> list[int]:
        """What is checked by default."""
        real = [i for i, a in enumerate(self.args) if isinstance(a, Array) and a.real is not None]
        real = [i for i in real if not self.args[i].real.is_half or getattr(self.given[i], "requires_grad", False)]
        marked = [i for i in real if getattr(self.given[i], "requires_grad", False)]
        if marked or not isinstance(self.kernel, Kernel):
            return marked or [i for i in real if i < inputs]
        plan, _ = self.kernel.plan(self.gathered())
        uses = [s for s in plan.variant.kernel.body.walk() if isinstance(s, (ir.Load, ir.Atomic))]
        return [i for i in real if any(s.array.position == i for s in uses)]

    def run(self) -> None:
        """The launch, from the start."""
        self.tape: Tape | None = None
        for i, content in self.start.items():
            self.args[i]._data[...] = content
        if isinstance(self.kernel, Kernel):
            launch(self.kernel, self.dim, self.gathered(), device=self.device)
        else:
            self.kernel(*self.gathered())

    def gathered(self) -> list[Any]:
        """The arguments, with bundles of their members."""
        flat = iter(self.args)
        return [next(flat) if k is None else gathered(k, a, flat) for k, a in zip(self.kinds, self.whole)]

    def reals(self, i: int, data: Data | None = None) -> list[tuple[str, Data]]:
        """The real leaves of an argument, as names and views that have its shape."""
        a = self.args[i]
        found = _leaves(a._data if data is None else data, a.element)
        return [(label, view) for label, scalar, view in found if scalar.is_float]

    def entries(self, i: int) -> Iterator[tuple[str, Data, tuple[int, ...]]]:
        """Every real of an argument: its name, and where it lies."""
        leaves = self.reals(i)
        for at in np.ndindex(self.args[i].shape):
            for label, view in leaves:
                yield f"{self.names[i]}[{', '.join(map(str, at))}]{label}", view, at

    def results(self) -> dict[int, Data]:
        """The outputs of the last run as vectors."""
        return {i: self.vector(i) for i in self.of}

    def vector(self, i: int, data: Data | None = None) -> Data:
        """The reals of an argument, element by element."""
        vector: Data = np.stack([view for _, view in self.reals(i, data)], axis=-1).reshape(-1).astype(np.float64)
        return vector

    def pull(self, i: int, weights: Data) -> dict[int, Data]:
        """The gradient of Σ weights·output by every input, through the tape."""
        if self.tape is None:
            with Tape() as tape:
                self.run()
            self.tape = tape
        if not self.tape._carries(self.args[i]):
            return {k: np.zeros_like(self.vector(k)) for k in self.wrt}
        self.tape.zero()
        self.tape.backward(grads={self.args[i]: self.unflatten(i, weights)})
        return {k: self.vector(k, self.args[k].grad._data) for k in self.wrt}

    def unflatten(self, i: int, vector: Data) -> Data:
        """A vector of the reals of an argument in the form of its memory; what is not real is zero."""
        made: Data = np.zeros_like(self.args[i]._data)
        views = [view for _, view in self.reals(i, made)]
        for view, part in zip(views, np.moveaxis(vector.reshape(*views[0].shape, len(views)), -1, 0), strict=True):
            view[...] = part
        return made


def _name(kernel: Any) -> str:
    return str(getattr(kernel, "__name__", kernel))


def _parameters(kernel: Kernel | Callable[..., Any], args: Sequence[Any]) -> tuple[list[str], list[t.Type | None]]:
    """The names of parameters, and their types as far as they are known."""
    if isinstance(kernel, Kernel):
        kernel.spread(args)  # says what is wrong with them
        return list(kernel.declared), list(kernel.declared.values())
    if not callable(kernel):
        raise WrongUse(f"{kernel!r} is neither a kernel nor a function", advice="pass a @kc.kernel, then its dim")
    known, count = inspect.signature(kernel).parameters.values(), len(args)
    kinds: list[t.Type | None] = [a._struct if isinstance(a, Bundle) else None for a in args]
    if any(p.kind is p.VAR_POSITIONAL for p in known):
        return [f"argument {i}" for i in range(count)], kinds
    names = [p.name for p in known if p.default is p.empty or p.kind is p.POSITIONAL_ONLY]
    return (names if len(names) == count else [p.name for p in known]), kinds


def _members(name: str, kind: t.Type | None) -> list[tuple[str, t.Type | None]]:
    return [(name, None)] if kind is None else list(t.members(name, kind))


def _spread(name: str, kind: t.Type | None, arg: Any) -> list[tuple[str, Any]]:
    return [(name, arg)] if kind is None else list(spread(name, kind, arg))


def _double(arg: Any, declared: t.Type | None, *, box: bool) -> Any:
    """A copy of an argument in double precision; what is no array is left alone."""
    if declared is None:
        return _copy(arg.numpy(), _in_double(arg.element)) if isinstance(arg, Array) else arg
    if isinstance(declared, t.ArrayType):
        data = plain(arg) if not isinstance(arg, (list, tuple)) else np.array(arg)
        element = t.resolve(declared.element, t.FLOAT64)
        return _copy(data, element) if isinstance(data, np.ndarray) else arg
    if isinstance(arg, Array) or box:
        element = t.resolve(declared, t.FLOAT64)
        return _copy(np.asarray(plain(arg)).reshape(1, *t.element_dtype(element)[1]), element)
    return arg


def _copy(data: Data, element: t.Type) -> Array:
    if holds_bfloats(element):
        return array(np.array(data), dtype=element)
    dtype, _ = t.element_dtype(element)
    return Array(np.array(data, dtype=dtype, order="C"), element)


def _in_double(element: t.Type) -> t.Type:
    if isinstance(element, t.Struct):
        origin = element.origin if isinstance(element.origin, t.Struct) else element
        return t.resolve(origin, t.FLOAT64)
    if isinstance(element, t.Composite):
        return element.with_scalar(t.FLOAT64) if _is_wide(element.scalar) else element
    return t.FLOAT64 if isinstance(element, t.Scalar) and _is_wide(element) else element


def _is_wide(scalar: t.Scalar) -> bool:
    return scalar.is_float and not scalar.is_half


def _leaves(data: Data, element: t.Type) -> Iterator[tuple[str, t.Scalar, Data]]:
    """The leaves of an array of some element type: name, type, and a view over all elements."""
    if isinstance(element, t.Struct):
        for name, kind in element.fields:
            yield from ((f".{name}{label}", s, v) for label, s, v in _leaves(data[name], kind))
    elif isinstance(element, t.Composite):
        for at, (label, scalar) in zip(np.ndindex(*element.shape), t.leaf_items(element)):
            yield label, scalar, data[(..., *at)]
    elif isinstance(element, t.Scalar):
        yield "", element, data


# -- differences
@dataclass(frozen=True)
class _Wrong:
    """Entry `entry` of argument `wrt`, by which output `of` has another adjoint than difference."""

    by: float
    wrt: int
    of: int
    entry: int
    label: str
    slopes: Data


def _compare(trial: _Trial, eps: float, atol: float, rtol: float, random: np.random.Generator) -> list[_Wrong]:
    """All entries by which an output, summed up with random weights, has another adjoint than difference."""
    trial.run()
    middle = trial.results()
    weights = {k: random.uniform(0.5, 1.5, y.size) * random.choice([-1.0, 1.0], y.size) for k, y in middle.items()}
    adjoints = {k: trial.pull(k, w) for k, w in weights.items()}
    wrong: list[_Wrong] = []
    for i in trial.wrt:
        for n, (label, view, at) in enumerate(trial.entries(i)):
            above, below, h = _two_sides(trial, i, n, at, eps)
            for k, w in weights.items():
                sides = (above[k], middle[k], below[k])
                by = _apart(adjoints[k][i][n], w, *sides, h, atol, rtol, float(np.finfo(view.dtype).eps))
                if by > 1:
                    wrong.append(_Wrong(by, i, k, n, label, (above[k] - below[k]) / (2 * h)))
    return wrong


def _two_sides(
    trial: _Trial, i: int, n: int, at: tuple[int, ...], eps: float
) -> tuple[dict[int, Data], dict[int, Data], float]:
    """The results with one entry a step above and a step below, and the step that was really taken."""
    leaves = trial.reals(i, trial.start[i])
    _, start = leaves[n % len(leaves)]
    old = start[at]
    step = eps * max(1.0, abs(float(old)))
    try:
        start[at] = old + step
        high = float(start[at])
        trial.run()
        above = trial.results()
        start[at] = old - step
        trial.run()
        return above, trial.results(), (high - float(start[at])) / 2
    finally:
        start[at] = old


def _apart(
    adjoint: float, w: Data, above: Data, middle: Data, below: Data, h: float, atol: float, rtol: float, unit: float
) -> float:
    """How far an adjoint is from the difference, in units of what is allowed."""
    with np.errstate(all="ignore"):
        ahead, behind = w * (above - middle) / h, w * (middle - below) / h
        low, high = float(np.minimum(ahead, behind).sum()), float(np.maximum(ahead, behind).sum())
        central = float(w @ (above - below)) / (2 * h)
        # Results are rounded: the difference of two large ones says nothing about a small slope.
        noise = 2 * unit * float(np.abs(w) @ (np.abs(above) + np.abs(below))) / h
        allowed = atol + rtol * max(abs(adjoint), abs(central)) + noise
        kink = high - low > 1e-3 * max(abs(low), abs(high)) + allowed
        off = max(low - adjoint, adjoint - high) if kink else abs(adjoint - central)
        return off / allowed if np.isfinite(off) and np.isfinite(allowed) else np.inf


def _mismatch(trial: _Trial, wrong: list[_Wrong]) -> GradientMismatch:
    """The error for the worst entry, down to the one output that differs most."""
    worst = max(wrong, key=lambda w: w.by)
    labels = [label for label, _, _ in trial.entries(worst.of)]
    rows = range(len(labels)) if len(labels) <= 1000 else np.argsort(-np.abs(worst.slopes))[:1000]
    unit = np.zeros(len(labels))
    best = (-1.0, 0, 0.0)
    for row in rows:
        unit[row] = 1
        adjoint = float(trial.pull(worst.of, unit)[worst.wrt][worst.entry])
        off = abs(adjoint - worst.slopes[row])
        best = max(best, (off if np.isfinite(off) else np.inf, int(row), adjoint))
        unit[row] = 0
    _, row, adjoint = best
    differences = float(worst.slopes[row])
    where = f"d {labels[row]} / d {worst.label}"
    text = f"{_name(trial.kernel)}: {where} is {adjoint:.9g} by the adjoint, {differences:.9g} by central differences"
    more = f" ({len(wrong)} entries are wrong, this is the worst)" if len(wrong) > 1 else ""
    return GradientMismatch(text + more, labels[row], worst.label, adjoint, differences)
