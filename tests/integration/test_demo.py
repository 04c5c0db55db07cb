"""The demo end to end: the throw is found again, and the report can be read by itself."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from nablasim.sysid import demo
from nablasim.sysid.cli import app


@pytest.fixture(scope="module")
def small():
    return demo.run_demo(cloth=demo.Cloth(cells=4, steps=100, every=10, dt=1 / 125, mark_every=2))


def test_the_throw_is_found_again(small):
    assert small.fit.converged
    np.testing.assert_allclose(small.fit.value, demo.TRUTH, atol=1e-4)


def test_the_tapes_gradient_is_that_of_central_differences(small):
    assert small.gradient_error < 1e-6


def test_the_loss_ends_far_below_its_start(small):
    assert small.fit.losses.min() < 1e-9 * small.fit.losses[0]


def test_the_simulation_ends_where_the_cloth_was_seen(small):
    np.testing.assert_allclose(small.after, small.seen, atol=1e-3)
    assert np.abs(small.before - small.seen).max() > 1.0


def test_the_command_writes_a_page_that_needs_nothing_else(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["loss.png", "report.html", "trajectory.png"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Found" in page and page.count("data:image/png;base64,") == 2
    assert not re.search(r"<script|<link|https?://|src=\"(?!data:)", page)


def test_a_descent_that_runs_out_says_so_and_fails(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--iterations", "2"])
    assert result.exit_code == 1
    assert "Not found: stopped after 2 iterations" in result.output
