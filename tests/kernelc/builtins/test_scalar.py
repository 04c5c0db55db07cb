"""Every scalar row keeps its promises: value as NumPy, derivative as differences, in both precisions, compiled and
interpreted, and the documented slope at singular points.

One generated kernel calls all rows, each on columns of its own, so that little has to be compiled.
"""

import importlib.util

import numpy as np
import pytest

import kernelc as kc
from kernelc.builtins import TABLE, ScalarRow

ROWS = [row for row in TABLE.rows.values() if isinstance(row, ScalarRow)]
SMOOTH = [row for row in ROWS if any(p is not None for p in row.partials)]
CUTS = [row for row in ROWS if row.cuts]
SINGULAR = [(row, point) for row in ROWS for point in row.singular]
FIRST = dict(zip([r.name for r in ROWS], np.cumsum([0, *(len(r.params) for r in ROWS)]).tolist(), strict=False))
WIDTH = sum(len(row.params) for row in ROWS)
THREADS = 40
REALS = {np.float64: kc.float64, np.float32: kc.float32}
PRECISIONS = pytest.mark.parametrize("real", [np.float64, np.float32], ids=["f64", "f32"])
LOGIC = {"and": "{} and {}", "or": "{} or {}", "not": "not {}"}
each = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def text() -> str:
    lines = ["import kernelc as kc", "from kernelc.builtins import TABLE", ""]
    lines += [f"row_{row.name} = TABLE.rows[{row.name!r}]" for row in ROWS]
    lines += ["", "", "@kc.kernel", "def everything(x: kc.Array[float, 2], y: kc.Array[float, 2]):", "    i = kc.tid()"]
    for k, row in enumerate(ROWS):
        reads = [f"x[i, {FIRST[row.name] + n}]" for n in range(len(row.params))]
        if row.kind == "int":
            reads = [f"int({x})" for x in reads]
        call = f"row_{row.name}({', '.join(reads)})"
        if row.kind == "logic":
            call = LOGIC[row.name].format(*(f"({x} > 0.0)" for x in reads))
        lines.append(f"    y[i, {k}] = {call}" if row.kind in ("real", "number") else f"    y[i, {k}] = float({call})")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    path = tmp_path_factory.mktemp("generated") / "scalar_kernels.py"
    path.write_text(text(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("scalar_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.everything


def draw(seed: int = 0) -> np.ndarray:
    """Numbers for all threads, each parameter from its domain."""
    rng = np.random.default_rng(seed)
    columns = [rng.uniform(low, high, THREADS) for row in ROWS for low, high in row.domain]
    return np.stack(columns, axis=1)


def arguments(row: ScalarRow, x: np.ndarray) -> list[np.ndarray]:
    columns = [x[:, FIRST[row.name] + n] for n in range(len(row.params))]
    if row.kind == "int":
        return [c.astype(np.int32) for c in columns]
    return [c > 0 for c in columns] if row.kind == "logic" else columns


@pytest.fixture(scope="module")
def results(everything):
    """For each precision and device the inputs, the values, and the tape."""
    found = {}
    for real in REALS:
        for device in ("cpu", "python"):
            x = kc.array(draw().astype(real), requires_grad=True)
            y = kc.zeros((THREADS, len(ROWS)), real=REALS[real])
            with kc.Tape() as tape:
                kc.launch(everything, dim=THREADS, inputs=[x], outputs=[y], device=device)
            found[real, device] = x, y, tape
    return found


def gradient(results, real, device, row) -> np.ndarray:
    """The gradient of the sum of one row's results by the columns of its parameters."""
    x, y, tape = results[real, device]
    seed = np.zeros(y.numpy().shape, real)
    seed[:, ROWS.index(row)] = 1
    tape.zero()
    tape.backward(grads={y: seed})
    grad = x.grad.numpy().copy()
    mine = slice(FIRST[row.name], FIRST[row.name] + len(row.params))
    own = grad[:, mine].copy()
    grad[:, mine] = 0
    assert not grad.any(), "a row gave a gradient to arguments of another"
    return own


@each
def test_it_says_what_it_is(row):
    assert row.doc and "\n" not in row.doc and row.cpp and callable(row.python)
    assert len(row.domain) == len(row.partials) == len(row.params) and all(low < high for low, high in row.domain)
    assert all(len(point) == len(row.params) for point in row.singular)


@PRECISIONS
@pytest.mark.parametrize("device", ["cpu", "python"])
@each
def test_its_value_is_that_of_numpy(results, row, device, real):
    x, y, _ = results[real, device]
    want = row.python(*arguments(row, x.numpy()))
    tolerance = 1e-12 if real is np.float64 else 2e-5
    np.testing.assert_allclose(y.numpy()[:, ROWS.index(row)], np.asarray(want, float), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("row", SMOOTH, ids=lambda row: row.name)
def test_its_derivative_is_that_of_differences(results, row, device):
    args, h = arguments(row, draw()), 1e-6
    own = gradient(results, np.float64, device, row)
    for n, partial in enumerate(row.partials):
        if partial is None:
            assert not own[:, n].any()
            continue
        above, below = ([a + s * h * (k == n) for k, a in enumerate(args)] for s in (1, -1))
        slope = (row.python(*above) - row.python(*below)) / (2 * h)
        np.testing.assert_allclose(own[:, n], slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("row", SMOOTH, ids=lambda row: row.name)
def test_its_derivative_in_single_precision_is_that_in_double(results, row):
    single, double = (gradient(results, real, "cpu", row) for real in (np.float32, np.float64))
    np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("row", CUTS, ids=lambda row: row.name)
def test_a_gradient_that_ends_is_reported(everything, results, row):
    assert not gradient(results, np.float64, "cpu", row).any()
    assert row.name in {cut.operation for cut in kc.explain(everything).cuts}


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize(("row", "point"), SINGULAR, ids=lambda v: getattr(v, "name", None) or str(v))
def test_slopes_at_singular_points_are_the_documented_ones(everything, row, point, device):
    content = draw()[:1]
    content[0, FIRST[row.name] : FIRST[row.name] + len(row.params)] = point
    x, y = kc.array(content, requires_grad=True), kc.zeros((1, len(ROWS)), real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(everything, dim=1, inputs=[x], outputs=[y], device=device)
    seed = np.zeros((1, len(ROWS)))
    seed[0, ROWS.index(row)] = 1
    tape.backward(grads={y: seed})
    want = [slope or 0.0 for slope in row.slopes(*point)]
    got = x.grad.numpy()[0, FIRST[row.name] : FIRST[row.name] + len(row.params)]
    assert np.isfinite(want).all() and got.tolist() == want
