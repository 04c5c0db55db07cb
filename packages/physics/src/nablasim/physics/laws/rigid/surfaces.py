"""The surfaces of bodies as kernels look them up: groups of triangles in boxes, grids of distances, bounding balls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import kernelc as kc
from nablasim.physics.geometry import GROUP, Solid
from nablasim.physics.laws.rigid.bodies import EDGE_COUNT, EDGE_START, ENDS, FACE, KIND, SIZE, points
from nablasim.physics.laws.rigid.surfaces_kernels import Edges, Grids, Meshes, body_bounds, group_boxes
from nablasim.physics.laws.rigid.surfaces_kernels import Surfaces as Bundle
from nablasim.physics.laws.system import System
from nablasim.physics.model import Column, Draft, Index, Rows

if TYPE_CHECKING:
    from nablasim.physics.model import Arrays

FACE_START, FACE_COUNT = Index("body_boxes.face_start", to="body_faces"), Index("body_boxes.face_count")
LOW, HIGH = (Column(f"body_boxes.{q}", kc.float3, role="derived") for q in ("low", "high"))
BOX_START, BOX_COUNT = Index("bodies.box_start", to="body_boxes", begins=True), Index("bodies.box_count")
"""The first box of a body holds all of its faces, the others groups of them."""
DISTANCE = Column("body_nodes.distance")
NODE, CELLS = Index("bodies.node", to="body_nodes", begins=True), Index("bodies.cells", width=3)
ORIGIN, SPACING = Column("bodies.origin", kc.float3), Column("bodies.spacing", kc.float3)
BOUND = Column("bodies.bound", kc.float4, role="derived")


class Surfaces(System):
    """Where to look for contact; nothing here is differentiated but the distances on grids."""

    name = "surfaces"
    columns = (LOW, HIGH, DISTANCE, ORIGIN, SPACING, BOUND)
    indices = (FACE_START, FACE_COUNT, BOX_START, BOX_COUNT, NODE, CELLS)

    def finish(self, a: Arrays) -> None:
        kc.launch(group_boxes, a.rows("body_boxes"), [surfaces(a)], parts=a.parts)
        kc.launch(body_bounds, a.rows("bodies"), [surfaces(a)], parts=a.parts)


def surfaces(a: Arrays) -> Any:
    """The surfaces of bodies in kernels."""
    meshes = a.bundle(Meshes, FACE, BOX_START, BOX_COUNT, FACE_START, FACE_COUNT, LOW, HIGH)
    grids = a.bundle(Grids, NODE, CELLS, ORIGIN, SPACING, DISTANCE)
    edges = a.bundle(Edges, ENDS, start=EDGE_START, count=EDGE_COUNT)
    return a.bundle(Bundle, KIND, SIZE, BOUND, points=points(a), edges=edges, meshes=meshes, grids=grids)


def add_surface(draft: Draft, name: str, body: Rows, faces: Rows, solid: Solid) -> None:
    """The surface of a body whose faces are there already."""
    starts = np.arange(0, faces.count, GROUP)
    whole = [[faces.start, faces.count]] if faces.count else []
    groups = [*whole, *([faces.start + s, min(GROUP, faces.count - s)] for s in starts)]
    boxes = draft.rows("body_boxes", len(groups))
    start, count = np.array(groups, int).reshape(-1, 2).T
    draft.index(FACE_START.name, start)
    draft.index(FACE_COUNT.name, count)
    draft.index(BOX_START.name, [boxes.start])
    draft.index(BOX_COUNT.name, [boxes.count])
    grid, field = solid.distance, solid.field
    shape = (0, 0, 0) if grid is None else grid.values.shape
    if field is not None:
        shape = (field.heights.shape[0], 1, field.heights.shape[1])
    nodes = draft.rows("body_nodes", shape[0] * shape[1] * shape[2])
    draft.index(NODE.name, [nodes.start])
    draft.index(CELLS.name, [shape])
    draft.constant(SPACING, body, 1.0)
    if grid is not None:
        draft.constant(ORIGIN, body, grid.low)
        draft.constant(SPACING, body, grid.spacing)
        draft.parameter(f"{name}.distance", DISTANCE, nodes, grid.values.ravel(), unit="m",
                        about="signed distances at the nodes of the grid, z fastest")  # fmt: skip
        draft.thing(name, "obstacle", nodes)
    if field is not None:
        (width, depth), (along_x, along_z) = field.size, field.spacing
        draft.constant(ORIGIN, body, [-width / 2, 0.0, -depth / 2])
        draft.constant(SPACING, body, [along_x, 1.0, along_z])
        draft.parameter(f"{name}.heights", DISTANCE, nodes, field.heights.ravel(), unit="m",
                        about="heights at the nodes, z fastest")  # fmt: skip
        draft.thing(name, "obstacle", nodes)
