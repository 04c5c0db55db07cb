"""What can be wrong with what physics is given: meshes, robots and files. Every error says where, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

Lines = Mapping[str, Sequence[int]]
"""For each kind of element ("vertex", "face", "tet" …) the line of the file where each one stands, from 1."""


E = TypeVar("E", bound="InputError")


class InputError(ValueError):
    """Something that was given and cannot be used.

    `reason` says what was found, `advice` what to do next; `element` is the kind and index of what is wrong, from 0;
    `file` and `line` say where it stands, if it comes from a file.
    """

    def __init__(
        self,
        reason: str,
        *,
        advice: str = "",
        element: tuple[str, int] | None = None,
        file: str | os.PathLike[str] | None = None,
        line: int | None = None,
    ) -> None:
        self.reason, self.advice, self.element = reason, advice, element
        self.file = None if file is None else os.fspath(file)
        self.line = line
        where = "" if self.file is None else f"{self.file}:{line}: " if line else f"{self.file}: "
        super().__init__(where + reason + (f". {advice}" if advice else ""))

    def at(self: E, file: str | os.PathLike[str], lines: Lines | None = None) -> E:
        """The same error with the file, and the line of its element if `lines` knows it."""
        line = self.line
        if line is None and self.element and lines and self.element[0] in lines:
            kind, index = self.element
            line = lines[kind][index] if index < len(lines[kind]) else None
        return type(self)(self.reason, advice=self.advice, element=self.element, file=file, line=line)

    def about(self: E, name: str) -> E:
        """The same error, of the object of a scene that it is about."""
        return type(self)(f"{name}: {self.reason}", advice=self.advice, element=self.element, file=self.file,
                          line=self.line)  # fmt: skip


@contextmanager
def about(name: str) -> Iterator[None]:
    """What is wrong with what is given inside is about an object of a scene."""
    try:
        yield
    except InputError as error:
        raise error.about(name) from None


class MeshError(InputError):
    """A mesh that cannot be used, or a file that holds none."""


class RobotError(InputError):
    """A description of an articulated body that cannot be used."""


class MissingPackage(ImportError):
    """An optional package is needed for this, and is not installed."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f'{purpose} needs the package {package}, which is not installed: pip install "nablasim-physics[{extra}]"'
        )
