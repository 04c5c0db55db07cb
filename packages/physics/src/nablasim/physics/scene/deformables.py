"""Objects made of particles: points, springs, soft solids and cloth."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import shaped
from nablasim.physics.errors import about
from nablasim.physics.geometry import NeoHookean, TetMesh, TriMesh, rotation_matrix
from nablasim.physics.laws import add_cloth, add_particles, add_springs, add_tets
from nablasim.physics.scene.drafting import Drafting

S = TypeVar("S", bound="Deformables")
T = TypeVar("T", TetMesh, TriMesh)


class Deformables(Drafting):
    """Adders of objects that are made of particles."""

    def add_particles(self: S, name: str, points: ArrayLike, *, mass: ArrayLike, vel: ArrayLike = (0.0, 0.0, 0.0)) -> S:
        """Point masses that are joined to nothing. `mass` (kg) is of each; `vel` (m/s) of all, or of each."""
        x, v = self._placed(name, points, vel)
        add_particles(self._draft, name, "particles", x, v, mass, self._gravity)
        return self

    def add_springs(
        self: S,
        name: str,
        points: ArrayLike,
        pairs: ArrayLike,
        *,
        ke: ArrayLike,
        kd: ArrayLike = 0.0,
        mass: ArrayLike = 1.0,
        rest: ArrayLike | None = None,
        actuation: ArrayLike | bool = False,
        vel: ArrayLike = (0.0, 0.0, 0.0),
    ) -> S:
        """Particles joined by damped springs.

        ke, kd: stiffness (N/m) and damping (N s/m), one value or one per spring. mass: of each particle (kg).
        rest: rest lengths (m); the distances of the points given, unless told otherwise.
        actuation: True makes "name.actuation" a parameter: the part by which a spring is shortened.
        """
        x, v = self._placed(name, points, vel)
        with self._whole():
            rows = add_particles(self._draft, name, "springs", x, v, mass, self._gravity)
            add_springs(self._draft, name, rows, x, pairs, ke=ke, kd=kd, rest=rest, actuation=actuation)
        return self

    def add_soft(
        self: S,
        name: str,
        mesh: TetMesh | tuple[ArrayLike, ArrayLike],
        *,
        material: NeoHookean,
        density: ArrayLike | None = None,
        mass: ArrayLike | None = None,
        damping: ArrayLike = 0.0,
        activation: ArrayLike | bool = False,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike | None = None,
        vel: ArrayLike = (0.0, 0.0, 0.0),
    ) -> S:
        """A deformable solid: `mesh` is a `TetMesh`, or its vertices and tetrahedra.

        density: kg/m³, one value or one per tetrahedron; or mass: of each vertex (kg).
        damping: of the strain rate (Pa s): a solid that moves or turns as a whole is not braked.
        activation: True makes "name.activation" a parameter, per tetrahedron; positive contracts.
        pos, rot: where the mesh is put, rotated by the quaternion (x, y, z, w) first; vel: m/s, of all or of each.
        """
        mesh = _mesh(name, mesh, TetMesh, "tetrahedra")
        if (density is None) == (mass is None):
            raise ValueError(f"{name}: give either density (kg/m³) or mass (of each vertex, kg)")
        if not isinstance(material, NeoHookean):
            raise TypeError(f"{name}: material is ph.NeoHookean(E=, nu=) or .paper(mu=, lam=), not {material!r}")
        x, v = self._placed(name, _moved(mesh.vertices, pos, rot), vel)
        with self._whole():
            rows = add_particles(self._draft, name, "soft", x, v, mass, self._gravity)
            add_tets(self._draft, name, rows, mesh, material=material, density=density, damping=damping,
                     activation=activation)  # fmt: skip
        return self

    def add_cloth(
        self: S,
        name: str,
        mesh: TriMesh | tuple[ArrayLike, ArrayLike],
        *,
        mass: ArrayLike | None = None,
        density: ArrayLike | None = None,
        vertex_mass: ArrayLike | None = None,
        stretch: ArrayLike = 1e3,
        shear: ArrayLike = 1e3,
        damping: ArrayLike = 0.0,
        bend: ArrayLike = 0.0,
        bend_damping: ArrayLike = 0.0,
        rest_angle: ArrayLike | None = None,
        actuation: ArrayLike = 0.0,
        lift: ArrayLike = 0.0,
        drag: ArrayLike = 0.0,
        springs: ArrayLike | bool = False,
        spring_ke: ArrayLike = 0.0,
        spring_kd: ArrayLike = 0.0,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike | None = None,
        vel: ArrayLike = (0.0, 0.0, 0.0),
    ) -> S:
        """A cloth or thin shell: `mesh` is a `TriMesh`, or its vertices and faces; its shape is the shape at rest.

        mass: of the whole cloth (kg), shared by area; or density: kg/m², one or per triangle; or vertex_mass: of each.
        stretch, shear: lambda and mu of the neo-Hookean membrane (N/m), against changes of area and of shape. Of small
            strains the area modulus is stretch + 2/9 shear, and the shear modulus 2/3 shear.
        damping: of the strain rate (N s/m): a cloth that moves or turns as a whole is not braked.
        bend, bend_damping: moment of an edge k_b sin((phi - rest_angle)/2 + actuation) (N m), and against the rate of
            its angle phi (N m s). rest_angle (rad): as the mesh is, unless told otherwise. One value or one per hinge,
            in the order of `mesh.hinges`.
        lift, drag: force of the air across and along its flow, per area and squared speed (kg/m³); see `add_wind`.
        springs: True for a spring along every edge, or pairs of vertices, with spring_ke (N/m) and spring_kd (N s/m).
        pos, rot: where the mesh is put, rotated by the quaternion (x, y, z, w) first; vel: m/s, of all or of each.
        """
        mesh = _mesh(name, mesh, TriMesh, "faces")
        masses = {"mass": mass, "density": density, "vertex_mass": vertex_mass}
        if sum(value is not None for value in masses.values()) != 1:
            raise ValueError(f"{name}: give one of mass (of all, kg), density (kg/m²) and vertex_mass (of each, kg)")
        x, v = self._placed(name, _moved(mesh.vertices, pos, rot), vel)
        with self._whole(), about(name):
            rows = add_particles(self._draft, name, "cloth", x, v, None, self._gravity)
            if springs is not False:
                pairs = mesh.edges if springs is True else springs
                add_springs(self._draft, name, rows, mesh.vertices, pairs, ke=spring_ke, kd=spring_kd, rest=None,
                            actuation=False, prefix="spring_")  # fmt: skip
            add_cloth(self._draft, name, rows, mesh, masses=masses, stretch=stretch, shear=shear, damping=damping,
                      lift=lift, drag=drag, bend=bend, bend_damping=bend_damping, rest_angle=rest_angle,
                      actuation=0.0 if isinstance(actuation, bool) else actuation)  # fmt: skip
        return self

    def _placed(self, name: str, points: ArrayLike, vel: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        self._new(name)
        x = shaped(f"{name}: points", points, (None, 3))
        if not len(x):
            raise ValueError(f"{name}: there are no points")
        v = np.array(vel, np.float64)
        if v.shape not in ((3,), x.shape):
            raise ValueError(f"{name}: vel has shape {v.shape}; expected (3,) or {x.shape}")
        return x, v


def spring_grid(size: tuple[float, float], cells: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Points and springs of a rectangular cloth in the plane z = 0, from (0, 0, 0) to (*size, 0).

    Particle (i, j) has index j (cells[0] + 1) + i. Springs run along the edges of the cells (stretch) and along both
    of their diagonals (shear).
    """
    nx, ny = cells[0] + 1, cells[1] + 1
    if nx < 2 or ny < 2:
        raise ValueError(f"a grid has at least one cell in each direction, not {cells}")
    xs, ys = np.meshgrid(np.linspace(0, size[0], nx), np.linspace(0, size[1], ny))
    points = np.stack([xs, ys, np.zeros_like(xs)], axis=-1).reshape(-1, 3)
    index = np.arange(nx * ny).reshape(ny, nx)
    ends = [
        (index[:, :-1], index[:, 1:]),
        (index[:-1, :], index[1:, :]),
        (index[:-1, :-1], index[1:, 1:]),
        (index[:-1, 1:], index[1:, :-1]),
    ]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends])
    return points, pairs.astype(np.int32)


def _mesh(name: str, given: Any, kind: type[T], cells: str) -> T:
    """A mesh, or one of vertices and cells."""
    if isinstance(given, kind):
        return given
    if not (isinstance(given, (tuple, list)) and len(given) == 2):
        raise TypeError(
            f"{name}: mesh is a ph.{kind.__name__}, such as ph.{kind.__name__}.load(path), or its vertices and "
            f"{cells}, not {type(given).__name__}"
        )
    with about(name):
        return kind(*given)


def _moved(points: NDArray[np.float64], pos: ArrayLike, rot: ArrayLike | None) -> NDArray[np.float64]:
    turned = points if rot is None else points @ rotation_matrix(rot).T
    return turned + shaped("pos", pos, (3,))
