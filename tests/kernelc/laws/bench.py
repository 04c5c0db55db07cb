"""How a case of the corpus is run: on any device, in both precisions, with either loop tape, on small and large grids.

A case is a function of `run` and its arrays. It launches with `run(kernel, dim, inputs, outputs)` and clears and copies
with `run.zero` and `run.assign`, so that the same program can be recorded, replayed, pushed forward, or just looked at
for the kernels that it will need.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

import kernelc as kc
from kernelc import types as t
from kernelc.runtime import Array
from kernelc.runtime.arrays import as_view
from kernelc.runtime.compile import Options
from kernelc.runtime.kernels import Kernel
from kernelc.structs import arrays_in

CASES: dict[str, Case] = {}
SMALL, MIDDLE, LARGE = 3, 35, 20_000
"""Threads: one by one; more than two of the widest groups of SIMD lanes; enough for several workers."""
WIDTHS = (4, 8, 2, 8, 4, 8, 2, 16)
"""How many lanes cases run in, by chance; 16 doubles take the compiler three times as long."""
REALS = {"f64": kc.float64, "f32": kc.float32}


# -- what a case says about its arguments
class Size:
    """The size that a case is run in: `N`, `N + 1`, `2 * N`."""

    def __init__(self, of: Callable[[int], int]):
        self.of = of

    def __add__(self, other: int) -> Size:
        return Size(lambda n: self.of(n) + other)

    def __rmul__(self, other: int) -> Size:
        return Size(lambda n: self.of(n) * other)


N = Size(lambda n: n)


def sized(what: Any, n: int) -> Any:
    if isinstance(what, tuple):
        return tuple(sized(w, n) for w in what)
    return what.of(n) if isinstance(what, Size) else what


@dataclass(frozen=True)
class Argument:
    """An array: reals between `low` and `high` (leaves, unless `grad` is off), whole numbers, or the data given."""

    shape: Any
    dtype: Any = float
    low: float = 0.4
    high: float = 1.6
    grad: bool = False
    data: Any = None

    def make(self, n: int, real: t.Scalar, random: np.random.Generator, strided: bool) -> Array:
        element = t.resolve(t.as_type(self.dtype), real)
        shape = sized(self.shape if isinstance(self.shape, tuple) else (self.shape,), n)
        base, trailing = t.element_dtype(element)
        content = np.zeros((*shape, *trailing), base)
        if self.data is not None:
            content[...] = self.data
        else:
            self.draw(content, random, n)
        if strided:
            wide = np.zeros((*(2 * k for k in shape), *trailing), base)
            wide[tuple(slice(None, None, 2) for _ in shape)] = content
            every = tuple(slice(None, None, 2) for _ in shape)
            return kc.array(wide, dtype=self.dtype, requires_grad=self.grad)[every]
        return kc.array(content, dtype=self.dtype, requires_grad=self.grad)

    def draw(self, content: np.ndarray, random: np.random.Generator, n: int) -> None:
        if content.dtype.fields:
            for name in content.dtype.names:
                self.draw(content[name], random, n)
        elif content.dtype.kind == "f":
            content[...] = random.uniform(self.low, self.high, content.shape)
        else:
            content[...] = random.integers(int(self.low), sized(self.high, n), content.shape)


def leaf(shape: Any, dtype: Any = float, low: float = 0.4, high: float = 1.6) -> Argument:
    """Reals that the gradient is asked for."""
    if isinstance(shape, (list, np.ndarray)):
        data = np.array(shape, np.float64)
        trailing = len(t.element_dtype(t.resolve(t.as_type(dtype), t.FLOAT64))[1])
        return Argument(data.shape[: data.ndim - trailing], dtype, grad=True, data=data)
    return Argument(shape, dtype, low, high, True)


def const(shape: Any, dtype: Any = float, low: float = 0.4, high: float = 1.6) -> Argument:
    """Reals without a gradient."""
    return Argument(shape, dtype, low, high)


def zeros(shape: Any, dtype: Any = float, fill: float = 0.0) -> Argument:
    """A buffer: it carries a gradient by itself where one comes in."""
    return Argument(shape, dtype, data=fill)


def whole(shape: Any, high: Any = 0, low: int = 0, dtype: Any = int) -> Argument:
    """Whole numbers from `low` to below `high`, or those given."""
    if isinstance(shape, list):
        return Argument(np.shape(shape), dtype, data=np.array(shape))
    return Argument(shape, dtype, low, high) if not isinstance(high, int) or high else Argument(shape, dtype, data=0)


# -- cases
@dataclass(frozen=True, eq=False)
class Case:
    """A program with its arguments. `differences` is off where the gradient is not the slope, by declaration."""

    name: str
    program: Callable[..., None]
    arguments: dict[str, Any]
    differences: bool = True
    f32: float = 1e-3
    sizes: bool = False
    strided: bool = True
    slope: Callable[[np.ndarray], np.ndarray] | None = None

    def __repr__(self) -> str:
        return self.name

    @property
    def width(self) -> int:
        """How many lanes it runs in, the same on every processor; small grids still run one by one."""
        return WIDTHS[zlib.crc32(self.name.encode()) % len(WIDTHS)]

    @property
    def leaves(self) -> list[str]:
        """The arguments that the gradient is asked for."""
        return [name for name, what in self.arguments.items() if isinstance(what, Argument) and what.grad]

    def make(
        self, n: int = SMALL, real: str = "f64", strided: bool = False, shift: int = 0, alone: bool = False
    ) -> dict[str, Any]:
        """Fresh arguments; another `shift` gives other contents of the leaves. `alone`: only the first is one."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()) + shift)
        made = {}
        for name, what in self.arguments.items():
            if isinstance(what, Argument):
                if alone and name in self.leaves[1:]:
                    what = replace(what, grad=False)
                given = what.make(n, REALS[real], random, strided)
                if shift and what.data is not None and what.grad and self.slope is None:
                    given.numpy()[...] *= random.uniform(0.99, 1.01, given.numpy().shape)
                made[name] = given
            else:
                made[name] = sized(what, n)
        return made


