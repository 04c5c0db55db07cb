"""The jellyfish: a bell of thin shell swims up through still water by bending along its edges.

Every hinge of the bell is actuated by the paper's network; water that drags and lifts is all there is to push against.
Weight and buoyancy cancel.
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
from nablasim.sysid.experiments.steering import CENTRE, RANDOM, Scale, Steering
from nablasim.sysid.problem import Pyramid

DENSITY = 1.0
"""kg/m², with the water that moves along."""
FADE = 0.3
"""How long the strokes take to fade (s)."""


def bell(around: int = 12, rings: int = 4, radius: float = 0.5, opening: float = 1.2) -> ph.TriMesh:
    """A cap of a sphere with its top at the origin; `opening` is the angle of its rim from the axis (rad)."""
    angle = opening * np.arange(1, rings + 1) / rings
    turn = 2 * np.pi * np.arange(around) / around
    ring = np.stack([np.cos(turn), np.zeros(around), np.sin(turn)], axis=-1)
    points = [np.zeros((1, 3))] + [radius * (np.sin(a) * ring + [0, np.cos(a) - 1, 0]) for a in angle]
    k, after = np.arange(around), (np.arange(around) + 1) % around
    faces = [np.stack([np.zeros(around, int), 1 + after, 1 + k], axis=-1)]
    for inner in 1 + around * np.arange(rings - 1):
        outer = inner + around
        faces += [np.stack([inner + k, inner + after, outer + k], axis=-1),
                  np.stack([inner + after, outer + after, outer + k], axis=-1)]  # fmt: skip
    return ph.TriMesh(np.concatenate(points), np.concatenate(faces))


class Alike(nn.Module):
    """A policy of kinds of edges: those that a turn about the axis takes to each other are actuated alike.

    It fades out towards the end: a picture of the end then shows where the bell is, and not how it is bent.
    """

    kinds: torch.Tensor

    def __init__(self, kinds: Any, inner: nn.Module, end: float):
        super().__init__()
        self.register_buffer("kinds", torch.as_tensor(kinds))
        self.inner, self.end = inner, end

    def shape_to(self, shape: tuple[int, ...]) -> None:
        room: Any = self.inner
        room.shape_to((int(self.kinds.max()) + 1,))

    def forward(self, time: torch.Tensor) -> torch.Tensor:
        said: torch.Tensor = self.inner(time)
        return said[:, self.kinds] * ((self.end - time) / FADE).clamp(0.0, 1.0)[:, None]


def kinds_of_edges(mesh: ph.TriMesh) -> Any:
    """A number for each hinge, the same where it lies alike about the axis."""
    a, b = mesh.vertices[np.asarray(mesh.hinges.vertices)[:, 2:4]].transpose(1, 0, 2)
    middle = (a + b) / 2
    like = np.stack([np.hypot(middle[:, 0], middle[:, 2]), middle[:, 1], np.linalg.norm(a - b, axis=1)], axis=-1)
    return np.unique(like.round(6), axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class Jellyfish:
    """The stage: a seed decides how high the goal lies, and the first weights."""

    around: int = 12
    rings: int = 4
    steps: int = 60
    size: int = 64
    far: tuple[float, float] = (0.1, 0.15)

    @cached_property
    def mesh(self) -> ph.TriMesh:
        return bell(self.around, self.rings)

    @cached_property
    def masses(self) -> Any:
        faces, areas = self.mesh.faces, self.mesh.areas
        return np.bincount(faces.ravel(), np.repeat(areas, 3), len(self.mesh.vertices))

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"rate": 0.2}

    def goal(self, seed: int) -> float:
        """How much higher (m)."""
        return float(np.random.default_rng([3, seed]).uniform(*self.far))

    def task(self, seed: int, told: str) -> control.Task:
        scene = ph.Scene(gravity=(0, 0, 0))
        scene.add_cloth("bell", self.mesh, density=DENSITY, stretch=40.0, shear=28.0, damping=0.02, bend=0.1,
                        bend_damping=1e-3, lift=5.0, drag=20.0)  # fmt: skip
        inner = control.Random(scale=0.8) if told == RANDOM else control.Waves(8, scale=0.8, frequency=2.0)
        policy = Alike(kinds_of_edges(self.mesh), inner, (self.steps - 2) / 30)
        return control.Task(scene.build(), {"bell.actuation": policy}, self._told(seed, told), dt=1 / 30,
                            steps=self.steps, substeps=16)  # fmt: skip

    def _told(self, seed: int, told: str) -> Any:
        way = np.array([0.0, self.goal(seed), 0.0])
        if told == CENTRE:
            middle = self.masses @ self.mesh.vertices / self.masses.sum()
            return control.CentreOfMass("bell", way + middle, dense=True, masses=self.masses)
        camera = render.Camera.look_at(eye=(0.0, 0.3, 2.4), target=(0.0, 0.1, 0.0), fov=45)
        view = render.Silhouette(camera, size=(self.size, self.size))
        moved = self.mesh.moved(pos=way)
        return control.Image(view, view(np.float32(moved.vertices), moved.faces), loss=Pyramid(5))

    def misses(self, seed: int, motion: Any) -> tuple[float, ...]:
        centre = control.centre_of_mass(motion, "bell", self.masses).detach().numpy()
        return (float(np.linalg.norm(centre[-1] - centre[0] - [0, self.goal(seed), 0])),)


JELLYFISH = Steering(
    name="jellyfish",
    title="A jellyfish swims to where a picture shows it",
    text=(
        "A bell of thin shell in still water, whose weight and buoyancy cancel, is to swim up as one picture shows it. "
        "Every edge between two triangles is actuated by the network of the gear; the water drags and lifts. The "
        "paper shows a film of one, and no figures.",
    ),
    stage=Jellyfish(),
    scales=(
        ("ci", Scale(1, 2, (("around", 8), ("rings", 3), ("steps", 6), ("size", 24)))),
        ("desk", Scale(3, 30)),
        ("paper", Scale(6, 100)),
    ),
    near=0.041,
)
