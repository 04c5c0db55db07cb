"""The Jacobian of the forces as a sparse matrix, from the kernels themselves.

Every element (spring, tetrahedron, hinge, contact with a plane ...) is given particles of its own, copies of those that
it acts on. No two elements then share anything, and one reverse sweep over all of them gives a row of every element's
matrix at once: twelve sweeps give all matrices of tetrahedra, exactly, whatever their law.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import kernelc as kc
from nablasim.physics.laws import System, bodies, particles
from nablasim.physics.model import Array, Arrays, Index, Layout, scene_of, world_of
from nablasim.physics.time.solvers.endpoint import Endpoint, Floats
from nablasim.physics.time.solvers.moving_bodies import MovingBodies


class Assembly:
    """h ∂f/∂x + ∂f/∂v of an `Endpoint` as a matrix, for all systems whose rows name their particles themselves."""

    def __init__(self, systems: Sequence[System], end: Endpoint):
        self._end, layout = end, end.layout
        tables = {s.name: _own_tables(s, layout) for s in systems}
        self.whole = all(tables[s.name] is not None for s in systems)
        """Whether this is all of the Jacobian. Contacts among deformable things, which come and go, are not in it."""
        taken = [s for s in systems if tables[s.name]]
        groups = _by_table([i for s in taken for i in s.indices if i.to == "particles" and layout.rows(i.table)])
        self._particle, self._mates, renumbered = _explode(groups, end)
        count = len(self._particle)
        self._columns: dict[str, Array] = {
            c.name: kc.zeros(count, dtype=c.element, real=kc.float64, requires_grad=c in (particles.X, particles.V))
            for c in layout.columns.values() if c.table == "particles" and c.role != "sum"
        }  # fmt: skip
        self._sums = {
            name: kc.zeros(count if name.startswith("particles.") else layout.rows(layout.columns[name].table),
                           dtype=layout.columns[name].element, real=kc.float64, requires_grad=True) for name in end.sums
        }  # fmt: skip
        # The same memory as the endpoint's, but not asked for gradients.
        shared = {n: kc.array(a.numpy(), dtype=layout.columns[n].element) for n, a in (end.given | end.state).items()}
        arrays = Arrays(layout, "float64", shared | end.indices | self._columns | renumbered, end.present)
        state = {c.name: arrays[c] for c in layout.columns.values() if c.role == "state" and layout.rows(c.table)}
        self._gather()
        with kc.Tape() as self._tape:
            for total in self._sums.values():
                total.zero_()
            step = arrays.end(state, self._sums, end.dt, end.first, self._tape)
            for system in taken:
                system.forces(step)
        self._pattern()

    def _gather(self) -> None:
        end = self._end
        for name, a in self._columns.items():
            source = {**end.given, particles.X.name: end.x, particles.V.name: end.v}[name]
            np.take(source.numpy(), self._particle, axis=0, out=a.numpy())

    def _pattern(self) -> None:
        """Where the entries of the elements go: rows and columns of the matrix, without repetition."""
        n, axes = 3 * len(self._end.x.numpy()), np.arange(3)
        keys = [np.arange(n, dtype=np.int64) * (n + 1)]  # the diagonal
        for mates in self._mates:
            here = np.flatnonzero(mates >= 0)
            columns = 3 * self._particle[here][:, None] + axes
            for axis in range(3):
                rows = 3 * self._particle[mates[here]] + axis
                keys.append((columns.astype(np.int64) * n + rows[:, None]).ravel())
        entries, place = np.unique(np.concatenate(keys), return_inverse=True)
        self._diagonal, self._place = place[:n], place[n:]
        self._rows, starts = entries % n, np.searchsorted(entries // n, np.arange(n + 1))
        self._shape, self._starts = (n, n), starts.astype(np.int32)
        self._across = (entries // n).astype(np.int32)

    def matrix(self, h: float, mass: Floats, free: NDArray[np.bool_]) -> tuple[Any, Any]:
        """diag(mass) - h (h ∂f/∂x + ∂f/∂v) where the forces were evaluated last, and the absolute of h ∂f/∂x.

        Rows and columns of what is not free are those of the masses alone.
        """
        self._gather()
        self._tape.replay()
        seeds = {name: a for name, a in self._sums.items() if name.startswith("particles.")}
        by_x, by_v = [], []
        way = np.zeros((len(self._particle), 3))
        for mates in self._mates:
            here = np.flatnonzero(mates >= 0)
            corner = mates[here]
            for axis in range(3):
                way[...] = 0
                way[corner, axis] = 1
                self._tape.backward(grads=dict.fromkeys(seeds.values(), way), add=False)
                by_x.append(self._columns[particles.X.name].grad.numpy()[here].ravel())
                by_v.append(self._columns[particles.V.name].grad.numpy()[here].ravel())
        count = len(self._rows)
        none = np.zeros(0)
        K, C = (np.bincount(self._place, np.concatenate([none, *by]), minlength=count) for by in (by_x, by_v))
        open_ = np.repeat(free, 3)
        keep = open_[self._rows] & open_[self._across]
        J = np.where(keep, -h * (h * K + C), 0.0)
        J[self._diagonal] += np.repeat(mass, 3)
        return tuple(
            sparse.csc_matrix((data, self._rows.astype(np.int32), self._starts), shape=self._shape)
            for data in (J, np.abs(h * K))
        )


class Coupling:
    """The rows and columns of the Jacobian that belong to bodies.

    There are few bodies: each row takes a reverse sweep, each column two looks at the forces on the particles, for all
    scenes of a batch at once.
    """

    def __init__(self, end: Endpoint, bodies: MovingBodies):
        self._end, self._bodies = end, bodies
        particle, body = world_of(end.layout, "particles"), world_of(end.layout, "bodies")
        self._world = np.repeat(np.concatenate([particle, body, body]), 3)
        """Which scene of a batch each unknown belongs to."""
        self._scene = scene_of(end.layout, "bodies")
        self._alike = _one_of_each(np.flatnonzero(bodies.free), body, bodies.count)

    def rows(self, h: float, mass: Floats, free: NDArray[np.bool_]) -> tuple[Any, Floats]:
        """The rows, where the forces were evaluated last, and the rounding of residuals over that of numbers: of the
        rows of bodies, for each component."""
        n, count = self._end.particles, self._bodies.count
        way, open_ = np.zeros((n + 2 * count, 3)), np.repeat(free, 3)
        fixed = np.flatnonzero(~open_[3 * n :])
        entries = [(np.repeat(mass, 3)[3 * n :][fixed], fixed, fixed + 3 * n)]
        for alike in self._alike:
            for axis in range(3):
                way[...] = 0
                way[n + alike[alike >= 0], axis] = 1
                by_x, pulled = self._end.pulled(h, way)
                pulled[:n] += h * by_x
                row = np.where(open_, -pulled.ravel(), 0.0)
                here = np.flatnonzero(row)
                entries.append((row[here], 3 * alike[self._world[here]] + axis, here))
        J = _sparse(entries, (6 * count, way.size))
        far = np.zeros(self._scene.max() + 1)
        np.maximum.at(far, self._scene, np.abs(self._bodies.state[bodies.X.name].numpy()).max(axis=1))
        return J, np.tile(np.repeat(far[self._scene], 3), 2) / h * np.asarray(np.abs(J).sum(axis=1)).ravel()

    def columns(self, h: float, x: Floats, v: Floats, free: NDArray[np.bool_]) -> Any:
        """What particles owe to bodies, by differences: good enough to search by, and to precondition."""
        n, count = self._end.particles, self._bodies.count
        e = 1e-6 * float(self._bodies.reach.min()) / h
        open_, way, entries = np.repeat(free[:n], 3), np.zeros_like(v), []
        for alike in self._alike:
            for axis in range(3):
                way[...] = 0
                way[n + alike[alike >= 0], axis] = e
                there, back = (self._end.forces(x, v + s * way, h)[:n].ravel() for s in (1, -1))
                column = np.where(open_, h * (back - there) / (2 * e), 0.0)
                here = np.flatnonzero(column)
                entries.append((column[here], here, 3 * alike[self._world[here]] + axis))
        self._end.forces(x, v, h)  # That is where the Jacobian is asked for.
        return _sparse(entries, (3 * n, 6 * count))


def _one_of_each(free: NDArray[np.intp], world: NDArray[np.intp], count: int) -> list[NDArray[np.intp]]:
    """Rows of bodies that can be looked at together: of each scene at most one, -1 where it has no more.

    First those of the velocities of centres of mass, then those of angular velocities.
    """
    place = np.arange(len(free)) - np.searchsorted(world[free], world[free])
    found = []
    for k in range(place.max(initial=-1) + 1):
        alike = np.full(world.max() + 1, -1)
        alike[world[free[place == k]]] = free[place == k]
        found.append(alike)
    return [np.where(alike < 0, -1, alike + part) for part in (0, count) for alike in found]


def _sparse(entries: list[tuple[Any, Any, Any]], shape: tuple[int, int]) -> Any:
    """A matrix of (values, rows, columns)."""
    data, rows, columns = (np.concatenate(part) for part in zip(*entries))
    return sparse.csc_matrix((data, (rows, columns)), shape=shape)


def _own_tables(system: System, layout: Layout) -> list[str] | None:
    """The tables of a system whose rows act on the particles that they name; None if rows act on those of others."""
    naming = {i.table for i in layout.kinds.values() if i.to == "particles" and layout.rows(i.table)}
    others = any(i.to in naming and layout.rows(i.table) for i in system.indices)
    return None if others else [i.table for i in system.indices if i.table in naming and i.to == "particles"]


def _by_table(indices: list[Index]) -> dict[str, list[Index]]:
    found: dict[str, list[Index]] = {}
    for index in indices:
        found.setdefault(index.table, []).append(index)
    return found


def _explode(groups: dict[str, list[Index]], end: Endpoint) -> tuple[NDArray[np.int64], list[NDArray[np.int64]], Any]:
    """Particles of its own for every row: which particle each is a copy of; for each corner a the copy that is corner
    a of the same row, or -1; and the indices that point to them.
    """
    particles, mates, renumbered, start = [], [], {}, 0
    widest = max((sum(i.width for i in group) for group in groups.values()), default=0)
    for group in groups.values():
        named = [end.indices[i.name].numpy() for i in group]
        wide = np.concatenate([values.reshape(len(values), -1) for values in named], axis=1)
        rows, width = wide.shape
        own = start + np.arange(wide.size).reshape(rows, width)
        particles.append(wide.ravel())
        mate = np.full((widest, wide.size), -1)
        mate[:width] = np.repeat(own.T, width, axis=1)
        mates.append(mate)
        at = 0
        for index, values in zip(group, named):
            part = own[:, at : at + index.width]
            renumbered[index.name] = kc.array(np.ascontiguousarray(part.reshape(values.shape), np.int32))
            at += index.width
        start += wide.size
    if not particles:
        return np.zeros(0, np.int64), [], {}
    return np.concatenate(particles).astype(np.int64), list(np.concatenate(mates, axis=1)), renumbered
