"""Every operator, on every pair of scalar types, means the same in lanes of every width, thread by thread, and
interpreted: zeros with their signs, infinities, NaNs, the ends of integers, and booleans of any byte included."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from operators.tables import INEXACT, TYPES, make_tables

import kernelc as kc
from kernelc.runtime.compile import prebuild

WIDTHS = [2, 4, 8, 16]
SAME = [(t, t) for t in TYPES]
MIXED = [(a, b) for a in TYPES for b in TYPES if a != b and not ({a, b} == {"kc.float32", "kc.float64"})]
SOON = {"bool": WIDTHS, "int": [16], "kc.int64": [2], "kc.uint32": [8], "kc.float32": [8], "kc.float64": [2, 4]}
"""The widths that are tried in every run; the others take the compiler long."""
ULPS = 8
"""How far the C library and NumPy may be apart in a function that is rounded."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return make_tables(tmp_path_factory.mktemp("operators"))


@pytest.fixture(scope="module")
def built(tables, request):
    """Compiles what the chosen tests need at once."""
    wanted = {(i.callspec.params["pair"], i.callspec.params.get("width", 0)) for i in request.session.items
              if i.module is request.module and hasattr(i, "callspec")}  # fmt: skip
    wanted |= {(pair, 0) for pair, _ in wanted}
    before = kc.config.lanes
    try:
        for width in sorted({w for _, w in wanted}):
            kc.config.lanes = width
            jobs = [tables[pair].job() for pair, w in sorted(wanted) if w == width]
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda part: prebuild(part, total=35), (jobs[::2], jobs[1::2])))
    finally:
        kc.config.lanes = before
    return tables


def apart(table, got, want, ulps=0):
    """The rows where two results differ, in words."""
    found = []
    single = np.float32 in (table.a.dtype, table.b.dtype)  # what is computed so may be kept in 64 bits
    for (expression, real), x, y in zip(table.columns, got, want):
        if real and ulps and INEXACT.search(expression):
            size = np.maximum(np.abs(x), np.abs(y))
            same = (x == y) | (np.abs(x - y) <= ulps * np.spacing(size.astype(np.float32) if single else size))
        else:
            same = (x == y) & (~np.signbit(x) == ~np.signbit(y) if real else True)
        for row in np.flatnonzero(~(same | ((x != x) & (y != y)))):
            a, b = table.a[row].item(), table.b[row].item()
            found.append(f"{expression}: {x[row]!r} instead of {y[row]!r} at a = {a!r}, b = {b!r}")
    return found


def run(table, width, monkeypatch):
    monkeypatch.setattr(kc.config, "lanes", width)
    return table.run()


def check_lanes(tables, pair, width, monkeypatch):
    table = tables[pair]
    assert len(table.a) > 2 * max(WIDTHS) and len(table.a) % 2
    with np.errstate(all="ignore"):
        assert not apart(table, run(table, width, monkeypatch), run(table, 0, monkeypatch))


@pytest.mark.parametrize(("pair", "width"), [
    pytest.param((t, t), w, marks=() if w in SOON[t] else pytest.mark.nightly) for t in TYPES for w in WIDTHS
], ids=str)  # fmt: skip
def test_lanes_compute_the_bits_of_threads(built, pair, width, monkeypatch):
    check_lanes(built, pair, width, monkeypatch)


@pytest.mark.parametrize("width", [4, *(pytest.param(w, marks=pytest.mark.nightly) for w in (2, 8, 16))])
@pytest.mark.parametrize("pair", MIXED, ids="-".join)
def test_lanes_of_two_types_compute_the_bits_of_threads(built, pair, width, monkeypatch):
    check_lanes(built, pair, width, monkeypatch)


@pytest.mark.parametrize("pair", SAME + MIXED, ids="-".join)
def test_threads_compute_what_the_interpreter_says(built, pair, monkeypatch):
    table = built[pair]
    with np.errstate(all="ignore"):
        assert not apart(table, run(table, 0, monkeypatch), table.run("python"), ULPS)


def test_the_tables_are_full(tables):
    assert sorted(tables) == sorted(SAME + MIXED)
    assert all(len(tables[p].columns) >= 12 for p in MIXED) and all(len(tables[p].columns) >= 45 for p in SAME)
