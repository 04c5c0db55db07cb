"""What every kernel takes of a GPU, as ptxas reports it: writes docs/kernelc/cuda_resources.md. Needs nvcc, no GPU.

    python tests/kernelc/gpu/resources.py          some minutes; `make resources` does the same

Kernels of the repository one by one; of the corpus of the laws and of random programs the sum. A warning of nvcc or
ptxas ends it with an error.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/kernelc/cuda_resources.md"
sys.path[:0] = [str(ROOT / "tests/kernelc"), str(ROOT)]

from gpu import corpus, repository  # noqa: E402

from kernelc import types as t  # noqa: E402
from kernelc.codegen import DEVICE_HEADER, Code  # noqa: E402
from kernelc.toolchain import Resources, cache_root, nvcc, resources  # noqa: E402
from kernelc.toolchain.build import headers_in  # noqa: E402

ARCHITECTURE = 80
BATCH = 150_000
"""Characters of CUDA that go to one run of nvcc."""
RANDOM_PROGRAMS = 8


def measured(codes: Iterable[Code]) -> dict[str, Resources]:
    """What ptxas says about kernels, by name, compiled in batches on two cores."""
    batches: list[list[str]] = [[]]
    for code in codes:
        if sum(map(len, batches[-1])) + len(code.text) > BATCH and batches[-1]:
            batches.append([])
        batches[-1].append(code.text)

    def compile_batch(texts: list[str]) -> dict[str, Resources]:
        text = DEVICE_HEADER + "".join(texts)
        # Kept, so that a second run goes on where the first one ended.
        about = (text, nvcc().version, nvcc().flags, headers_in(nvcc().include), ARCHITECTURE)
        kept = cache_root() / "resources" / f"{hashlib.sha256(repr(about).encode()).hexdigest()[:16]}.json"
        if not kept.exists():
            found = resources(text, ARCHITECTURE)
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps({name: astuple(what) for name, what in found.items()}))
            print(f"{len(found)} kernels", file=sys.stderr, flush=True)
        return {name: Resources(*numbers) for name, numbers in json.loads(kept.read_text()).items()}

    with ThreadPoolExecutor(2) as pool:
        return {name: what for found in pool.map(compile_batch, batches) for name, what in found.items()}


def cell(found: Resources | None) -> str:
    return f"{found.registers} / {found.stack} / {found.spills}" if found else "–"


def rows_of_the_repository() -> list[str]:
    """One row for each kernel."""
    kernels = [(f.name, f.codes(t.FLOAT32, n)) for n, f in enumerate(repository.kernels())]
    found = measured(code for _, codes in kernels for code in codes.values())
    rows = []
    for name, codes in kernels:
        cells = [cell(found[codes[which].name]) if which in codes else "–" for which in ("forward", "adjoint")]
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
stored and loaded because registers did not suffice.

| kernel | forward | adjoint |
|---|---|---|
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
