"""The law of the kernel language: a function means in a kernel what it means in Python.

    laws = Laws()

    @laws.values(int, int, gives=int, over=[(7, 2), (-7, 2)])
    def floor_division(a, b):
        return a // b

    @laws.arrays(x=[1.0, 2.0], out=[0.0, 0.0])
    def double(i, x, out):
        out[i] = 2 * x[i]

    test_means_what_python_means = laws.test()

Each function runs as plain Python on Python's own numbers, then as a kernel, one thread per row of `over` (or per
`dim`), in both precisions, compiled (with and without lanes) and interpreted. All kernels of a module are compiled as
one.
"""

# No postponed annotations here: the kernels below are annotated with types that are local to a function.
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import kernelc as kc
from kernelc.runtime import compile as compiling
from kernelc.runtime.arrays import Array

_KINDS = {int: np.int32, float: np.float64, bool: np.bool_, kc.int64: np.int64, kc.uint32: np.uint32}


@contextmanager
def debugging() -> Iterator[None]:
    """Debug mode finds nothing in a correct program."""
    kc.config.debug = True
    try:
        yield
    finally:
        kc.config.debug = False


@contextmanager
def lanes(width: int) -> Iterator[None]:
    """So many threads run side by side."""
    before, kc.config.lanes = kc.config.lanes, width
    try:
        yield
    finally:
        kc.config.lanes = before


def _caller(function: Any, kinds: Sequence[Any], result: Any) -> Any:
    """A kernel that calls a function of values on the elements of arrays."""
    kinds = [*kinds, None, None, None]
    A, B, C = (kc.Array[k or float] for k in kinds[:3])
    R = kc.Array[result]

    @kc.kernel
    def one(a: A, out: R):
        i = kc.tid()
        out[i] = function(a[i])

    @kc.kernel
    def two(a: A, b: B, out: R):
        i = kc.tid()
        out[i] = function(a[i], b[i])

    @kc.kernel
    def three(a: A, b: B, c: C, out: R):
        i = kc.tid()
        out[i] = function(a[i], b[i], c[i])

    return {1: one, 2: two, 3: three}[kinds.index(None)]


def _runner(function: Any, kinds: Sequence[Any]) -> Any:
    """A kernel that hands its arrays to a function."""
    kinds = [*kinds, None, None, None, None]
    A, B, C, D = (k or kc.Array[float] for k in kinds[:4])

    @kc.kernel
    def one(a: A):
        function(kc.tid(), a)

    @kc.kernel
    def two(a: A, b: B):
        function(kc.tid(), a, b)

    @kc.kernel
    def three(a: A, b: B, c: C):
        function(kc.tid(), a, b, c)

    @kc.kernel
    def four(a: A, b: B, c: C, d: D):
        function(kc.tid(), a, b, c, d)

    return {1: one, 2: two, 3: three, 4: four}[kinds.index(None)]


@dataclass
class Case:
    """One function, what it is run on, and what Python says."""

    function: Any
    kernel: Any
    data: list[np.ndarray[Any, Any]]
    dim: int
    python: Callable[[], list[np.ndarray[Any, Any]]]
    tolerance: float
    compiles: bool = True

    def __str__(self) -> str:
        return str(self.function.name)

    @property
    def width(self) -> int:
        """How many lanes the case is run in: it fills more than two groups, where it has so many threads."""
        fitting = [w for w in (2, 4, 8, 16) if 2 * w < self.dim] or [2]
        return fitting[zlib.crc32(str(self).encode()) % len(fitting)]

    def arguments(self, real: Any) -> list[Array]:
        return [kc.array(d.astype(real) if d.dtype.kind == "f" else d.copy()) for d in self.data]

    def job(self, real: Any) -> Any:
        variant = self.kernel.variant(kc.float32 if real is np.float32 else kc.float64)
        return variant, "forward", frozenset(), frozenset(range(len(self.data)))

    def check(self, device: str, real: Any) -> None:
        args = self.arguments(real)
        kc.launch(self.kernel, self.dim, args, device=device)
        tolerance = self.tolerance if real is np.float64 else 2e-6
        for got, want in zip(args, self.python(), strict=True):
            if got.numpy().dtype.kind == "f":
                np.testing.assert_allclose(got.numpy(), want.astype(np.float64), rtol=tolerance, atol=0.0)
                # A zero keeps its sign.
                assert not np.any((want == 0) & (np.signbit(got.numpy()) != np.signbit(want)))
            else:
                np.testing.assert_array_equal(got.numpy(), want)


