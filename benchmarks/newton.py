"""`python -m benchmarks.newton`: blocks of tetrahedra through nablasim.physics, beside Newton's semi-implicit solver.

The same block, material and steps, in one process and in interleaved rounds; positions and gradients of both agree with
a run in double precision. `pip install newton` first; without it, ours stands beside rates of Newton 1.7 that were
measured elsewhere.
"""

from __future__ import annotations

import argparse

from . import __main__ as command

STATED = {1000: 745.0, 8000: 195.0}
"""Forward steps per second of Newton 1.7, step by step, as they were measured elsewhere."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.newton", description=__doc__)
    parser.add_argument("--sizes", type=lambda t: [int(w) for w in t.split(",")], default=[1000, 8000])
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds")
    parser.add_argument("--threads", type=int, default=1, help="cores that both may use (1)")
    options = parser.parse_args()
    command.restrict(options.threads)
    for size in options.sizes:
        print("\n".join(compare(size, options.rounds)), flush=True)


def compare(size: int, rounds: int) -> list[str]:
    """Lines of a report for one block."""
    from . import harness

    outcome = harness.run(harness.cases()["fem"], size, rounds=rounds, only=["physics", "newton"])
    lines = [f"{size:,} tetrahedra, steps/s"]
    for what, best in outcome.best.items():
        rates = {name: outcome.count / seconds for name, seconds in best.items()}
        ours = rates["physics"]
        lines.append(f"  {what}: physics {ours:,.0f}")
        theirs = {name: rate for name, rate in rates.items() if name.startswith("Newton")}
        lines += [f"    {name} {rate:,.0f}: {ours / rate:.1f} times" for name, rate in theirs.items()]
        if "newton" in outcome.absent and what == "forward" and size in STATED:
            lines.append(f"    Newton, as stated, {STATED[size]:,.0f}: {ours / STATED[size]:.1f} times")
    return [*lines, *(f"  {name}: {why}" for name, why in outcome.absent.items())]


if __name__ == "__main__":
    main()
