"""What a rollout gives: frames of every object, as torch tensors, NumPy arrays or kernelc arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.checks import nearest
from nablasim.physics.model import COPIES_FIRST, Layout, Model, Part, Real, State, is_kernelc, is_torch, part, plain
from nablasim.physics.time.contacts import Contacts, contacts_of
from nablasim.physics.time.robots import Pose, kinematics_along, kinematics_of_frames


def copies_first(frames: Any) -> Any:
    """(frames, copies, rows) as (copies, frames, rows), of arrays of kernelc; on the open tape, if there is one."""
    count, worlds, rows = frames.shape
    turned = kc.zeros((worlds, count, rows), dtype=frames.element, real=frames.real)
    kc.launch(COPIES_FIRST[frames.numpy().shape[3:]], turned.shape, [frames], [turned])
    return turned


class Trajectory:
    """The frames of a rollout: `traj["gear"].x` is (frames, n, 3), with the copies in front in a batch.

    In a batch of different scenes, "gear" of scene 2 is `traj["2/gear"]`, or `traj.scenes[2]["gear"]`.

    `times` (s) has one entry per frame; the first frame is the start. `columns` has all objects at once, by column:
    (frames, rows of all copies, *element). `solves` says how well the equations of implicit steps were solved: a
    `Solves`, or None.
    """

    def __init__(self, layout: Layout, times: NDArray[np.float64], columns: Mapping[str, Any], solves: Any = None,
                 model: Model | None = None, dt: float = 0.0):  # fmt: skip
        self.layout, self.times, self.columns, self.solves = layout, times, dict(columns), solves
        self._model, self._dt = model, dt

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[str]:
        return iter(State(self.layout, self.columns))

    def __getitem__(self, name: str) -> Part:
        if name not in self.layout.things:
            raise KeyError(f"there is no object {name!r}: {nearest(name, self.layout.things)}")
        single = self.layout.copies is None
        mine = part(self.layout, name, self.columns, self._rows if single else self._copies, single)
        if self.layout.things[name].links:
            mine.add("links", lambda: self._links[name])
        return mine

    @cached_property
    def _links(self) -> dict[str, dict[str, Pose]]:
        """Where the links of all robots are in every frame, with gradients by what moves them."""
        q = self.columns["coords.q"]
        if self._model is None or is_kernelc(q):
            raise TypeError("links are placed by trajectories of a rollout with torch tensors or numbers")
        found = kinematics_of_frames(self._model, q)
        if not isinstance(q, np.ndarray):
            return found
        return {name: {link: Pose(plain(pose.x), plain(pose.rot)) for link, pose in poses.items()}
                for name, poses in found.items()}  # fmt: skip

    def _rows(self, values: Any, rows: slice) -> tuple[Any]:
        """Some rows of the only copy; all of them without a cut, which torch would have to go back through."""
        return (values if rows == slice(0, values.shape[1]) else values[:, rows],)

    def _copies(self, values: Any, rows: slice) -> Any:
        """(frames, copies · rows, ...) as (copies, frames, rows, ...)."""
        frames, worlds = values.shape[0], self.layout.worlds
        apart = values.reshape(frames, worlds, values.shape[1] // worlds, *values.shape[2:])
        return (copies_first(apart) if is_kernelc(apart) else apart.swapaxes(0, 1))[:, :, rows]

    @cached_property
    def scenes(self) -> list[Trajectory]:
        """The trajectories of the scenes of a batch one by one: what each gives when it is run alone."""
        layout = self.layout
        if not layout.scenes:
            return [self]
        apart = {name: _apart(values, layout.scene_rows(layout.columns[name].table))
                 for name, values in self.columns.items()}  # fmt: skip
        return [
            Trajectory(scene, self.times, {
                name: parts[k] for name, parts in apart.items()
                if name in scene.columns and scene.rows(scene.columns[name].table)
            }, self.solves, None if self._model is None else self._model.scenes[k], self._dt)
            for k, scene in enumerate(layout.scenes)
        ]  # fmt: skip

    def contacts(self, frame: int = -1) -> Contacts:
        """What touches at a frame, one entry per place: `.a` and `.b` (names), `.point`, `.normal` (from b to a),
        `.force` (N, on a) and `.gap` (m).

        The forces are those of `ph.forces` in that state. Parameters that `control` varied have their steady values.
        In a batch, ask each of `scenes`.
        """
        if self.layout.scenes:
            raise TypeError(f"contacts are those of one scene, and this is a batch of {len(self.layout.scenes)}: "
                            f"use trajectory.scenes[k].contacts(frame)")  # fmt: skip
        if self._model is None:
            raise TypeError("this trajectory knows no model, and so no contacts; ask the one that ph.rollout gave")
        return contacts_of(self._model, self.state(frame), self._dt)

    def vertices(self, name: str) -> Any:
        """The corners of an object's triangles, (frames, n, 3), with the copies in front in a batch."""
        if name not in self.layout.surfaces:
            raise KeyError(f"there is no object {name!r} with a surface: {nearest(name, self.layout.surfaces)}")
        return self.layout.surfaces[name].vertices(*self._places(name))

    def _places(self, name: str) -> tuple[Any, Any]:
        """Where the corners of an object are placed: x, and rot if there is one."""
        mine, surface = self[name], self.layout.surfaces[name]
        if surface.links:
            return surface.of_links(mine.links)
        return mine.x, mine.rot if "rot" in mine.names else None

    def state(self, frame: int = -1) -> State:
        """The state at a frame, as numbers without a gradient."""
        shape = self.layout.columns
        return State(self.layout, {
            name: plain(values[frame]).reshape(self.layout.worlds, -1, *shape[name].shape)
            for name, values in self.columns.items()
        })  # fmt: skip

    def numpy(self) -> Trajectory:
        """The same as NumPy arrays, without gradients."""
        return Trajectory(self.layout, self.times, {name: plain(values) for name, values in self.columns.items()},
                          self.solves, self._model, self._dt)  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write what can be looked at to an .npz file: `nablasim view file.npz` and `ph.show("file.npz")` show it."""
        from nablasim.physics.time.motion import Motion, save_motions  # they are made of trajectories

        return save_motions(path, {"motion": Motion.of(self)})

    def __repr__(self) -> str:
        return f"<Trajectory of {len(self)} frames, {self.times[0]:g} s to {self.times[-1]:g} s: {', '.join(self)}>"


class Tangents(Trajectory):
    """How the frames of a rollout move along k directions, which are in front of all arrays: links and corners, too."""

    def __init__(self, run: Trajectory, columns: Mapping[str, Real], ways: Mapping[str, Real]):
        """columns: (frames, k, rows, *element); ways: how given columns of the scene move, (k, worlds, rows, …)."""
        count = next(iter(columns.values())).shape[1]
        apart = {name: values.reshape(len(values), -1, *values.shape[3:]) for name, values in columns.items()}
        super().__init__(run.layout.batched(count), run.times, apart, run.solves)
        self._run, self._along, self._ways = run, columns, ways

    @cached_property
    def _links(self) -> dict[str, dict[str, Pose]]:
        model = self._run._model
        assert model is not None
        return kinematics_along(model, self._run.columns["coords.q"], self._ways, self._along["coords.q"])

    def vertices(self, name: str) -> Any:
        """How the corners of an object's triangles move, (k, frames, n, 3)."""
        if name not in self.layout.surfaces:
            raise KeyError(f"there is no object {name!r} with a surface: {nearest(name, self.layout.surfaces)}")
        (dx, drot), (_, rot) = self._places(name), self._run._places(name)
        return self.layout.surfaces[name].moved(rot, dx, drot)

    def numpy(self) -> Trajectory:
        return self


def _apart(values: Any, rows: list[slice]) -> Sequence[Any]:
    """The rows of each scene, from (frames, rows, ...)."""
    if is_torch(values):
        # One operation: the way back of a cut would fill the whole for every scene.
        return values.split([part.stop - part.start for part in rows], dim=1)
    return [values[:, part] for part in rows]
