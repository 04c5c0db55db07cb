"""`python -m benchmarks`: run the cases and print the tables."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main() -> None:
    options = parse()
    restrict(options.threads)
    from . import harness, plot, table  # after the limits are set: libraries look at them when they are imported

    known = harness.cases()
    wanted = options.only or list(known)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no case {', '.join(unknown)}; there are {', '.join(known)}")
    outcomes = []
    for case in (known[name] for name in wanted):
        for size in [case.tiny] if options.tiny else options.sizes or case.sizes:
            print(f"{case.name} {size} …", file=sys.stderr, flush=True)
            outcomes.append(harness.run(case, size, rounds=options.rounds, only=options.peers))
    print(table.text(outcomes))
    if options.write:
        picture = options.write.with_suffix(".svg")
        options.write.parent.mkdir(parents=True, exist_ok=True)
        plot.draw(outcomes, picture)
        options.write.write_text(table.markdown(outcomes, command(), picture.name, options.threads))
        print(f"written: {options.write}, {picture}", file=sys.stderr)


def parse() -> argparse.Namespace:
    def words(text: str) -> list[str]:
        return [w for w in text.split(",") if w]

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", type=words, default=[], metavar="CASES", help="cases, separated by commas")
    parser.add_argument("--peers", type=words, default=[], help="modules of the cases: kernelc,cpp,warp,jax,…")
    parser.add_argument("--sizes", type=lambda t: [int(w) for w in words(t)], default=[], help="not the usual ones")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds; 0 only checks that all agree")
    parser.add_argument("--threads", type=int, default=1, help="cores that everybody may use (1)")
    parser.add_argument("--tiny", action="store_true", help="the smallest size of each case")
    parser.add_argument("--write", type=Path, nargs="?", const=Path(__file__).parents[1] / "docs/kernelc/speed.md",
                        metavar="FILE", help="also write a page and a picture (docs/kernelc/speed.md)")  # fmt: skip
    return parser.parse_args()


def command() -> str:
    """What was typed, without where things lie on this machine."""
    root = f"{Path(__file__).parents[1]}/"
    return " ".join(["python -m benchmarks", *[word.removeprefix(root) for word in sys.argv[1:]]])


def restrict(threads: int) -> None:
    """Everybody gets the same cores."""
    for name in ("KERNELC_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(threads)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


if __name__ == "__main__":
    main()
