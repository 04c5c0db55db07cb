"""What every kernel takes of a GPU, as ptxas reports it: writes docs/kernelc/cuda_resources.md. Needs nvcc, no GPU.

    python tests/kernelc/gpu/resources.py          some minutes; `make resources` does the same

Kernels of the repository one by one; of the corpus of the laws and of random programs the sum. A warning of nvcc or
ptxas ends it with an error.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/kernelc/cuda_resources.md"
sys.path[:0] = [str(ROOT / "tests/kernelc"), str(ROOT)]

from gpu import corpus, repository  # noqa: E402
from gpu.compiling import compiled  # noqa: E402
from gpu.repository import PARTS  # noqa: E402

from kernelc import types as t  # noqa: E402
from kernelc.codegen import Code  # noqa: E402
from kernelc.toolchain import Resources, nvcc  # noqa: E402

ARCHITECTURE = 80
RANDOM_PROGRAMS = 8
LARGE = 100_000
"""Characters of a kernel that ptxas takes minutes for: it is not measured."""


def measured(codes: Iterable[Code]) -> dict[str, Resources]:
    """What ptxas says about kernels, by name."""
    return compiled(codes, [ARCHITECTURE], workers=2)[ARCHITECTURE]


def is_large(code: Code) -> bool:
    return len(code.text) > LARGE


def cell(found: Resources | None) -> str:
    return f"{found.registers} / {found.stack} / {found.spills}" if found else "–"


def rows_of_the_repository() -> list[str]:
    """One row for each kernel."""
    found = repository.kernels()
    made = repository.codes(found, t.FLOAT32)
    # In the parts that the tests compile: what was done there is not done again.
    parts = [[code for codes in made[n::PARTS] for code in codes.values() if not is_large(code)] for n in range(PARTS)]
    what = {name: one for part in parts for name, one in measured(part).items()}
    rows = []
    for name, codes in zip((f.name for f in found), made, strict=True):
        kinds = [codes.get(which) for which in ("forward", "adjoint", "counted")]
        cells = ["large" if code and is_large(code) else cell(what[code.name]) if code else "–" for code in kinds]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return rows


def row_of_many(title: str, codes: Sequence[Code]) -> str:
    """How many kernels, their registers in the middle and at most, how many keep or spill to local memory."""
    found = list(measured(codes).values())
    registers = [r.registers for r in found]
    local, spilled = sum(r.stack > 0 for r in found), sum(r.spills > 0 for r in found)
    middle, most = statistics.median_low(registers), max(registers)
    return f"| {title} | {len(found)} | {middle} | {most} | {local} | {spilled} |"


def page() -> str:
    rows = rows_of_the_repository()
    with tempfile.TemporaryDirectory() as folder:
        many = [
            row_of_many("corpus of the laws", corpus.codes_of_the_laws(variants=corpus.PLAIN)),
            row_of_many(f"{RANDOM_PROGRAMS} random programs", corpus.codes_of_programs(RANDOM_PROGRAMS, Path(folder))),
        ]
    return f"""# What kernels take of a GPU

Written by `python tests/kernelc/gpu/resources.py`; do not edit. nvcc {nvcc().version} for sm_{ARCHITECTURE}, without a
warning. No GPU took part.

## Kernels of the repository

In single precision: registers of a thread / bytes of local memory for variables that cannot be in registers / bytes
stored and loaded because registers did not suffice. "large" are kernels of more than {LARGE:,} characters, which take
ptxas minutes: they are not measured.

| kernel | forward | adjoint | counting for it |
|---|---|---|---|
{chr(10).join(rows)}

## Kernels of the tests

In double precision: forward, adjoint, forward mode, and kernels that count for their adjoint.

| kernels | how many | registers: median | most | with local memory | with spills |
|---|---|---|---|---|---|
{chr(10).join(many)}
"""


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE.relative_to(ROOT))
