"""What can be wrong: with meshes, robots and files, and with rollouts. Every error says where, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

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


class StepTooLarge(ValueError):
    """A step of this length makes the explicit integration grow without bound.

    `limit` is the estimated limit (s), `thing` the object that it comes from.
    """

    def __init__(self, message: str, limit: float, thing: str):
        self.limit, self.thing = limit, thing
        super().__init__(message)


class StepShortened(UserWarning):
    """A rollout took substeps that nobody asked for, because the step was a little too large for cloth."""


class Diverged(ArithmeticError):
    """A state of the rollout is not finite. `thing` is the object, `step` the first step after which it is so."""

    def __init__(self, message: str, thing: str, step: int):
        self.thing, self.step = thing, step
        super().__init__(message)


class PassedThrough(ArithmeticError):
    """A body went through another. `things` are both, `dt` is a step (s) that is short enough to see them touch."""

    def __init__(self, one: str, other: str, speed: float, dt: float, thin: float):
        self.things, self.dt = (one, other), min(dt, 0.25 * thin / speed)
        what = f"{one!r} went through {other!r} at {speed:.4g} m/s"
        if self.dt < dt:
            super().__init__(
                f"{what}: it moves by {speed * dt:.3g} m in a step of {dt:g} s, and that is about {thin:.3g} m thick. "
                f"Use dt <= {self.dt:.2g}, or substeps={int(np.ceil(dt / self.dt))}, or make it thicker"
            )
        else:
            super().__init__(
                f"{what}: the contact is too soft to stop it within about {thin:.3g} m. Use a larger ke of the two, or "
                f"a larger rate (scene.set_contact), or make it thicker"
            )


class NotConverged(ArithmeticError):
    """The equations of an implicit step were not solved to the tolerance that was asked for.

    `thing` is the object with the largest residual, `step` the number of the step, from 1.
    """

    def __init__(self, message: str, thing: str, step: int, residual: float):
        self.thing, self.step, self.residual = thing, step, residual
        super().__init__(message)