def case(name: str, kernel: Any, dim: Any = 1, **more: Any) -> None:
    """A case of one launch."""
    sizes = more.pop("sizes", isinstance(dim, (Size, tuple)))
    program(name, lambda run, *args: run(kernel, run.sized(dim), args), sizes=sizes, **more)


def program(name: str, function: Callable[..., None], *, sizes: bool = True, **more: Any) -> None:
    """A case of several launches. What does not describe the case is an argument of the program, in order."""
    assert name not in CASES, name
    about = {k: more.pop(k) for k in ("differences", "f32", "strided", "slope") if k in more}
    CASES[name] = Case(name, function, more, sizes=sizes, **about)


# -- ways to run one
@cache
def twin(kernel: Kernel) -> Kernel:
    """The same kernel with the other loop tape."""
    return Kernel(kernel.source.function, Options("sqrt"))


class Run:
    """Launches."""

    def __init__(self, n: int = SMALL, device: str = "cpu", sqrt: bool = False):
        self.n, self.device, self.sqrt = n, device, sqrt

    def __call__(self, kernel: Kernel, dim: Any, inputs: Any, outputs: Any = ()) -> None:
        kc.launch(twin(kernel) if self.sqrt else kernel, dim, inputs, outputs, device=self.device)

    def sized(self, what: Any) -> Any:
        return sized(what, self.n)

    def zero(self, a: Array) -> None:
        a.zero_()

    def assign(self, a: Array, source: Any) -> None:
        a.assign(source)


class Push(Run):
    """Launches with forward mode: every piece of memory has its tangent."""

    def __init__(self, tangents: dict[Array, np.ndarray], n: int):
        super().__init__(n)
        self.dots = {a._storage: (a.root, self.wide(a, d)) for a, d in tangents.items()}

    def wide(self, a: Array, dot: np.ndarray) -> np.ndarray:
        """The tangent of a view as part of the tangent of all of its memory."""
        made = np.zeros_like(a.root.numpy())
        as_view(a, made)[...] = dot
        return made

    def __call__(self, kernel: Kernel, dim: Any, inputs: Any, outputs: Any = ()) -> None:
        args = [*inputs, *outputs]
        arrays = [a for a in arrays_in(args) if isinstance(a, Array)]
        given = {a: as_view(a, self.dots[a._storage][1]) for a in arrays if a._storage in self.dots}
        if not given:
            return super().__call__(kernel, dim, args)
        for a, dot in kc.jvp(kernel, dim, args, tangents=given, device=self.device).items():
            if a._storage not in self.dots:
                self.dots[a._storage] = (a.root, np.zeros_like(a.root.numpy()))
            as_view(a, self.dots[a._storage][1])[...] = dot.numpy()

    def zero(self, a: Array) -> None:
        a.zero_()
        if a._storage in self.dots:
            as_view(a, self.dots[a._storage][1])[...] = np.zeros((), a.numpy().dtype)

    def assign(self, a: Array, source: Any) -> None:
        self.zero(a)
        a.assign(source)
        if isinstance(source, Array) and source._storage in self.dots:
            into = self.dots.setdefault(a._storage, (a.root, np.zeros_like(a.root.numpy())))[1]
            as_view(a, into)[...] = as_view(source, self.dots[source._storage][1])

    def tangent(self, a: Array) -> np.ndarray:
        """The tangent of an array now."""
        return as_view(a, self.dots[a._storage][1]) if a._storage in self.dots else np.zeros_like(a.numpy())


def served(variant: Any, seeds: frozenset[int], *_: Any) -> frozenset[int]:
    """As Variant.served answers where only the adjoint for all arrays came with a package, and there is no compiler."""
    try:
        variant.adjoint(variant.all_reals)
    except kc.NotDifferentiable:
        return seeds
    return variant.all_reals


