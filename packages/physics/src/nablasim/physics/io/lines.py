"""In which line of a text file an element stands, for error messages: stl, ply, off, msh (2.2, 4.1), vtk (legacy).

`find` walks through the file only as far as needed to know where things are. It is called when something is wrong
already, and raises a `MeshError` with the line where the file leaves its own rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from nablasim.physics.errors import Lines, MeshError

GMSH_CORNERS = {1: 2, 2: 3, 3: 4, 4: 4, 5: 8, 6: 6, 7: 5, 8: 3, 9: 6, 10: 9, 11: 10, 15: 1}
GMSH_KINDS = {2: "face", 4: "tet"}
VTK_KINDS = {5: "face", 10: "tet"}


def find(path: Path) -> Lines | None:
    """Where vertices, faces and tets stand; None where the file is binary, or of a format without lines."""
    data = path.read_bytes()
    walk = {".stl": _stl, ".ply": _ply, ".off": None, ".msh": _msh, ".vtk": _vtk}.get(path.suffix.lower())
    if walk is None or b"\0" in data:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    try:
        return walk(_Words(text))
    except MeshError as error:
        raise error.at(path) from None


class _Words:
    """The words of a text one after the other, each with its line."""

    def __init__(self, text: str) -> None:
        self.line = 0
        self.rows = text.split("\n")
        self._stream = self._walk()

    def _walk(self) -> Iterator[str]:
        for number, row in enumerate(self.rows, 1):
            self.line = number
            yield from row.split()

    def next(self, expected: str) -> str:
        word = next(self._stream, None)
        if word is None:
            last = len(self.rows) - (not self.rows[-1].strip())
            raise MeshError(
                f"the file ends where {expected} is expected", advice="It was cut short: write it anew", line=last
            )
        return word

    def maybe(self) -> str | None:
        return next(self._stream, None)

    def whole(self, expected: str) -> int:
        word = self.next(expected)
        try:
            return int(word)
        except ValueError:
            raise MeshError(f"{word[:20]!r} stands where {expected} is expected", line=self.line) from None

    def real(self, expected: str) -> float:
        word = self.next(expected)
        try:
            value = float(word)
        except ValueError:
            raise MeshError(f"{word[:20]!r} stands where {expected} is expected", line=self.line) from None
        if not math.isfinite(value):
            raise MeshError(f"{expected} is {word}, which is not finite", line=self.line)
        return value

    def upto(self, word: str) -> bool:
        """Go to just behind the next such word; False at the end."""
        return any(w == word for w in self._stream)


def _stl(words: _Words) -> Lines:
    vertices, faces = [], []
    word = words.next("solid")
    while word != "endsolid":
        if word == "facet":
            faces.append(words.line)
        elif word == "vertex":
            for _ in range(3):
                words.real("a coordinate")
            vertices.append(words.line)
        word = words.next("endsolid")
    if len(vertices) != 3 * len(faces):
        raise MeshError(f"{len(faces)} facets have {len(vertices)} vertices; expected three each", line=words.line)
    return {"vertex": vertices, "face": faces}


def _ply(words: _Words) -> Lines | None:
    """Elements follow the header in the order in which it names them, a line each."""
    counts: list[tuple[str, int]] = []
    for number, row in enumerate(words.rows, 1):
        part = row.split()
        if part[:1] == ["format"] and part[1:2] != ["ascii"]:
            return None
        if part[:1] == ["element"]:
            if len(part) != 3 or not part[2].isdigit():
                raise MeshError(f"the header says {row.strip()!r}; expected `element NAME COUNT`", line=number)
            counts.append((part[1], int(part[2])))
        if part == ["end_header"]:
            break
    else:
        raise MeshError("the header has no end", advice="It was cut short: write it anew", line=len(words.rows))
    found, line = {}, number + 1
    for name, count in counts:
        found[name] = range(line, line + count)
        line += count
    rows = len(words.rows) - (not words.rows[-1].strip())
    if rows < line - 1:
        raise MeshError(
            f"the file ends in line {rows}; its header promises {line - 1}",
            advice="It was cut short: write it anew",
            line=rows,
        )
    return found


def _msh(words: _Words) -> Lines | None:
    if words.next("$MeshFormat") != "$MeshFormat":
        raise MeshError(f"the file starts with {words.rows[0][:20]!r}; expected $MeshFormat", line=words.line)
    version = words.next("the version")
    if version not in ("2", "2.2", "4", "4.1"):
        return None
    found: dict[str, list[int]] = {"vertex": [], "face": [], "tet": []}
    nodes: set[int] = set()
    old = version.startswith("2")
    if not words.upto("$Nodes"):
        raise MeshError("there is no section $Nodes", line=len(words.rows))
    (_nodes_2 if old else _nodes_4)(words, found, nodes)
    if not words.upto("$Elements"):
        raise MeshError("there is no section $Elements", line=len(words.rows))
    (_elements_2 if old else _elements_4)(words, found, nodes)
    return found


def _nodes_2(words: _Words, found: dict[str, list[int]], nodes: set[int]) -> None:
    for _ in range(words.whole("the number of nodes")):
        nodes.add(words.whole("the number of a node"))
        found["vertex"].append(words.line)
        for _ in range(3):
            words.real("a coordinate")


def _nodes_4(words: _Words, found: dict[str, list[int]], nodes: set[int]) -> None:
    blocks = words.whole("the number of blocks")
    for _ in range(3):
        words.whole("a count of nodes")
    for _ in range(blocks):
        _, _, parametric, count = (words.whole("the head of a block") for _ in range(4))
        nodes.update(words.whole("the number of a node") for _ in range(count))
        for _ in range(count):
            for k in range(3 + parametric):
                words.real("a coordinate")
                if k == 0:
                    found["vertex"].append(words.line)


def _elements_2(words: _Words, found: dict[str, list[int]], nodes: set[int]) -> None:
    for _ in range(words.whole("the number of elements")):
        words.whole("the number of an element")
        line, kind = words.line, words.whole("the type of an element")
        for _ in range(words.whole("the number of tags")):
            words.whole("a tag")
        _corners(words, found, nodes, kind, line)


def _elements_4(words: _Words, found: dict[str, list[int]], nodes: set[int]) -> None:
    blocks = words.whole("the number of blocks")
    for _ in range(3):
        words.whole("a count of elements")
    for _ in range(blocks):
        _, _, kind, count = (words.whole("the head of a block") for _ in range(4))
        for _ in range(count):
            words.whole("the number of an element")
            _corners(words, found, nodes, kind, words.line)


def _corners(words: _Words, found: dict[str, list[int]], nodes: set[int], kind: int, line: int) -> None:
    if kind not in GMSH_CORNERS:
        raise MeshError(f"an element has the type {kind}, which is not known here", line=line)
    for _ in range(GMSH_CORNERS[kind]):
        node = words.whole("a node")
        if node not in nodes:
            raise MeshError(f"an element names node {node}, which the file does not have", line=line)
    if kind in GMSH_KINDS:
        found[GMSH_KINDS[kind]].append(line)


def _vtk(words: _Words) -> Lines | None:
    head = words.rows[0]
    if not head.startswith("# vtk DataFile"):
        raise MeshError(f"the file starts with {head[:20]!r}; expected `# vtk DataFile`", line=1)
    if not words.upto("POINTS"):
        raise MeshError("there is no section POINTS", line=len(words.rows))
    points = words.whole("the number of points")
    words.next("the type of the points")
    where = []
    for _ in range(points):
        for k in range(3):
            words.real("a coordinate")
            if k == 0:
                where.append(words.line)
    if not words.upto("CELLS"):
        raise MeshError("there is no section CELLS", line=len(words.rows))
    cells = _vtk_cells(words, points)
    if not words.upto("CELL_TYPES"):
        raise MeshError("there is no section CELL_TYPES", line=len(words.rows))
    words.whole("the number of cells")
    found: dict[str, list[int]] = {"vertex": where, "face": [], "tet": []}
    for line in cells:
        kind = words.whole("the type of a cell")
        if kind in VTK_KINDS:
            found[VTK_KINDS[kind]].append(line)
    return found


def _vtk_cells(words: _Words, points: int) -> list[int]:
    """The line of each cell. Since version 5 the cells are offsets and corners; before, corners behind their number."""
    count, size = words.whole("the number of cells"), words.whole("the size of the list")
    first = words.next("the first cell")
    if first == "OFFSETS":
        words.next("the type of the offsets")
        offsets = [words.whole("an offset") for _ in range(count)]
        words.upto("CONNECTIVITY")
        words.next("the type of the corners")
        lines = [_vtk_corner(words, points) for _ in range(size)]
        return [lines[begin] for begin in offsets[:-1]]
    lines, corners = [], first
    for k in range(count):
        try:
            number = int(corners)
        except ValueError:
            raise MeshError(f"{corners[:20]!r} stands where a number of corners is expected", line=words.line) from None
        lines.append(words.line)
        for _ in range(number):
            _vtk_corner(words, points)
        if k + 1 < count:
            corners = words.next("the number of corners")
    return lines


def _vtk_corner(words: _Words, points: int) -> int:
    corner = words.whole("a corner")
    if not 0 <= corner < points:
        raise MeshError(f"a cell names point {corner}, and there are points 0 to {points - 1}", line=words.line)
    return words.line