def _wrapped(values: Sequence[Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Python's numbers in memory: integers wrap."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        bits = 8 * kind.itemsize
        return np.array([int(v) & ((1 << bits) - 1) for v in values], np.uint64).astype(kind)
    return np.array(values, kind)


def filling(rows: list[Any]) -> list[Any]:
    """Rows for more than two of the widest groups of lanes, and a rest: fewer would run thread by thread."""
    many = rows * -(-35 // len(rows))
    return many if len(many) % 2 else [*many, many[0]]


class Laws:
    """The functions of one test module."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.built = False

    def values(self, *kinds: Any, gives: Any, over: Sequence[Any], exact: bool = True) -> Callable[[Any], Any]:
        """A function from numbers to one number, over rows of arguments."""
        rows = filling([row if isinstance(row, tuple) else (row,) for row in over])
        columns = [np.array(c, _KINDS[k]) for k, c in zip(kinds, zip(*rows, strict=True), strict=True)]

        def add(function: Any) -> Any:
            made = kc.func(function)

            def python() -> list[np.ndarray[Any, Any]]:
                results = [function(*(k(v) if isinstance(k, type) else int(v) for k, v in zip(kinds, row, strict=True)))
                           for row in rows]  # fmt: skip
                return [*columns, _wrapped(results, _KINDS[gives])]

            data = [*columns, np.zeros(len(rows), _KINDS[gives])]
            case = Case(made, _caller(made, kinds, gives), data, len(rows), python, 0.0 if exact else 1e-14)
            self.cases.append(case)
            return made

        return add

    def arrays(self, *, dim: int | None = None, exact: bool = True, **given: Any) -> Callable[[Any], Any]:
        """A function of a thread's index and of arrays, which it may write."""
        data = [np.array(g) for g in given.values()]
        data = [d.astype(np.int32) if d.dtype == np.int64 else d for d in data]
        names = {"f": float, "i": int, "b": bool, "u": kc.uint32}
        kinds = [kc.Array[names[d.dtype.kind], d.ndim] for d in data]
        threads = len(data[0]) if dim is None else dim

        def add(function: Any) -> Any:
            made = kc.func(function)

            def python() -> list[np.ndarray[Any, Any]]:
                boxes = [d.astype(object) for d in data]
                for i in range(threads):
                    function(i, *boxes)
                return [_wrapped(b.reshape(-1), d.dtype).reshape(d.shape) for b, d in zip(boxes, data, strict=True)]

            self.cases.append(Case(made, _runner(made, kinds), data, threads, python, 0.0 if exact else 1e-14))
            return made

        return add

    def build(self) -> None:
        """Compile everything that can be compiled in one go; what cannot be is reported by its own test."""
        if self.built:
            return
        self.built = True
        jobs: dict[int, list[Any]] = {}
        for case in self.cases:
            for real in (np.float64, np.float32):
                try:
                    jobs.setdefault(case.width, []).append(case.job(real))
                except kc.KernelError:
                    case.compiles = False
        with lanes(0):
            compiling.prebuild([job for some in jobs.values() for job in some])
        for width, some in jobs.items():
            with lanes(width):
                compiling.prebuild(some, total=1 << 20)
        with debugging():
            compiling.prebuild([case.job(np.float64) for case in self.cases if case.compiles])

    def test(self) -> Any:
        @pytest.mark.parametrize("case", self.cases, ids=str)
        @pytest.mark.parametrize("device", ["cpu", "lanes", "python", "debug"])
        def means_what_python_means(case: Case, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
            self.build()
            if device == "debug":
                with debugging():
                    return case.check("cpu", np.float64)
            monkeypatch.setattr(kc.config, "lanes", case.width if device == "lanes" else 0)
            for real in (np.float64, np.float32):
                case.check("python" if device == "python" else "cpu", real)

        return means_what_python_means
