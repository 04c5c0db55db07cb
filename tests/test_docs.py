"""Runs the documentation: every ```python block of README.md and docs/, the blocks of one file in one namespace.

The blocks of a page become one Python file in which each line keeps its number, so that a traceback points at the line
of the page. A block below `<!-- not run: reason -->` is left out; few may be.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LEFT_OUT_AT_MOST = 5

FENCE = re.compile(r"^(?P<indent> *)```python\s*$")
NOT_RUN = re.compile(r"^\s*<!--\s*not run:\s*\S.*-->\s*$")


def blocks(text: str) -> list[tuple[int, list[str], bool]]:
    """The python blocks of a page: the number of their first line (from 0), their lines, and whether they are run."""
    found, lines, i = [], text.splitlines(), 0
    while i < len(lines):
        fence = FENCE.match(lines[i])
        if fence:
            before = next((line for line in reversed(lines[:i]) if line.strip()), "")
            end = next(j for j in range(i + 1, len(lines)) if lines[j].strip() == "```")
            body = [line.removeprefix(fence["indent"]) for line in lines[i + 1 : end]]
            found.append((i + 1, body, not NOT_RUN.match(before)))
            i = end
        i += 1
    return found


def as_program(text: str) -> str:
    """The blocks that are run, each line at its number in the page, all other lines empty."""
    lines = [""] * len(text.splitlines())
    for start, body, run in blocks(text):
        if run:
            lines[start : start + len(body)] = body
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_the_page_runs(page, tmp_path):
    program = as_program(page.read_text(encoding="utf-8"))
    if not program.strip():
        pytest.skip("no python block")
    path = tmp_path / f"{page.stem}.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{page.relative_to(ROOT)} (line numbers are those of the page):\n{done.stderr}"


def test_few_blocks_are_left_out():
    left_out = [
        f"{page.relative_to(ROOT)}:{start}"
        for page in PAGES
        for start, _, run in blocks(page.read_text(encoding="utf-8"))
        if not run
    ]
    assert len(left_out) <= LEFT_OUT_AT_MOST, left_out


def test_blocks_keep_their_line_numbers():
    page = """# Title
```python
a = 1
```

<!-- not run: needs a GPU -->
```python
b = 2
```
- item
  ```python
  c = a
  ```
"""
    program = as_program(page).splitlines()
    assert {i: line for i, line in enumerate(program, 1) if line} == {3: "a = 1", 12: "c = a"}
    assert [run for *_, run in blocks(page)] == [True, False, True]
