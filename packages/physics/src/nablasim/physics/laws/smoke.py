"""Smoke in the plane, after Stam's stable fluids: the flow carries the smoke and itself, and stays free of divergence.

The speeds of a step are those of the step before, carried along, plus forces, with the divergence taken out. A grid is
one row of `gas_grids`; its cells and the faces between them are rows of `gas_cells` and `gas_faces`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

import kernelc as kc
from nablasim.physics.laws import smoke_kernels as kernels
from nablasim.physics.laws.projection import Projection, Staggered
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Layout

if TYPE_CHECKING:
    from nablasim.physics.model import Step

DENSITY = Column("gas_cells.density", role="state")
FORCE = Column("gas_forces.force", per_step=True)
"""Two rows for each cell: the acceleration along x and y."""
SOURCE = Column("gas_cells.source", per_step=True)
SPEED = Column("gas_faces.speed", role="state")
BUOYANCY = Column("gas_grids.buoyancy")
DECAY = Column("gas_grids.decay")
SIDES = Column("gas_sides.length")
"""Two rows for each grid: the sides of its cells along x and y."""
NUMBERS = Index("gas_grids.numbers", width=4)
"""Cells along x and y; 1 for each direction that wraps around."""
FIRST_CELL = Index("gas_grids.first_cell", to="gas_cells")
FIRST_FACE = Index("gas_grids.first_face", to="gas_faces")
CELL_GRID = Index("gas_cells.grid", to="gas_grids")
CELL_PLACE = Index("gas_cells.place", width=3)
"""i, j, and 1 if there is air."""
FACE_GRID = Index("gas_faces.grid", to="gas_grids")
FACE_PLACE = Index("gas_faces.place", width=4)
"""i, j, the axis that it lies across, and 1 if it is open."""
FACE_CELLS = Index("gas_faces.cells", to="gas_cells", width=2)

PROJECTIONS: WeakKeyDictionary[Layout, Projection] = WeakKeyDictionary()
"""That of a layout, made when it is added."""


class Smoke(System):
    """Advection, forces, projection."""

    name = "smoke"
    columns = (DENSITY, FORCE, SOURCE, SPEED, BUOYANCY, DECAY, SIDES)
    indices = (NUMBERS, FIRST_CELL, FIRST_FACE, CELL_GRID, CELL_PLACE, FACE_GRID, FACE_PLACE, FACE_CELLS)

    def advance(self, s: Step) -> None:
        grids = s.bundle(kernels.Grids, NUMBERS, FIRST_CELL, FIRST_FACE, SIDES)
        cells = s.bundle(kernels.Cells, CELL_GRID, CELL_PLACE)
        faces = s.bundle(kernels.Faces, FACE_GRID, FACE_PLACE, FACE_CELLS)
        given = [s.bundle(kernels.Gas, SPEED, DENSITY), s[SOURCE], s[DECAY], cells, grids, s.dt]
        kc.launch(kernels.advect_smoke, s.rows("gas_cells"), given, [s.next(DENSITY)], parts=s.parts)
        carried = s.scratch("gas_faces.carried", s.rows("gas_faces"))
        given = [kernels.Gas(s[SPEED], s.next(DENSITY)), s[FORCE], s[BUOYANCY], faces, grids, s.dt]
        kc.launch(kernels.push_air, s.rows("gas_faces"), given, [carried], parts=s.parts)
        _project(s, carried, s.next(SPEED))


def _project(s: Step, w: Any, u: Any) -> None:
    """Put the projection on the tape, as its own adjoint."""
    projection, copies = PROJECTIONS[s.layout], s.layout.worlds

    def forward() -> None:
        u.numpy()[...] = projection(w.numpy().reshape(copies, -1)).ravel()

    def backward() -> None:
        w.grad.numpy()[...] += projection(u.grad.numpy().reshape(copies, -1)).ravel()

    forward()
    assert s.tape is not None
    s.tape.record(backward, reads=[w], writes=[u], forward=forward)


def add_smoke(draft: Draft, name: str, grid: Staggered) -> None:
    """The rows and parameters of a grid."""
    cells, faces = draft.rows("gas_cells", grid.solid.size), draft.rows("gas_faces", len(grid.open))
    row, sides = draft.rows("gas_grids", 1), draft.rows("gas_sides", 2)
    forces = draft.rows("gas_forces", 2 * cells.count)
    draft.thing(name, "smoke", cells, faces, forces, row)
    draft.constant(SIDES, sides, np.array(grid.h))
    draft.index(NUMBERS.name, [[*grid.cells, *map(int, grid.wrap)]])
    draft.index(FIRST_CELL.name, [cells.start])
    draft.index(FIRST_FACE.name, [faces.start])
    draft.index(CELL_GRID.name, np.full(cells.count, row.start))
    i, j = (index.ravel() for index in np.indices(grid.cells))
    draft.index(CELL_PLACE.name, np.stack([i, j, ~grid.solid.ravel()], axis=1))
    draft.index(FACE_GRID.name, np.full(faces.count, row.start))
    draft.index(FACE_PLACE.name, np.column_stack([grid.place, grid.open]))
    draft.index(FACE_CELLS.name, cells.start + grid.between)
    for what, column, rows, unit, about in (
        ("density", DENSITY, cells, "1", "of the smoke at the start"),
        ("speed", SPEED, faces, "m/s", "across each face at the start"),
        ("force", FORCE, forces, "m/s²", "acceleration along x and y, cell by cell"),
        ("source", SOURCE, cells, "1/s", "smoke that is fed"),
        ("buoyancy", BUOYANCY, row, "m/s²", "acceleration upwards of smoke of density one"),
        ("decay", DECAY, row, "1/s", "rate at which smoke fades"),
    ):
        draft.parameter(f"{name}.{what}", column, rows, 0.0, unit=unit, about=about)
