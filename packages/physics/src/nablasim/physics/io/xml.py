"""XML of robots: parsed without entities, with file and line for what is wrong."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.errors import MissingPackage, RobotError

Floats = NDArray[np.float64]
DECLARATION = re.compile(rb"^(\s*)<\?xml\b[^>]*\?>")
"""What stands in front of the root. Many robots claim to be XML of version 0.0, or start with an empty line."""


def parse(path: Path) -> Any:
    """The root element; entities are refused, since they may read other files or fill the memory."""
    try:
        from lxml import etree
    except ImportError:
        raise MissingPackage("lxml", "reading robots", "urdf") from None
    if not path.is_file():
        raise RobotError("there is no such file", advice=f"The current folder is {Path.cwd()}", file=path)
    refuse_entities(path)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        return etree.fromstring(_plain(path.read_bytes()), parser)
    except etree.XMLSyntaxError as error:
        raise RobotError(f"this is not XML: {error.msg}", file=path, line=error.lineno) from None


def _plain(text: bytes) -> bytes:
    """The text without a declaration that says nothing but a version, with lines where they were."""
    found = DECLARATION.match(text)
    if found is None or (b"encoding" in found[0] and not found[1]):
        return text
    return b"\n" * found[0].count(b"\n") + text[found.end() :]


def refuse_entities(path: Path) -> None:
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if b"<!ENTITY" in line or b"<!DOCTYPE" in line:
            raise RobotError("the file declares entities or a document type, and those are not read",
                             advice="Write what they stand for", file=path, line=number)  # fmt: skip


def refuse(element: Any, path: Path, reason: str, advice: str = "") -> NoReturn:
    """An error about an element; one that came from an included file knows it."""
    file = element.get("_file") or path
    raise RobotError(reason, advice=advice, file=file, line=element.sourceline)


def numbers(element: Any, name: str, text: str, path: Path, counts: tuple[int, ...]) -> Floats:
    """The numbers of an attribute, as many as one of `counts` says."""
    words = text.split()
    try:
        found = np.array([float(word) for word in words])
    except ValueError:
        found = np.array([math.nan])
    if len(words) not in counts or not np.isfinite(found).all():
        wanted = " or ".join(map(str, counts))
        refuse(element, path, f"<{element.tag}> has {name}={text!r}; expected {wanted} numbers")
    return found
