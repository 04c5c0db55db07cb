"""control-fem (Fig. 5 and 6a): a soft gear of 1,152 tetrahedra that lies on the floor is to move to a place.

Every tetrahedron is activated by the paper's network. The gear is meshed here: a ring of cells about its axis, cells
for teeth outside of it, six tetrahedra in each cell.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid import control
from nablasim.sysid.experiments.steering import CENTRE, PICTURE, RANDOM, Scale, Steering
from nablasim.sysid.problem import Pyramid

DENSITY, HEIGHT = 100.0, 0.2
RADII = (0.2, 0.28, 0.36, 0.43, 0.5)
"""Of the cells (m): a ring of two, teeth of two."""


def gear(teeth: int = 8, layers: int = 2) -> ph.TetMesh:
    """Lying, about the y axis. Each tooth has a fourth of its cells' turn; 8 teeth in two layers are 1,152 tets."""
    around, rows, ring = 4 * teeth, len(RADII), 2
    cells = [c for c in itertools.product(range(around), range(rows - 1), range(layers)) if c[1] < ring or c[0] % 4 < 2]
    tets = np.array([split for cell in cells for split in _six(cell)])
    i, j, k = tets[..., 0] % around, tets[..., 1], tets[..., 2]
    used, numbers = np.unique((i * rows + j) * (layers + 1) + k, return_inverse=True)
    i, j, k = np.unravel_index(used, (around, rows, layers + 1))
    angle, radius = 2 * np.pi * i / around, np.asarray(RADII)[j]
    points = np.stack([radius * np.cos(angle), HEIGHT * k / layers, radius * np.sin(angle)], axis=-1)
    return ph.TetMesh(points, _upright(points, numbers.reshape(-1, 4)))


def _six(cell: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    """The ways from one corner of a cell to the opposite one along its edges: six tetrahedra, which fit neighbours."""
    found = []
    for order in itertools.permutations(range(3)):
        corners = [cell]
        for axis in order:
            corners.append(tuple(c + (a == axis) for a, c in enumerate(corners[-1])))
        found.append(corners)
    return found


def _upright(points: NDArray[np.float64], tets: NDArray[np.int64]) -> NDArray[np.int64]:
    """With positive volumes."""
    sides = points[tets[:, 1:]] - points[tets[:, :1]]
    return np.where((np.linalg.det(sides) < 0)[:, None], tets[:, [0, 2, 1, 3]], tets)


@dataclass(frozen=True)
class Gear:
    """The stage: a seed decides in which direction the goal lies, and how far away."""

    teeth: int = 8
    layers: int = 2
    steps: int = 30
    size: int = 64
    far: tuple[float, float] = (0.2, 0.35)

    @cached_property
    def mesh(self) -> ph.TetMesh:
        return gear(self.teeth, self.layers)

    @cached_property
    def masses(self) -> Any:
        return ph.vertex_masses(self.mesh, DENSITY)

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"rate": 0.1}

    def goal(self, seed: int) -> NDArray[np.float64]:
        """Where the middle of the gear is to be."""
        rng = np.random.default_rng([6, seed])
        angle, far = rng.uniform(0, 2 * np.pi), rng.uniform(*self.far)
        return np.array([far * np.cos(angle), HEIGHT / 2, far * np.sin(angle)])

    def task(self, seed: int, told: str) -> control.Task:
        scene = ph.Scene()
        scene.add_soft("gear", self.mesh, density=DENSITY, material=ph.NeoHookean(E=1e4, nu=0.3), damping=3.0,
                       activation=True, pos=(0, 0.002, 0))  # fmt: skip
        scene.add_ground("floor", ke=100.0, kd=0.5, kf=3.0, mu=0.9)
        policy = control.Random(scale=0.4) if told == RANDOM else control.Waves(8, scale=0.4, frequency=2.0)
        return control.Task(scene.build(), {"gear.activation": policy}, self._told(seed, told), dt=1 / 30,
                            steps=self.steps, substeps=24)  # fmt: skip

    def _told(self, seed: int, told: str) -> Any:
        at = self.goal(seed)
        if told == CENTRE:
            return control.CentreOfMass("gear", at, dense=True, masses=self.masses)
        camera = render.Camera.look_at(eye=(0.0, 3.2, 0.8), target=(0.0, 0.0, 0.0), fov=45)
        view = render.Silhouette(camera, size=(self.size, self.size))
        moved = self.mesh.moved(pos=at - np.array([0, HEIGHT / 2, 0]))
        return control.Image(view, view(np.float32(moved.vertices), moved.surface.faces), loss=Pyramid(5))

    def misses(self, seed: int, motion: Any) -> tuple[float, ...]:
        centre = control.centre_of_mass(motion, "gear", self.masses)[-1].detach().numpy()
        return (float(np.hypot(*(centre - self.goal(seed))[[0, 2]])),)


CONTROL_FEM = Steering(
    name="control-fem",
    title="Fig. 6a: a soft gear moves to where a picture shows it",
    text=(
        "A gear of 1,152 tetrahedra lies on the floor. Eight sinusoids, one linear layer and tanh give an activation "
        "of each tetrahedron. Trained by Adam from the picture of its end alone (a gear at rest at the goal, 64 × 64 "
        "pixels of a silhouette, at several scales); from the distance of its centre of mass from the goal in "
        "every frame, as the paper's DiffPhysics; and random activations. Each seed has another goal, 0.2 to 0.35 m "
        "away, and other first weights. What counts is how far from the goal the centre of mass ends on the floor.",
    ),
    stage=Gear(),
    scales=(
        ("ci", Scale(1, 2, (("teeth", 4), ("layers", 1), ("steps", 6), ("size", 24)))),
        ("desk", Scale(6, 30)),
        ("paper", Scale(6, 100)),
    ),
    near=0.041,
    paper=((PICTURE, "0.041 (median)"),),
)
