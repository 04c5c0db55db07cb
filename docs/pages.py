"""The pages as programs: the python blocks of a page run in order, and what a block prints stands in the page below it.

All blocks of a page become one Python file in which each line keeps its number, so that a traceback, an error of a
kernel and the line numbers of the intermediate representation point at the line of the page. A ```text block right
below a python block is what that block prints. A python block below `<!-- not run: reason -->` is left out, and a
text block below `<!-- varies -->` is not compared.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+)(?P<info>[^`]*)$")
NOT_RUN = re.compile(r"^\s*<!--\s*not run:\s*\S.*-->\s*$")
END = "\x1e"
"""Printed after each block that is run: tells what which block has printed."""


@dataclass(frozen=True)
class Block:
    """A fenced block: what follows the fence, the numbers of its first and of its closing line (from 0), its lines."""

    info: str
    start: int
    end: int
    lines: tuple[str, ...]
    before: int
    """The number of the last line above it that is not blank."""
    note: str

    @property
    def run(self) -> bool:
        return self.info == "python" and not NOT_RUN.match(self.note)


@dataclass(frozen=True)
class Result:
    """What became of a page: its exit status, what it wrote to stderr, and what each block that was run has printed."""

    status: int
    errors: str
    printed: dict[int, str]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page."""
    found, lines, i = [], text.splitlines(), 0
    while i < len(lines):
        fence = FENCE.match(lines[i])
        if fence:
            end = next(j for j in range(i + 1, len(lines)) if lines[j].strip() == fence["ticks"])
            body = tuple(line.removeprefix(fence["indent"]) for line in lines[i + 1 : end])
            above = next((j for j in range(i - 1, -1, -1) if lines[j].strip()), 0)
            found.append(Block(fence["info"].strip(), i + 1, end, body, above, lines[above]))
            i = end
        i += 1
    return found


def as_program(text: str) -> str:
    """The blocks that are run, each line at its number in the page, all other lines empty or the mark of an end."""
    lines = [""] * len(text.splitlines())
    for block in blocks(text):
        if block.run:
            lines[block.start : block.end] = block.lines
            lines[block.end] = f"__import__('sys').stdout.write({END!r})"
    return "\n".join(lines) + "\n"


def run(page: Path) -> Result:
    """Run a page in a folder of its own, with the default settings."""
    text = page.read_text(encoding="utf-8")
    plain = {n: v for n, v in os.environ.items() if not n.startswith("KERNELC_") or n == "KERNELC_CACHE_DIR"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / f"{page.stem}.py").write_text(as_program(text), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, folder / f"{page.stem}.py"],
            cwd=folder, env=plain, capture_output=True, encoding="utf-8", timeout=600, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    pieces = done.stdout.replace(f"{folder}/", "").split(END)
    ran = [block.end for block in blocks(text) if block.run]
    return Result(done.returncode, done.stderr.replace(f"{folder}/", ""), dict(zip(ran, pieces)))


def outputs(text: str) -> list[tuple[Block, Block]]:
    """The pairs of a python block that is run and the text block that shows what it prints."""
    found = blocks(text)
    ran = {block.end: block for block in found if block.run}
    return [(ran[b.before], b) for b in found if b.info == "text" and b.before in ran]


def with_outputs(text: str, printed: dict[int, str]) -> str:
    """The page with what its blocks print now."""
    lines = text.splitlines()
    for python, shown in reversed(outputs(text)):
        lines[shown.start : shown.end] = printed[python.end].strip("\n").splitlines()
    return "\n".join(lines) + "\n"
