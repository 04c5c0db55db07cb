"""What of a trajectory can be looked at: things that move, planes, and where they touch; also in .npz files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.errors import InputError
from nablasim.physics.model import Model, plain
from nablasim.physics.time.touching import Contacts, contacts
from nablasim.physics.time.trajectory import Trajectory

Array = NDArray[Any]
FORM = "motions of nablasim, 1"
"""Stands in every file: what it holds, and how."""
MEMBERS = ("x", "faces", "edges", "pos", "rot")


@dataclass(frozen=True, eq=False)
class Thing:
    """An object: points `x`, joined by `faces` (m, 3) or `edges` (k, 2), or alone.

    A rigid one has x (n, 3) in its own frame, `pos` (frames, 3) and `rot` (frames, 4), quaternions. Others
    have x (frames, n, 3).
    """

    x: Array
    faces: Array | None = None
    edges: Array | None = None
    pos: Array | None = None
    rot: Array | None = None

    def corners(self, frame: int) -> Array:
        """Where its points are in a frame, (n, 3)."""
        if self.pos is None or self.rot is None:
            return np.asarray(self.x[frame])
        q, t = self.rot[frame], 2 * np.cross(self.rot[frame][:3], self.x)
        return np.asarray(self.pos[frame] + self.x + q[3] * t + np.cross(q[:3], t))


@dataclass(frozen=True, eq=False)
class Motion:
    """Things by name, at `times` (s); planes as (normal, offset); contacts frame by frame, or none."""

    times: Array
    things: Mapping[str, Thing]
    planes: Mapping[str, Array] = field(default_factory=dict)
    """(4): the normal, of length one, and the offset along it."""
    contacts: tuple[Contacts, ...] = ()
    pictures: Array | None = None
    """A video of it in bytes, (frames, height, width, 3)."""

    def __len__(self) -> int:
        return len(self.times)

    def beside(self, video: Any) -> Motion:
        """The same with a video, (frames, height, width) or (…, 3), in bytes or from 0 to 1."""
        made = np.asarray(video)
        if made.ndim == 3:
            made = np.repeat(made[..., None], 3, axis=-1)
        if made.ndim != 4 or made.shape[-1] not in (3, 4) or len(made) != len(self):
            raise ValueError(f"a video beside this is ({len(self)}, height, width, 3), and not {made.shape}")
        if made.dtype != np.uint8:
            made = np.rint(made.clip(0, 1) * 255).astype(np.uint8)
        return replace(self, pictures=made[..., :3])

    @classmethod
    def of(cls, trajectory: Trajectory, *, frames: ArrayLike | None = None, dt: float = 1e-3) -> Motion:
        """What can be drawn of the trajectory of a single scene: all frames, or some. `dt` is as of `contacts`."""
        if not isinstance(trajectory, Trajectory):
            raise TypeError(f"what can be shown is the trajectory of a scene, not a {type(trajectory).__name__}")
        layout, numbers, model = trajectory.layout, trajectory.numpy(), trajectory._model
        if layout.scenes:
            raise ValueError("this is a batch of scenes: take some of trajectory.scenes")
        chosen = np.arange(len(trajectory)) if frames is None else np.asarray(frames)
        made = {name: _thing(numbers, name, chosen) for name in numbers}
        things = {name: thing for name, thing in made.items() if thing is not None}
        if not things:
            raise ValueError("nothing of this trajectory has a place in space")
        if model is None:
            return cls(trajectory.times[chosen], things)
        planes = {name: _plane(model, name) for name, thing in layout.things.items() if thing.kind == "plane"}
        touched = tuple(contacts(model, trajectory.state(int(k)), dt) for k in chosen)
        return cls(trajectory.times[chosen], things, planes, touched)


def _thing(trajectory: Trajectory, name: str, frames: Array) -> Thing | None:
    """What is drawn of an object, if it has a place."""
    layout, part = trajectory.layout, trajectory[name]
    surface, rows = layout.surfaces.get(name), layout.things[name].rows
    if surface is not None and surface.points is not None and not surface.links:
        return Thing(_single(surface.points), surface.faces, pos=_single(part.x)[frames],
                     rot=_single(part.rot)[frames])  # fmt: skip
    if surface is not None:
        return Thing(_single(trajectory.vertices(name))[frames], surface.faces)
    if "particles" not in rows:
        return None
    pairs = None
    if "springs" in rows:
        pairs = layout.indices["springs.pairs"][rows["springs"].slice] - rows["particles"].start
    return Thing(_single(part.x)[frames], edges=pairs)


def _single(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _plane(model: Model, name: str) -> Array:
    normal = np.asarray(plain(model[f"{name}.normal"]), np.float64)
    return np.append(normal / np.linalg.norm(normal), plain(model[f"{name}.offset"]))


# -- files
def save_motions(path: str | os.PathLike[str], motions: Mapping[str, Motion]) -> Path:
    """Write motions by name to an .npz file, which is there whole or not at all."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"{path}: a file of motions ends in .npz")
    arrays: dict[str, Any] = {}
    contents = []
    for m, (name, motion) in enumerate(motions.items()):
        arrays[f"{m}.times"] = motion.times
        for k, thing in enumerate(motion.things.values()):
            arrays |= {f"{m}.{k}.{q}": v for q in MEMBERS if (v := getattr(thing, q)) is not None}
        for k, plane in enumerate(motion.planes.values()):
            arrays[f"{m}.plane.{k}"] = plane
        if motion.pictures is not None:
            arrays[f"{m}.pictures"] = motion.pictures
        if motion.contacts:
            arrays[f"{m}.touching"] = np.array([len(c) for c in motion.contacts])
            for q in ("points", "forces"):
                arrays[f"{m}.{q}"] = np.concatenate([getattr(c, q) for c in motion.contacts])
        contents.append({"name": name, "things": list(motion.things), "planes": list(motion.planes)})
    aside = path.with_name(f".{path.name}.part")
    with aside.open("wb") as file:
        np.savez_compressed(file, contents=np.array(json.dumps({"form": FORM, "motions": contents})), **arrays)
    aside.replace(path)
    return path


def load_motions(path: str | os.PathLike[str]) -> dict[str, Motion]:
    """Read what `save_motions` or `Trajectory.save` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            contents = json.loads(str(file["contents"]))
            if contents["form"] != FORM:
                raise InputError(f"it holds {contents['form']!r}, and this version reads {FORM!r}", file=path)
            return {motion["name"]: _read(file, m, motion) for m, motion in enumerate(contents["motions"])}
    except (KeyError, TypeError, BadZipFile, EOFError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("it is not a file of motions, or a part of one", file=path,
                         advice="trajectory.save(file) writes them") from error  # fmt: skip


def _read(file: Any, m: int, motion: Mapping[str, Any]) -> Motion:
    things = {name: Thing(**{q: file[f"{m}.{k}.{q}"] for q in MEMBERS if f"{m}.{k}.{q}" in file})
              for k, name in enumerate(motion["things"])}  # fmt: skip
    planes = {name: file[f"{m}.plane.{k}"] for k, name in enumerate(motion["planes"])}
    touched: tuple[Contacts, ...] = ()
    if f"{m}.touching" in file:
        cuts = np.cumsum(file[f"{m}.touching"])[:-1]
        parts = [np.split(file[f"{m}.{q}"], cuts) for q in ("points", "forces")]
        touched = tuple(Contacts(points, forces) for points, forces in zip(*parts))
    pictures = file.get(f"{m}.pictures")
    return Motion(file[f"{m}.times"], things, planes, touched, pictures)