class Look(Run):
    """Launches nothing, and notes which kernels would be needed, with the arrays that carry gradients.

    served: also the adjoints for all arrays
    """

    def __init__(self, whiches: tuple[str, ...], served: bool = False, **options: Any):
        super().__init__(**options)
        self.whiches, self.served = whiches, served
        self.carried: set[Any] = set()
        self.jobs: list[tuple[Any, str, frozenset[int], frozenset[int]]] = []

    def __call__(self, kernel: Kernel, dim: Any, inputs: Any, outputs: Any = ()) -> None:
        plan, args = (twin(kernel) if self.sqrt else kernel).plan([*inputs, *outputs])
        carry = [i for i in plan.arrays if args[i].requires_grad or args[i]._storage in self.carried]
        seeds = frozenset(i for i in carry if args[i].real is not None)
        if seeds and self.served:
            self.jobs.append((plan.variant, "adjoint", served(plan.variant, seeds), plan.contiguous))
        for which in self.whiches:
            if which == "forward" or seeds:
                self.jobs.append((plan.variant, which, seeds if which != "forward" else frozenset(), plan.contiguous))
        if seeds:
            self.carried.update(args[i]._storage for i in plan.variant.adjoint(seeds).activity.arrays)

    def zero(self, a: Array) -> None:
        pass

    def assign(self, a: Array, source: Any) -> None:
        if isinstance(source, Array) and (source.requires_grad or source._storage in self.carried):
            self.carried.add(a._storage)


# -- a recorded run
@dataclass
class Recorded:
    """A case after its forward sweep."""

    case: Case
    args: dict[str, Any]
    tape: kc.Tape

    def weights(self) -> dict[str, np.ndarray]:
        """Of the loss: Σ weights · results, over all arrays that carry a gradient after the launches."""
        random = np.random.default_rng(7)
        found = {}
        for name, a in self.args.items():
            if isinstance(a, Array) and a.real is not None:
                drawn = random.uniform(0.5, 1.5, a.shape)
                if a._storage in self.tape._written and self.tape._carries(a):
                    found[name] = spread(a, drawn)
        return found

    def backward(self) -> None:
        weights = self.weights()
        self.tape.backward(grads={self.args[name]: w for name, w in weights.items()})

    def results(self) -> dict[str, np.ndarray]:
        return {n: a.numpy().copy() for n, a in self.args.items() if isinstance(a, Array) and a.version > 0}

    def gradients(self) -> dict[str, np.ndarray]:
        return {n: self.args[n].grad.numpy().copy() for n in self.case.leaves if self.args[n].grad is not None}


def spread(a: Array, drawn: np.ndarray) -> np.ndarray:
    """Weights for every component of every element, from one number for each element."""
    made = np.zeros_like(a.numpy())

    def fill(data: np.ndarray, scale: float) -> None:
        if data.dtype.fields:
            for k, name in enumerate(data.dtype.names):
                fill(data[name], scale + 0.3 * k)
        elif data.dtype.kind == "f":
            rest = data.shape[drawn.ndim :]
            each = 1 + 0.1 * np.arange(int(np.prod(rest)))
            data[...] = scale * np.multiply.outer(drawn, each).reshape(data.shape)

    fill(made, 1.0)
    return made


def record(which: Case, *, device: str = "cpu", sqrt: bool = False, n: int = SMALL, **options: Any) -> Recorded:
    """Run a case under a tape; the options are those of `Case.make`."""
    args = which.make(n, **options)
    with kc.Tape() as tape:
        which.program(Run(n, device, sqrt), *args.values())
    return Recorded(which, args, tape)


def forward_and_backward(which: Case, **options: Any) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Results and gradients of a case."""
    recorded = record(which, **options)
    results = recorded.results()
    recorded.backward()
    return results, recorded.gradients()


def flat(data: np.ndarray) -> np.ndarray:
    """All numbers of an array, structs included, as float64."""
    if data.dtype.fields:
        return np.concatenate([flat(data[name]) for name in data.dtype.names])
    return data.reshape(-1).astype(np.float64)


def same_bits(got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> bool:
    """Whether two runs agree in every bit; what lies between the fields of structs does not count."""
    return got.keys() == want.keys() and all(flat(got[n]).tobytes() == flat(want[n]).tobytes() for n in got)


def apart(got: dict[str, np.ndarray], want: dict[str, np.ndarray], rtol: float) -> list[str]:
    """Where two runs differ: relative to the largest entry of each array."""
    assert got.keys() == want.keys()
    found = []
    for name in got:
        a, b = flat(got[name]), flat(want[name])
        if not (np.abs(a - b) <= rtol * max(1.0, np.abs(b).max(initial=0))).all():
            found.append(f"{name}: {got[name]} instead of {want[name]}")
    return found
