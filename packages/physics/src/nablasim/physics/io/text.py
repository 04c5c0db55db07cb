"""The formats that are lines of text, read line by line so that every error has its line: obj and tet.

Obj is not read by trimesh because that takes indices out of range, short lines and lost faces without a word, and
cuts the surface open along seams of texture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from nablasim.physics.errors import Lines, MeshError
from nablasim.physics.geometry import TetMesh, TriMesh

# What obj files may hold beside vertices and faces: textures, groups, curves, materials. None of it is geometry here.
OBJ_SKIPPED = {
    "vt", "vn", "vp", "o", "g", "s", "mg", "usemtl", "mtllib", "usemap", "maplib", "l", "p", "vw", "deg", "bmat",
    "step", "cstype", "curv", "curv2", "surf", "parm", "trim", "hole", "scrv", "sp", "end", "con", "bevel", "c_interp",
    "d_interp", "lod", "shadow_obj", "trace_obj", "ctech", "stech", "call", "csh",
}  # fmt: skip
MOST = 2**31 - 1
"""No mesh has more vertices: indices are kept in 32 bits."""


@dataclass
class Raw:
    """What a file holds, not yet checked; `lines()` finds where its elements stand, or None for binary files."""

    vertices: Any
    cells: Any
    lines: Callable[[], Lines | None] = field(default=lambda: None)


def read_tet(path: Path) -> Raw:
    """`v x y z` is a vertex, `t i j k l` a tetrahedron of vertices counted from 0, `#` begins a comment."""
    vertices, tets = [], []
    where: dict[str, list[int]] = {"vertex": [], "tet": []}
    for line, words in _rows(path):
        if words[0] == "v":
            vertices.append(_reals(path, line, words, 3, exact=True))
            where["vertex"].append(line)
        elif words[0] == "t":
            if len(words) != 5:
                raise MeshError(f"a tet has 4 vertices, not {len(words) - 1}", file=path, line=line)
            tets.append([_whole(path, line, word) for word in words[1:]])
            where["tet"].append(line)
        else:
            raise MeshError(
                f"a line starts with {words[0]!r}", advice="Lines are `v x y z` or `t i j k l`", file=path, line=line
            )
    return Raw(np.array(vertices).reshape(-1, 3), np.array(tets, dtype=np.int64).reshape(-1, 4), lambda: where)


def write_tet(path: Path, mesh: TetMesh) -> None:
    """Numbers are written so that they are read back to the last bit."""
    rows = [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
    rows += ["t " + " ".join(map(str, tet)) for tet in mesh.tets.tolist()]
    path.write_text("\n".join(rows) + "\n", encoding="ascii")


def read_obj(path: Path) -> Raw:
    """The vertices and faces of an obj file; a face of more than three corners becomes a fan of triangles."""
    vertices, faces = [], []
    highest, at = -1, 0
    where: dict[str, list[int]] = {"vertex": [], "face": []}
    for line, words in _rows(path):
        if words[0] == "v":
            vertices.append(_reals(path, line, words, 3))
            where["vertex"].append(line)
        elif words[0] in ("f", "fo"):
            corners = [_obj_index(path, line, word, len(vertices)) for word in words[1:]]
            if len(corners) < 3:
                raise MeshError(f"a face has at least 3 corners, not {len(corners)}", file=path, line=line)
            faces += [(corners[0], b, c) for b, c in pairwise(corners[1:])]
            where["face"] += [line] * (len(corners) - 2)
            highest, at = max((highest, at), (max(corners), line))
        elif words[0] not in OBJ_SKIPPED:
            raise MeshError(f"a line starts with {words[0][:20]!r}, which obj does not know", file=path, line=line)
    if highest >= len(vertices):
        reason = f"a face names vertex {highest + 1}, and there are {len(vertices)}"
        raise MeshError(reason, advice="Obj counts from 1", file=path, line=at)
    return Raw(np.array(vertices).reshape(-1, 3), np.array(faces, dtype=np.int64).reshape(-1, 3), lambda: where)


def write_obj(path: Path, mesh: TriMesh) -> None:
    """Numbers are written so that they are read back to the last bit."""
    rows = [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
    rows += ["f " + " ".join(str(i + 1) for i in face) for face in mesh.faces.tolist()]
    path.write_text("\n".join(rows) + "\n", encoding="ascii")


# ------------------------------------------------------------------------------------------------------------ parts
def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The words of every line that has some, with its number; comments are left out, continued lines joined."""
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MeshError(
            f"this is not text (byte {error.start} is {error.object[error.start]:#04x})",
            advice="Does the ending of the name fit the content?",
            file=path,
        ) from None
    pending, start = "", 0
    for number, row in enumerate(content.split("\n"), 1):
        start = start or number
        if row.rstrip().endswith("\\"):
            pending += row.rstrip()[:-1] + " "
            continue
        words = (pending + row).split("#", 1)[0].split()
        if words:
            yield start, words
        pending, start = "", 0


def _reals(path: Path, line: int, words: list[str], count: int, *, exact: bool = False) -> list[float]:
    if len(words) - 1 < count or (exact and len(words) - 1 > count):
        raise MeshError(f"a vertex has {count} coordinates, not {len(words) - 1}", file=path, line=line)
    values = []
    for word in words[1 : 1 + count]:
        try:
            values.append(float(word))
        except ValueError:
            raise MeshError(f"{word[:20]!r} is not a number", file=path, line=line) from None
        if not math.isfinite(values[-1]):
            raise MeshError(
                f"a coordinate is {word}, which is not finite",
                advice="Write it anew with whatever made it",
                file=path,
                line=line,
            )
    return values


def _whole(path: Path, line: int, word: str) -> int:
    try:
        index = int(word)
    except ValueError:
        index = MOST + 1
    if abs(index) > MOST:
        raise MeshError(f"{word[:20]!r} is not the index of a vertex", file=path, line=line) from None
    return index


def _obj_index(path: Path, line: int, word: str, count: int) -> int:
    """From 1, or counted back from the last vertex so far if negative; what follows a slash is texture."""
    index = _whole(path, line, word.split("/", 1)[0])
    if index == 0 or index < -count:
        raise MeshError(
            f"a face names vertex {index}, and {count} were given before it",
            advice="Obj counts from 1",
            file=path,
            line=line,
        )
    # A face may name vertices that follow it: whether there are any is seen in the end.
    return index - 1 if index > 0 else count + index
