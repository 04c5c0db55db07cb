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


@pytest.mark.parametrize("name", ["fem", "nbody", "particles", "saxpy"])
def test_hand_written_code_on_several_threads_agrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELC_THREADS", "3")
    outcome = harness.run(CASES[name], CASES[name].tiny, rounds=0, only=["cpp"])
    assert max(outcome.errors.values()) <= CASES[name].tolerance


def test_an_entrant_that_computes_something_else_is_found() -> None:
    case = CASES["saxpy"]
    work = case.make(case.tiny)
    with pytest.raises(harness.Disagreement, match="saxpy: liar is off by"):
        harness.agree(case, "liar", {"out": work.x}, case.reference(work))


def test_outcomes_become_tables_with_ratios_to_ours(tmp_path) -> None:
    rounds = {name: [harness.Sample(best * k, best * k * cores) for k in (1.0, 1.2, 1.4, 2.0, 1.1)]
              for name, best, cores in (("kernelc", 0.001, 2.0), ("other", 0.002, 1.0))}  # fmt: skip
    outcome = harness.Outcome(CASES["saxpy"], 10, 1.0, {"forward": rounds}, absent={"warp": "not installed (warp)"})
    assert "other    2 (2.00)" in table.text([outcome])
    assert "warp: not installed (warp)" in table.text([outcome])
    page = table.markdown([outcome], "python -m benchmarks", "speed.svg", 2)
    assert "| other | 2 (2.00) |" in page and "two cores" in page and "](speed.svg)" in page
    # By hand: of 1, 1.1, 1.2, 1.4 and 2 the median is 1.2, and the quartiles 1.1 and 1.4 lie 0.3 / 2 / 1.2 from it.
    assert "| kernelc | 1.2 ± 12%, 2.0 |" in page and "| other | 2.4 ± 12%, 1.0 |" in page
    plot.draw([outcome], tmp_path / "speed.svg")
    assert "saxpy: forward" in (tmp_path / "speed.svg").read_text()
