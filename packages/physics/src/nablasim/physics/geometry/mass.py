"""Mass, centre of mass and inertia of bodies from their surface, and masses of vertices from the elements around them.

Everything runs as kernels, on the tape that is recording, if one is: gradients reach the densities and the vertices.
A change of density changes mass and inertia together; a change of a vertex changes all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelc as kc
from nablasim.physics.errors import MeshError
from nablasim.physics.geometry.mass_kernels import (
    body_mass_properties,
    face_moments,
    lump_masses,
    tet_volumes,
    triangle_areas,
)
from nablasim.physics.geometry.mesh import TetMesh, TriMesh

Array = Any
"""An array of kernelc."""


class MassProperties(NamedTuple):
    """Of each body: mass (kg), centre of mass (m), inertia tensor about it (kg m²), in the frame of the vertices."""

    mass: Any
    com: Any
    inertia: Any


class Bodies:
    """The faces of one or more closed surfaces that share an array of vertices: what `mass_properties` adds up over.

    Make it once; the indices do not change when the vertices move.
    """

    def __init__(self, meshes: Sequence[TriMesh]) -> None:
        if not meshes:
            raise MeshError("there are no bodies")
        counts = [len(mesh.vertices) for mesh in meshes]
        offsets = np.concatenate([[0], np.cumsum(counts)[:-1]])
        faces = [mesh.require_closed().faces + offset for mesh, offset in zip(meshes, offsets)]
        self.count, self.vertices = len(meshes), sum(counts)
        self.faces = kc.array(np.concatenate(faces).astype(np.int32))
        self.body = kc.array(np.repeat(np.arange(len(meshes)), [len(f) for f in faces]).astype(np.int32))
        self.reference = kc.array(np.array([f[0, 0] for f in faces], dtype=np.int32))


def mass_properties(bodies: Bodies, vertices: Array, density: Array) -> MassProperties:
    """Of solid bodies; gradients reach `vertices` (n float3) and `density` (one per body)."""
    if vertices.shape[0] != bodies.vertices or density.shape[0] != bodies.count:
        raise ValueError(
            f"{vertices.shape[0]} vertices and {density.shape[0]} densities were given; the {bodies.count} bodies have "
            f"{bodies.vertices} vertices"
        )
    k, real = bodies.count, _real_of(vertices)
    volume, first = kc.zeros(k, real=real), kc.zeros(k, dtype=kc.float3, real=real)
    second = kc.zeros(k, dtype=kc.mat33, real=real)
    for total in (volume, first, second):
        total.zero_()  # On the tape: a replay has to start from zero again, the launch below only adds.
    result = MassProperties(
        kc.zeros(k, real=real), kc.zeros(k, dtype=kc.float3, real=real), kc.zeros(k, dtype=kc.mat33, real=real)
    )
    kc.launch(
        face_moments,
        dim=bodies.faces.shape[0],
        inputs=[vertices, bodies.faces, bodies.body, bodies.reference],
        outputs=[volume, first, second],
    )
    kc.launch(
        body_mass_properties,
        dim=k,
        inputs=[vertices, bodies.reference, volume, first, second, density],
        outputs=list(result),
    )
    return result


def solid_mass_properties(mesh: TriMesh, density: float) -> MassProperties:
    """The same for one closed mesh and a number, in double precision: a float, (3,) and (3, 3)."""
    found = mass_properties(
        Bodies([mesh]), kc.array(np.array(mesh.vertices), dtype=kc.float3), kc.array(np.array([float(density)]))
    )
    return MassProperties(float(found.mass.numpy()[0]), found.com.numpy()[0].copy(), found.inertia.numpy()[0].copy())


class Lumping:
    """Elements, tetrahedra or triangles, and the vertices that carry their mass."""

    def __init__(self, mesh: TetMesh | TriMesh) -> None:
        cells, incidence = (mesh.tets if isinstance(mesh, TetMesh) else mesh.faces), mesh.incidence
        self.corners = cells.shape[1]
        self.cells = kc.array(np.array(cells))
        self.start, self.item = (kc.array(np.array(part)) for part in incidence)


def lumped_masses(lumping: Lumping, vertices: Array, density: Array) -> Array:
    """The mass of each vertex: an equal share of every element around it, so that they add up to the whole.

    `density` is per element: kg/m³ of tetrahedra, kg/m² of triangles. Gradients reach it, and the vertices.
    """
    n, cells, real = vertices.shape[0], lumping.cells, _real_of(vertices)
    measure, mass = kc.zeros(cells.shape[0], real=real), kc.zeros(n, real=real)
    measuring = tet_volumes if lumping.corners == 4 else triangle_areas
    kc.launch(measuring, dim=cells.shape[0], inputs=[vertices, cells], outputs=[measure])
    kc.launch(
        lump_masses, dim=n, inputs=[measure, density, lumping.start, lumping.item, lumping.corners], outputs=[mass]
    )
    return mass


def vertex_masses(mesh: TetMesh | TriMesh, density: ArrayLike) -> NDArray[np.float64]:
    """The same for a mesh and one number, or one per element, in double precision."""
    lumping = Lumping(mesh)
    rho = np.array(np.broadcast_to(np.asarray(density, dtype=float), (lumping.cells.shape[0],)))
    x = kc.array(np.array(mesh.vertices), dtype=kc.float3)
    return lumped_masses(lumping, x, kc.array(rho)).numpy().copy()


def _real_of(array: Array) -> Any:
    return kc.float64 if array.numpy().dtype == np.float64 else kc.float32
