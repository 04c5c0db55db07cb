"""control-walker (Fig. 5): a walker in the plane is to stand on the right-hand side of a picture.

The plane is kept by symmetry: the body is two cells thick, each tetrahedron has its mirror image on the other side of
the plane, and both are activated alike. The network is that of the gear.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid import control
from nablasim.sysid.experiments.steering import CENTRE, PICTURE, RANDOM, Scale, Steering
from nablasim.sysid.problem import Pyramid

DENSITY, CELL = 100.0, 0.1
SHAPE = ("######", "######", "##..##", "##..##")
"""Cells of the body and its two legs, the highest row first."""


def walker(shape: tuple[str, ...] = SHAPE) -> ph.TetMesh:
    """One half in front of the plane z = 0, then its mirror image behind it, tetrahedron by tetrahedron."""
    wide, high = len(shape[0]), len(shape)
    box = ph.TetMesh.box((wide * CELL, high * CELL, CELL), cells=(wide, high, 1))
    x, y, _ = (box.vertices[box.tets].mean(axis=1) / CELL).astype(int).T
    half = box.tets[np.array([shape[high - 1 - row][column] == "#" for column, row in zip(x, y)])]
    used, half = np.unique(half, return_inverse=True)
    front = box.vertices[used] - [wide * CELL / 2, 0, 0]
    inner = np.flatnonzero(front[:, 2] < 1e-9)
    outer = np.flatnonzero(front[:, 2] >= 1e-9)
    other = np.arange(len(front))
    other[outer] = len(front) + np.arange(len(outer))
    other[inner] = inner
    half = half.reshape(-1, 4)
    # A mirror turns a tetrahedron inside out: two corners change places.
    return ph.TetMesh(np.concatenate([front, front[outer] * [1, 1, -1]]),
                      np.concatenate([half, other[half][:, [0, 2, 1, 3]]]))  # fmt: skip


class Mirrored(nn.Module):
    """A policy of one half, and the same for the other."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def shape_to(self, shape: tuple[int, ...]) -> None:
        room: Any = self.inner
        room.shape_to((shape[0] // 2,))

    def forward(self, time: torch.Tensor) -> torch.Tensor:
        said = self.inner(time)
        return torch.cat([said, said], dim=-1)


@dataclass(frozen=True)
class Walker:
    """The stage: a seed decides how far to the right the goal lies, and the first weights."""

    steps: int = 30
    size: int = 64
    far: tuple[float, float] = (0.25, 0.35)

    @cached_property
    def mesh(self) -> ph.TetMesh:
        return walker()

    @cached_property
    def masses(self) -> Any:
        return ph.vertex_masses(self.mesh, DENSITY)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"optimiser": "quasi-newton", "rate": 0.3}

    def goal(self, seed: int) -> float:
        """How far to the right (m)."""
        return float(np.random.default_rng([2, seed]).uniform(*self.far))

    def task(self, seed: int, told: str) -> control.Task:
        scene = ph.Scene()
        scene.add_soft("walker", self.mesh, density=DENSITY, material=ph.NeoHookean(E=1e4, nu=0.3), damping=2.0,
                       activation=True, pos=(0, 0.002, 0))  # fmt: skip
        scene.add_ground("floor", ke=100.0, kd=0.5, kf=3.0, mu=0.9)
        half = control.Random(scale=0.4) if told == RANDOM else control.Waves(8, scale=0.4, frequency=2.0)
        return control.Task(scene.build(), {"walker.activation": Mirrored(half)}, self._told(seed, told), dt=1 / 30,
                            steps=self.steps, substeps=24)  # fmt: skip

    def _told(self, seed: int, told: str) -> Any:
        way = np.array([self.goal(seed), 0.0, 0.0])
        if told == CENTRE:
            middle = self.masses @ self.mesh.vertices / self.masses.sum()
            return control.CentreOfMass("walker", way + middle, dense=True, masses=self.masses)
        camera = render.Camera.look_at(eye=(0.1, 0.4, 2.0), target=(0.1, 0.25, 0.0), fov=45)
        view = render.Silhouette(camera, size=(self.size, self.size))
        moved = self.mesh.moved(pos=way)
        return control.Image(view, view(np.float32(moved.vertices), moved.surface.faces), loss=Pyramid(5))

    def misses(self, seed: int, motion: Any) -> tuple[float, ...]:
        centre = control.centre_of_mass(motion, "walker", self.masses).detach().numpy()
        return (abs(float(centre[-1, 0] - centre[0, 0]) - self.goal(seed)),)


CONTROL_WALKER = Steering(
    name="control-walker",
    title="Fig. 5: a walker in the plane, to where a picture shows it",
    text=(
        "A walker with two legs, of 240 tetrahedra in mirrored pairs, is to stand 0.25 to 0.35 m to the right, as one "
        "picture shows it (64 × 64 pixels of a silhouette, at several scales). The network is that of the gear; the "
        "search is L-BFGS, one motion per iteration. The paper solves it within three iterations.",
    ),
    stage=Walker(),
    scales=(("ci", Scale(1, 2, (("steps", 6), ("size", 24)))), ("desk", Scale(6, 20)), ("paper", Scale(20, 30))),
    near=0.041,
    paper=((PICTURE, "solved in 3 iterations"),),
)
