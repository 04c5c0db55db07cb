"""`Scene`: collects named objects, and says what is wrong with them before anything runs."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.laws import (
    add_link_bodies,
    add_link_planes,
    add_plane,
    bodies,
    bodies_kernels,
    finish_link_bodies,
    in_use,
    particles,
    sort_link_planes,
)
from nablasim.physics.model import Layout, Model, finish
from nablasim.physics.scene.contacts import Contacts
from nablasim.physics.scene.deformables import Deformables
from nablasim.physics.scene.drafting import Where
from nablasim.physics.scene.loads import Loads
from nablasim.physics.scene.robots import Robots


class Scene(Deformables, Contacts, Loads, Robots):
    """A scene in SI units, y up. Add objects by name, then `build` a model of it."""

    def __init__(self, gravity: ArrayLike = (0.0, -9.81, 0.0)) -> None:
        super().__init__(gravity)
        self._fixed: list[NDArray[np.int64]] = []
        self._held: list[int] = []

    def fix(self, name: str, where: Where | None = None) -> Scene:
        """Hold an object where it is: a rigid body, all particles of it, or those that `where` chooses.

        where: a function of the positions (n, 3) that gives a mask, or a mask, or the numbers of the particles.
        """
        body = self._body(name)
        if body is not None:
            self._held.append(body.start)
        else:
            self._fixed.append(self._chosen(name, where, "fix"))
        return self

    def build(self, real: str = "float32", batch: int | None = None) -> Model:
        """The model of what has been added so far. `batch`: of so many copies of it, each with its own parameters."""
        if real not in ("float32", "float64"):
            raise ValueError(f'real is "float32" or "float64", not {real!r}')
        if not self._draft.things:
            raise ValueError("the scene is empty: add an object first, such as scene.add_particles(...)")
        if batch is not None and (not isinstance(batch, int) or batch < 1):
            raise ValueError(f"batch is how many copies there are, from 1 on, not {batch!r}")
        draft = self._draft.copy()
        if self._held:
            motion = np.concatenate(draft.indices[bodies.MOTION.name])
            motion[self._held] = bodies_kernels.HELD
            draft.indices[bodies.MOTION.name] = [motion]
        add_link_bodies(draft, {n: robot for n, (robot, _) in self._robots.items()},
                        {n: selves for n, (_, selves) in self._robots.items()})  # fmt: skip
        for add in self._late.values():
            add(draft)
            if isinstance(add, partial) and add.func is add_plane:
                add_link_planes(draft, **add.keywords)
        sort_link_planes(draft)
        finish_link_bodies(draft)
        if self._fixed:
            free = np.concatenate(draft.indices[particles.FREE.name])
            free[np.concatenate(self._fixed)] = 0
            draft.indices[particles.FREE.name] = [free]
        layout = finish(draft, in_use(draft.count))
        one = Model(layout, real, {name: p.value for name, p in layout.parameters.items()}, _not_in_force(layout))
        return one if batch is None else one.batched(batch)


def _not_in_force(layout: Layout) -> frozenset[str]:
    """Of quantities that exclude each other, the first ones that were added are in force."""
    first: dict[str, str] = {}
    for p in layout.parameters.values():
        if p.choice is not None and not p.dormant:
            first.setdefault(*p.choice)
    return frozenset(n for n, p in layout.parameters.items() if p.choice and first.get(p.choice[0]) != p.choice[1])
