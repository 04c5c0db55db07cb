"""From a file to a checked `SceneFile`. What is wrong is said with the line where it stands.

YAML is composed first, for the lines, and built from the same nodes; pydantic checks what was built. Its messages are
rewritten for people who have never heard of it.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from nablasim.sysid.scenes.entries import SceneFile
from nablasim.sysid.scenes.yaml_limits import SceneLoader, TooMuch, check_extent

Place = tuple[str | int, ...]


class BadScene(ValueError):
    """A scene file that cannot be used; the message has the file, the line and what to do."""


@dataclass(frozen=True, eq=False)
class Script:
    """A scene file that was read: its entries, and where they stand."""

    entries: SceneFile
    text: str
    name: str
    folder: Path
    root: Any

    def wrong(self, place: Sequence[str | int], said: str) -> BadScene:
        """What is wrong with an entry, found after the file was read."""
        line, known = _find(self.root, place)
        return BadScene(f"{self.name}, line {line}: {'.'.join(map(str, known))}{': ' if known else ''}{said}")


def read_scene(path: str | Path) -> Script:
    """Read and check a scene file."""
    path = Path(path)
    if path.is_dir():
        raise BadScene(f"{path} is a folder: the scene is a file of YAML, such as scene.yaml")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        near = get_close_matches(path.name, [p.name for p in path.parent.glob("*.y*ml")], n=1, cutoff=0.4)
        hint = f": did you mean {str(path.parent / near[0])!r}?" if near else ""
        raise BadScene(f"there is no scene file {path}{hint}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadScene(f"{path} cannot be read: {error}") from error
    return parse_scene(text, name=str(path), folder=path.parent)


def parse_scene(text: str, *, name: str = "scene", folder: Path = Path(".")) -> Script:
    """Check the text of a scene file; `name` is for messages, and other files are looked for in `folder`."""
    try:
        check_extent(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        content = None if root is None else yaml.load(text, Loader=SceneLoader)
    except yaml.YAMLError as error:
        raise BadScene(_syntax(name, error)) from error
    if not isinstance(content, Mapping):
        raise BadScene(f"{name} has no entries: a scene file has at least 'objects' and 'camera'")
    twice = _twice(root)
    if twice is not None:
        raise BadScene(f"{name}, line {twice[1]}: {twice[0]!r} is there twice")
    try:
        return Script(SceneFile.model_validate(content), text, name, folder, root)
    except ValidationError as error:
        said = [_sentence(name, root, problem) for problem in error.errors()]
        raise BadScene("\n".join(dict.fromkeys(said))) from error


def _sentence(name: str, root: Any, problem: Any) -> str:
    """One problem as a line of text: file, line, entry, what is wrong."""
    place = tuple(p for p in problem["loc"])
    line, known = _find(root, place)
    where = ".".join(str(p) for p in known)
    if problem["type"] == "unknown_key":
        line, said = _find(root, (*known, problem["ctx"]["key"]))[0], problem["ctx"]["said"]
    elif problem["type"] == "missing":
        missing = place[-1]
        said = f"the entry {missing!r} is missing" if isinstance(missing, str) else f"number {missing + 1} is missing"
    elif problem["type"] == "value_error":
        said = str(problem["ctx"]["error"])
    else:
        said = f"{problem['msg'][:1].lower()}{problem['msg'][1:]}, not {reprlib.repr(problem['input'])}"
    return f"{name}, line {line}: {where + ': ' if where else ''}{said}"


def _find(root: Any, place: Sequence[str | int]) -> tuple[int, Place]:
    """The line of an entry, and the part of its place that is in the file: pydantic adds names of its own."""
    node, line, known = root, root.start_mark.line + 1, []
    for part in place:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(part):
                    node, line = value, key.start_mark.line + 1
                    known.append(part)
                    break
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
            known.append(part)
    return line, tuple(known)


def _twice(node: Any) -> tuple[str, int] | None:
    """A key that stands twice in one mapping, and its line: YAML would take the last one and say nothing."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                return key.value, key.start_mark.line + 1
            seen.add(key.value)
        parts = [value for _, value in node.value]
    else:
        parts = node.value if isinstance(node, yaml.SequenceNode) else []
    return next((found for part in parts if (found := _twice(part)) is not None), None)


def _syntax(name: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f", line {mark.line + 1}" if mark is not None else ""
    said = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"{name}{where}: {'' if isinstance(error, TooMuch) else 'this is not YAML: '}{said}"
