"""Every benchmark runs at its smallest size, and everybody computes the same. Nothing is timed here."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import harness, plot, table

CASES = harness.cases()


@pytest.mark.parametrize("name", [name for name in CASES if name != "start"])
def test_ours_and_hand_written_code_agree(name: str) -> None:
    outcome = harness.run(CASES[name], CASES[name].tiny, rounds=0, only=["kernelc", "cpp"])
    assert "kernelc" in outcome.errors
    assert max(outcome.errors.values()) <= CASES[name].tolerance


def test_an_entrant_that_computes_something_else_is_found() -> None:
    case = CASES["saxpy"]
    work = case.make(case.tiny)
    with pytest.raises(harness.Disagreement, match="saxpy: liar is off by"):
        harness.agree(case, "liar", {"out": work.x}, case.reference(work))


def test_outcomes_become_tables_with_ratios_to_ours(tmp_path) -> None:
    outcome = harness.Outcome(CASES["saxpy"], 10, 1.0, best={"forward": {"kernelc": 0.001, "other": 0.002}},
                              absent={"warp": "not installed (warp)"})  # fmt: skip
    assert "other    2 (2.00)" in table.text([outcome])
    assert "warp: not installed (warp)" in table.text([outcome])
    page = table.markdown([outcome], "python -m benchmarks", "speed.svg", 2)
    assert "| other | 2 (2.00) |" in page and "two threads" in page and "](speed.svg)" in page
    plot.draw([outcome], tmp_path / "speed.svg")
    assert "saxpy: forward" in (tmp_path / "speed.svg").read_text()
