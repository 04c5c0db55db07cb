"""`python -m benchmarks.right`: prints the table of verdicts; fails where one of ours is neither right nor refused."""

import argparse
import importlib.util
from importlib.metadata import version
from pathlib import Path

from . import PEERS, judge, judged, table

DISTRIBUTIONS = {"warp": "warp-lang", "taichi": "taichi", "jax": "jax"}
PAGE = Path(__file__).parents[2] / "docs" / "kernelc" / "right.md"
HEAD = """<!-- Written by `python -m benchmarks.right --write`; do not edit. -->
# Whose gradients are right

Twelve programs of a few lines, each written as a user of the framework would write it, held against central differences
in float64. *Right* is the derivative of what ran, *refused* an error, *wrong* another number without a word. The
programs are in `benchmarks/right/`, one file for each framework; `python -m benchmarks.right` runs those installed.

"""

parser = argparse.ArgumentParser(prog="python -m benchmarks.right")
parser.add_argument("--peers", default=",".join(PEERS))
parser.add_argument("--judge", nargs="+", metavar=("PEER", "PROGRAM"), help=argparse.SUPPRESS)
parser.add_argument("--write", action="store_true", help="also docs/kernelc/right.md")
options = parser.parse_args()
if options.judge:
    judge(options.judge[0], options.judge[1:])
    raise SystemExit
found = {}
for peer in options.peers.split(","):
    if importlib.util.find_spec(peer) is None:
        print(f"{peer} is left out: it is not installed")
    else:
        found[peer] = judged(peer)
print(table(found))
if options.write:
    versions = ", ".join(f"{DISTRIBUTIONS[peer]} {version(DISTRIBUTIONS[peer])}" for peer in found if peer != "kernelc")
    PAGE.write_text(f"{HEAD}{table(found)}\n\nMeasured with {versions}.\n")
ours = found.get("kernelc", {}).values()
raise SystemExit(any(said != "right" and not said.startswith("refused") for said in ours))
