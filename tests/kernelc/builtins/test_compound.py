"""Every compound row against its NumPy meaning and against differences, in kernels that are generated from the table.

One kernel per row, signature and size: it reads its arguments from the columns of arrays, one row per thread, and
writes the leaves of its results to the columns of another.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import kernelc as kc
from kernelc import types as t
from kernelc.builtins import TABLE, CompoundRow
from kernelc.builtins.signatures import bind_values, instantiate, parse

SIZES = {"n": 3, "r": 2, "c": 3}
MORE_SIZES: dict[str, list[dict[str, int]]] = {
    "length": [{"n": 2}, {"n": 5}], "normalize": [{"n": 2}], "inverse": [{"n": 2}, {"n": 4}, {"n": 5}],
    "solve": [{"n": 2}, {"n": 6}], "cholesky": [{"n": 2}, {"n": 4}],
}  # fmt: skip
THREADS = 24
REALS = {np.float64: kc.float64, np.float32: kc.float32}


@dataclass(frozen=True)
class Case:
    """One kernel of the generated module."""

    row: CompoundRow
    signature: str
    types: tuple[t.Type, ...]
    results: tuple[t.Type, ...]

    @property
    def name(self) -> str:
        shapes = "_".join("".join(map(str, getattr(k, "shape", ()))) or "s" for k in self.types)
        return f"{self.row.name}_{self.row.signatures.index(self.signature)}_{shapes}"


def _case(row: CompoundRow, signature: str, sizes: dict[str, int]) -> Case:
    parsed = parse(signature)
    types, results = ([instantiate(p, sizes) for p in patterns] for patterns in (parsed.params, parsed.results))
    return Case(row, signature, tuple(types), tuple(results))


def _cases() -> list[Case]:
    found = []
    for row in TABLE.rows.values():
        if isinstance(row, CompoundRow):
            found += [_case(row, signature, SIZES) for signature in row.signatures]
            found += [_case(row, row.signatures[0], SIZES | more) for more in MORE_SIZES.get(row.name, [])]
    return found


CASES = _cases()
SMOOTH = [case for case in CASES if case.row.smooth and case.row.params]
SINGULAR = [(case, values) for case in CASES for values in case.row.singular
            if (sizes := bind_values(case.signature, values)) is not None
            and _case(case.row, case.signature, SIZES | sizes) == case]  # fmt: skip


# -- the generated kernels
def _is_int(kind: t.Type) -> bool:
    return isinstance(kind, t.Scalar) and kind.is_int


def _width(kind: t.Type) -> int:
    return len(t.leaves(kind))


def _paths(kind: t.Type, name: str) -> list[str]:
    """How to read each leaf of a value."""
    if isinstance(kind, t.Scalar):
        return [f"(1.0 if {name} else 0.0)" if kind is t.BOOL else f"float({name})"]
    if isinstance(kind, t.Mat):
        return [f"{name}[{i}, {j}]" for i in range(kind.r) for j in range(kind.c)]
    if isinstance(kind, t.Transform):
        return [f"{name}.p[{i}]" for i in range(3)] + [f"{name}.q[{i}]" for i in range(4)]
    return [f"{name}[{i}]" for i in range(_width(kind))]


def _argument(kind: t.Type, column: int) -> str:
    if _is_int(kind):
        return f"ints[i, {column}]"
    reads = [f"reals[i, {column + k}]" for k in range(_width(kind))]
    if isinstance(kind, t.Scalar):
        return reads[0]
    if isinstance(kind, t.Transform):
        return f"kc.transform(kc.float3({', '.join(reads[:3])}), kc.quat({', '.join(reads[3:])}))"
    make = {t.Vec: "kc.vec({})", t.Mat: "kc.mat({})", t.Quat: "kc.quat"}[type(kind)]
    return f"{make.format(', '.join(map(str, kind.shape)))}({', '.join(reads)})"


def _element(kind: t.ArrayType) -> str:
    if isinstance(kind.element, t.Vec):
        return f"kc.vec({kind.element.n})"
    return "int" if _is_int(kind.element) else "float"


def _text(case: Case) -> str:
    head, lines, names = [], ["i = kc.tid()"], []
    columns = {"reals": 0, "ints": 0}
    for name, kind in zip(case.row.params, case.types, strict=True):
        names.append(f"{name}_")
        if isinstance(kind, t.ArrayType):
            head.append(f"{name}_: kc.Array[{_element(kind)}, {kind.ndim}]")
            continue
        place = "ints" if _is_int(kind) else "reals"
        lines.append(f"{name}_ = {_argument(kind, columns[place])}")
        columns[place] += _width(kind)
    head += [f"{place}: kc.Array[{'int' if place == 'ints' else 'float'}, 2]" for place, n in columns.items() if n]
    results = [f"r{k}" for k in range(len(case.results))]
    lines.append(f"{', '.join(results)} = kc.{case.row.name}({', '.join(names)})")
    leaves = [p for kind, name in zip(case.results, results, strict=True) for p in _paths(kind, name)]
    lines += [f"out[i, {k}] = {leaf}" for k, leaf in enumerate(leaves)]
    body = "\n    ".join(lines)
    return f"@kc.kernel\ndef {case.name}({', '.join([*head, 'out: kc.Array[float, 2]'])}):\n    {body}\n"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """The generated module."""
    path = tmp_path_factory.mktemp("generated") / "compound_kernels.py"
    path.write_text("import kernelc as kc\n\n\n" + "\n\n".join(_text(case) for case in CASES))
    spec = importlib.util.spec_from_file_location("compound_kernels", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- arguments
@dataclass
class Arguments:
    """Arguments of all threads: shared arrays, and a list of values per thread."""

    case: Case
    shared: list[Any]
    values: list[tuple[Any, ...]]
    real: type

    def columns(self, ints: bool) -> Any:
        kinds = [(k, kind) for k, kind in enumerate(self.case.types) if not isinstance(kind, t.ArrayType)]
        picked = [k for k, kind in kinds if _is_int(kind) == ints]
        if not picked:
            return None
        rows = [np.concatenate([np.ravel(values[k]) for k in picked]) for values in self.values]
        return np.array(rows, np.int32 if ints else self.real)

    @property
    def leaves(self) -> int:
        return sum(_width(kind) for kind in self.case.results)

    def run(self, kernels: Any, shared: list[Any], reals: Any, adjoint: Any = None) -> Any:
        """The output; with an adjoint of it, the gradients by shared arrays and reals."""
        arrays = [kc.array(a, dtype=self.dtype(k), requires_grad=adjoint is not None and a.dtype.kind == "f")
                  for k, a in enumerate(shared)]  # fmt: skip
        if reals is not None:
            arrays.append(kc.array(reals, dtype=float, requires_grad=adjoint is not None))
        ints = self.columns(True)
        inputs = arrays + ([kc.array(ints, dtype=int)] if ints is not None else [])
        out = kc.zeros((len(self.values), self.leaves), dtype=float, real=REALS[self.real])
        kernel = getattr(kernels, self.case.name)
        if adjoint is None:
            kc.launch(kernel, dim=len(self.values), inputs=inputs, outputs=[out])
            return out.numpy()
        with kc.Tape() as tape:
            kc.launch(kernel, dim=len(self.values), inputs=inputs, outputs=[out])
        tape.backward(grads={out: adjoint.astype(self.real)})
        return out.numpy(), [a.grad.numpy() if a.requires_grad else None for a in arrays]

    def dtype(self, k: int) -> Any:
        kind = self.case.types[k]
        assert isinstance(kind, t.ArrayType)
        return int if _is_int(kind.element) else kind.element if isinstance(kind.element, t.Vec) else float

    def unflatten(self, row: Any) -> tuple[Any, ...]:
        found, at = [], 0
        for kind in self.case.results:
            found.append(np.asarray(row[at : at + _width(kind)], float).reshape(getattr(kind, "shape", ())))
            at += _width(kind)
        return tuple(found)


def _draw(rng: Any, kind: t.Type, bounds: tuple[float, float]) -> Any:
    low, high = bounds
    if isinstance(kind, t.Scalar):
        return int(rng.integers(int(low), int(high))) if kind.is_int else rng.uniform(low, high)
    value = rng.uniform(low, high, kind.shape)  # type: ignore[attr-defined]
    if isinstance(kind, (t.Quat, t.Transform)):
        value[-4:] = rng.standard_normal(4)
        value[-4:] /= np.linalg.norm(value[-4:])
    return value


def _arguments(case: Case, real: type, threads: int = THREADS) -> Arguments:
    rng = np.random.default_rng(7)
    drawn = []
    for _ in range(threads):
        if case.row.make is not None:
            drawn.append(tuple(case.row.make(rng, case.types)))
        else:
            pairs = zip(case.types, case.row.domain, strict=True)
            drawn.append(tuple(_draw(rng, kind, bounds) for kind, bounds in pairs))
    return _packed(case, drawn, real)


def _packed(case: Case, drawn: list[tuple[Any, ...]], real: type) -> Arguments:
    """Arrays are those of the first draw; reals are rounded to the precision that the kernel sees."""
    shared, values = [], []
    for values_of_one in drawn:
        rounded = []
        for kind, value, first in zip(case.types, values_of_one, drawn[0], strict=True):
            array = isinstance(kind, t.ArrayType)
            integer = _is_int(kind.element if array else kind)  # type: ignore[attr-defined]
            source = first if array else value
            rounded.append(np.asarray(source, np.int32) if integer else np.asarray(source, real))
        values.append(tuple(rounded))
    shared = [v for kind, v in zip(case.types, values[0], strict=True) if isinstance(kind, t.ArrayType)]
    return Arguments(case, shared, values, real)


def _plain(value: Any) -> Any:
    """As a user would pass it to the NumPy meaning: in double precision."""
    array = np.asarray(value)
    if array.dtype.kind == "f":
        return array.astype(float) if array.ndim else float(array)
    return array if array.ndim else int(array)


# -- the laws
@pytest.mark.parametrize("real", [np.float64, np.float32], ids=["f64", "f32"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_value_is_that_of_numpy(kernels, case, real):
    arguments = _arguments(case, real)
    out = arguments.run(kernels, arguments.shared, arguments.columns(False))
    tolerance = 1e-9 if real is np.float64 else 1e-4
    for values, row in zip(arguments.values, out, strict=True):
        args = tuple(_plain(v) for v in values)
        want = case.row.python(*args)
        want = tuple(np.asarray(w, float) for w in (want if isinstance(want, tuple) else (want,)))
        got = arguments.unflatten(row)
        if case.row.invariant is not None:
            want, got = case.row.invariant(args, want), case.row.invariant(args, got)
        for x, y in zip(got, want, strict=True):
            scale = max(1.0, float(np.max(np.abs(y))))
            np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * scale, err_msg=f"{case.name}{args}")


@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: case.name)
def test_adjoint_is_that_of_differences(kernels, case):
    arguments = _arguments(case, np.float64)
    shared, reals = arguments.shared, arguments.columns(False)
    weights = np.random.default_rng(3).standard_normal((THREADS, arguments.leaves))
    out, gradients = arguments.run(kernels, shared, reals, weights)
    np.testing.assert_allclose(out, arguments.run(kernels, shared, reals), rtol=1e-14, atol=1e-14)
    h = 1e-6

    def slope(at: Any, change: Any) -> Any:
        """Central difference of what each thread contributes to the weighted sum, by a change of one argument."""
        results = []
        for sign in (1, -1):
            moved = [a.copy() for a in [*shared, reals]]
            moved[at][change] += sign * h
            results.append(arguments.run(kernels, moved[:-1], moved[-1]))
        return ((results[0] - results[1]) * weights).sum(1) / (2 * h)

    for column in range(reals.shape[1]):
        want = slope(len(shared), (slice(None), column))
        scale = np.maximum(1.0, np.abs(gradients[-1]).max(1))
        np.testing.assert_array_less(np.abs(gradients[-1][:, column] - want), 2e-7 * scale, err_msg=f"column {column}")
    for k, array in enumerate(shared):
        if array.dtype.kind == "f":
            for index in np.ndindex(array.shape):
                assert abs(gradients[k][index] - slope(k, index).sum()) < 1e-7


@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: case.name)
def test_adjoint_is_the_same_in_single_precision(kernels, case):
    single = _arguments(case, np.float32)
    double = _packed(case, [tuple(_plain(v) for v in values) for values in single.values], np.float64)
    weights = np.random.default_rng(3).standard_normal((THREADS, single.leaves))
    pair = [a.run(kernels, a.shared, a.columns(False), weights)[1] for a in (single, double)]
    for got, want in zip(*pair):
        if want is not None:
            scale = np.maximum(1.0, np.abs(want).max(axis=-1, keepdims=True))
            np.testing.assert_array_less(np.abs(got - want) / scale, 2e-4)


@pytest.mark.parametrize("real", [np.float64, np.float32], ids=["f64", "f32"])
@pytest.mark.parametrize(("case", "values"), SINGULAR, ids=lambda item: getattr(item, "name", ""))
def test_singular_points_are_finite(kernels, case, values, real):
    arguments = _packed(case, [values], real)
    adjoint = np.linspace(0.5, 1.5, arguments.leaves)[None]
    out, gradients = arguments.run(kernels, arguments.shared, arguments.columns(False), adjoint)
    assert np.isfinite(out).all(), out
    assert all(np.isfinite(g).all() for g in gradients), gradients
