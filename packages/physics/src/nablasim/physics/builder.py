"""`Scene`: collects named objects, and says what is wrong with them before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nablasim.physics.checks import indices, nearest, shaped
from nablasim.physics.kernels.bodies import HELD
from nablasim.physics.layout import Draft, Layout, Rows, finish
from nablasim.physics.materials import NeoHookean
from nablasim.physics.mesh import TetMesh, TriMesh
from nablasim.physics.model import Model
from nablasim.physics.rotation import rotation_matrix
from nablasim.physics.solids import Geometry, solid
from nablasim.physics.systems import in_use
from nablasim.physics.systems.adding_bodies import Four, add_body, add_obstacle
from nablasim.physics.systems.bodies import MOTION
from nablasim.physics.systems.body_contacts import Law, add_contacts
from nablasim.physics.systems.body_loads import add_body_load
from nablasim.physics.systems.cloth import add_cloth, add_wind
from nablasim.physics.systems.loads import add_load
from nablasim.physics.systems.particles import FREE, add_particles
from nablasim.physics.systems.planes import add_plane
from nablasim.physics.systems.self_contact import add_self_contact
from nablasim.physics.systems.springs import add_springs
from nablasim.physics.systems.tets import add_tets

Where = Callable[[NDArray[np.float64]], ArrayLike] | ArrayLike


class Scene:
    """A scene in SI units, y up. Add objects by name, then `build` a model of it."""

    def __init__(self, gravity: ArrayLike = (0.0, -9.81, 0.0)) -> None:
        self._gravity = shaped("gravity", gravity, (3,))
        self._draft = Draft()
        self._late: dict[str, Callable[[Draft], None]] = {
            "wind": partial(add_wind, velocity=(0.0, 0.0, 0.0), asked=False)
        }
        self._fixed: list[NDArray[np.int64]] = []
        self._held: list[int] = []
        self._laws: dict[str, Law] = {}
        self.set_contact()

    # -- objects of particles
    def add_particles(
        self, name: str, points: ArrayLike, *, mass: ArrayLike, vel: ArrayLike = (0.0, 0.0, 0.0)
    ) -> Scene:
        """Point masses that are joined to nothing. `mass` (kg) is of each; `vel` (m/s) of all, or of each."""
        x, v = self._placed(name, points, vel)
        add_particles(self._draft, name, "particles", x, v, mass, self._gravity)
        return self

    def add_springs(
        self,
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
    ) -> Scene:
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
        self,
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
    ) -> Scene:
        """A deformable solid: `mesh` is a `TetMesh`, or its vertices and tetrahedra.

        density: kg/m³, one value or one per tetrahedron; or mass: of each vertex (kg).
        damping: of the strain rate (Pa s): a solid that moves or turns as a whole is not braked.
        activation: True makes "name.activation" a parameter, per tetrahedron; positive contracts.
        pos, rot: where the mesh is put, rotated by the quaternion (x, y, z, w) first; vel: m/s, of all or of each.
        """
        mesh = mesh if isinstance(mesh, TetMesh) else TetMesh(*mesh)
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
        self,
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
    ) -> Scene:
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
        mesh = mesh if isinstance(mesh, TriMesh) else TriMesh(*mesh)
        masses = {"mass": mass, "density": density, "vertex_mass": vertex_mass}
        if sum(value is not None for value in masses.values()) != 1:
            raise ValueError(f"{name}: give one of mass (of all, kg), density (kg/m²) and vertex_mass (of each, kg)")
        x, v = self._placed(name, _moved(mesh.vertices, pos, rot), vel)
        with self._whole():
            rows = add_particles(self._draft, name, "cloth", x, v, None, self._gravity)
            if springs is not False:
                pairs = mesh.edges if springs is True else springs
                add_springs(self._draft, name, rows, mesh.vertices, pairs, ke=spring_ke, kd=spring_kd, rest=None,
                            actuation=False, prefix="spring_")  # fmt: skip
            add_cloth(self._draft, name, rows, mesh, masses=masses, stretch=stretch, shear=shear, damping=damping,
                      lift=lift, drag=drag, bend=bend, bend_damping=bend_damping, rest_angle=rest_angle,
                      actuation=0.0 if isinstance(actuation, bool) else actuation)  # fmt: skip
        return self

    # -- bodies
    def add_rigid(
        self,
        name: str,
        shape: Geometry,
        *,
        density: float | None = None,
        mass: float | None = None,
        inertia: ArrayLike | None = None,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        vel: ArrayLike = (0.0, 0.0, 0.0),
        omega: ArrayLike = (0.0, 0.0, 0.0),
        scale: ArrayLike = 1.0,
        ke: float | None = None,
        kd: float | None = None,
        kf: float | None = None,
        mu: float | None = None,
    ) -> Scene:
        """A rigid body: a shape, a closed surface, or its vertices and faces, solid and of uniform density.

        density (kg/m³) or mass (kg); the centre of mass and the inertia follow from the shape.
        inertia: about the centre of mass, in the body's frame (kg m²), (3, 3) or its diagonal, if it is another one.
        pos, rot: where the origin of the shape's frame is (m), and how the frame is turned, (x, y, z, w).
        vel, omega: the velocity of that origin (m/s) and the angular velocity (rad/s), in world axes.
        scale: makes the shape larger, by one number or one along each axis.
        ke, kd, kf, mu: what the body brings to its contacts. By default the things that it touches decide.
        """
        self._new(name)
        with self._whole():
            add_body(self._draft, name, solid(name, shape, scale), density=density, mass=mass, inertia=inertia, pos=pos,
                     rot=rot, vel=vel, omega=omega, contact=Four(ke, kd, kf, mu), gravity=self._gravity)  # fmt: skip
        return self

    def add_obstacle(
        self,
        name: str,
        shape: Geometry,
        *,
        pos: ArrayLike = (0.0, 0.0, 0.0),
        rot: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        vel: ArrayLike = (0.0, 0.0, 0.0),
        omega: ArrayLike = (0.0, 0.0, 0.0),
        scale: ArrayLike = 1.0,
        ke: float = 1e4,
        kd: float = 1e2,
        kf: float = 1e2,
        mu: float = 0.5,
        damping: str = "smooth",
        touch: float = 5e-3,
        smoothing: float = 0.0,
    ) -> Scene:
        """Something that things bump into, and that nothing moves: a shape, a closed mesh, a `ph.SignedDistance`.

        vel, omega: it moves with these velocities all the time, as a conveyor or a turning drum does.
        The rest is as of `add_rigid` and `add_plane`.
        """
        self._new(name)
        law = Law(damping, touch, smoothing).check(name)
        with self._whole():
            add_obstacle(self._draft, name, solid(name, shape, scale), pos=pos, rot=rot, vel=vel, omega=omega,
                         contact=Four(ke, kd, kf, mu))  # fmt: skip
        self._laws[name] = law
        return self

    # -- what they meet
    def set_contact(
        self,
        *,
        ke: float | None = None,
        kd: float | None = None,
        kf: float | None = None,
        mu: float = 0.5,
        rate: float = 300.0,
        ratio: float = 0.1,
        damping: str = "smooth",
        touch: float = 5e-3,
        smoothing: float = 0.0,
    ) -> Scene:
        """Contact between bodies, and between bodies and particles, where they have no numbers of their own.

        ke, kd, kf, mu, damping, touch, smoothing: as of `add_plane`.
        rate, ratio: where ke, kd or kf is not given, it is chosen by the reduced mass m of the two that touch, so that
        they swing with this rate (1/s) and part of the critical damping: m rate², 2 ratio m rate, m rate.
        The parameters are "contact.ke", "contact.rate" and so on: those that something depends on.
        """
        numbers = {"ke": ke, "kd": kd, "kf": kf, "mu": mu, "rate": rate, "ratio": ratio}
        add = partial(add_contacts, numbers=numbers, law=Law(damping, touch, smoothing), laws=self._laws)
        add(Draft())  # Wrong values are refused here, not when it is built.
        self._late["contact"] = add
        return self

    def add_ground(
        self,
        name: str = "ground",
        *,
        height: float = 0.0,
        ke: float = 1e4,
        kd: float = 1e2,
        kf: float = 1e2,
        mu: float = 0.5,
        damping: str = "smooth",
        touch: float = 5e-3,
        smoothing: float = 0.0,
    ) -> Scene:
        """Ground that pushes things up: the half-space y < height. See `add_plane`."""
        return self.add_plane(name, normal=(0.0, 1.0, 0.0), offset=height, ke=ke, kd=kd, kf=kf, mu=mu, damping=damping,
                              touch=touch, smoothing=smoothing)  # fmt: skip

    def add_plane(
        self,
        name: str,
        *,
        normal: ArrayLike,
        offset: float = 0.0,
        ke: float = 1e4,
        kd: float = 1e2,
        kf: float = 1e2,
        mu: float = 0.5,
        damping: str = "smooth",
        touch: float = 5e-3,
        smoothing: float = 0.0,
    ) -> Scene:
        """A half-space normal·x < offset that pushes things out, and rubs.

        ke, kd: stiffness (N/m) and damping (N s/m) of the contact of one particle, or of one point of a body.
        damping: "smooth", which grows with the penetration and is kd beyond the length `touch` (m), or "linear", kd
        while approaching.
        kf, mu: friction is min(mu · normal force, kf · slip velocity).
        smoothing: a length (m) over which kinks are rounded, for methods that need a continuous slope; 0 is exact.
        """
        self._new(name)
        add = partial(add_plane, name=name, normal=normal, offset=offset, ke=ke, kd=kd, kf=kf, mu=mu, damping=damping,
                      touch=touch, smoothing=smoothing)  # fmt: skip
        add(Draft())  # Wrong values are refused here, not when it is built.
        self._late[name] = add
        return self

    def add_self_contact(
        self,
        name: str,
        *,
        thickness: float | None = None,
        ke: float = 1e2,
        kd: float = 1e-2,
        kf: float = 1e-2,
        mu: float = 0.3,
        damping: str = "smooth",
        touch: float | None = None,
        smoothing: float = 0.0,
    ) -> Scene:
        """Let a cloth touch itself, and other cloth that was given to this method.

        thickness (m): distance between a vertex and a triangle at which they begin to touch, half of the shortest edge
            unless told otherwise; between two cloths the mean of theirs. What is closer at rest does not touch.
        ke, kd, kf, mu, damping, smoothing: as of `add_plane`, of one vertex and one triangle; touch: thickness / 5.
        They are the parameters "name.thickness", "name.self_ke", "name.self_kd", "name.self_kf" and "name.self_mu".
        """
        thing = self._draft.things.get(name)
        if thing is None or "triangles" not in thing.rows:
            known = [t.name for t in self._draft.things.values() if "triangles" in t.rows]
            raise KeyError(f"add_self_contact: there is no cloth {name!r}: {nearest(name, known)}")
        if "touch_vertices" in thing.rows:
            raise ValueError(f"add_self_contact: {name!r} touches itself already")
        rest = self._draft.parameters[f"{name}.rest"].value
        mesh = TriMesh(rest, self._draft.surfaces[name].faces)
        with self._whole():
            add_self_contact(self._draft, name, thing.rows["particles"], mesh, thickness=thickness, ke=ke, kd=kd,
                             kf=kf, mu=mu, damping=damping, touch=touch, smoothing=smoothing)  # fmt: skip
        return self

    # -- what acts on them
    def add_force(
        self,
        name: str,
        force: ArrayLike,
        *,
        at: ArrayLike | None = None,
        where: Where | None = None,
        t: tuple[float, float] = (0.0, float("inf")),
    ) -> Scene:
        """A force (N) on an object from time t[0] to t[1] (s), in world axes.

        at: where it acts on a rigid body: a point of the body's frame, moving with it; by default the centre of mass.
        where: which particles of another object share it equally, as in `fix`; by default all.
        It is the parameter "name.force" ("name.force2" ... for further ones), and can vary in time by `control`.
        """
        return self._add_load(name, "force", force, at, where, start=t[0], stop=t[1])

    def add_impulse(
        self, name: str, impulse: ArrayLike, *, at: ArrayLike | None = None, where: Where | None = None, t: float = 0.0
    ) -> Scene:
        """An impulse (N s) on an object in the step in which time t (s) lies. See `add_force`.

        It is the parameter "name.impulse" ("name.impulse2" ... for further ones).
        """
        return self._add_load(name, "impulse", impulse, at, where, start=t, stop=float("inf"))

    def add_wind(self, velocity: ArrayLike) -> Scene:
        """The velocity of the air (m/s), which pushes cloth by its lift and drag.

        It is the parameter "wind", and can vary in time by `control`. Without this the air is at rest.
        """
        add = partial(add_wind, velocity=velocity, asked=True)
        add_wind(Draft(), velocity=velocity, asked=False)
        self._late["wind"] = add
        return self

    def add_torque(self, name: str, torque: ArrayLike, *, t: tuple[float, float] = (0.0, float("inf"))) -> Scene:
        """A torque (N m) on a rigid body from time t[0] to t[1] (s), in world axes: the parameter "name.torque"."""
        return self._add_load(name, "torque", torque, None, None, start=t[0], stop=t[1])

    def _add_load(
        self, name: str, what: str, value: ArrayLike, at: ArrayLike | None, where: Where | None, **times: float
    ) -> Scene:
        count = 1
        while f"{name}.{what}{count if count > 1 else ''}" in self._draft.parameters:
            count += 1
        parameter = f"{name}.{what}{count if count > 1 else ''}"
        body = self._body(name)
        with self._whole():
            if body is not None:
                if where is not None:
                    raise ValueError(f"{parameter}: `where` chooses particles, and {name!r} is a rigid body; use `at`")
                add_body_load(self._draft, parameter, body, what, value, at=at, **times)
            elif at is not None or what == "torque":
                raise ValueError(f"{parameter}: {name!r} is not a rigid body; forces on its particles use `where`")
            else:
                chosen = self._chosen(name, where, what)
                add_load(self._draft, parameter, chosen, value, impulse=what == "impulse", **times)
        return self

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

    def _body(self, name: str) -> Rows | None:
        thing = self._draft.things.get(name)
        return None if thing is None else thing.rows.get("bodies")

    def _chosen(self, name: str, where: Where | None, what: str) -> NDArray[np.int64]:
        """The rows of particles of an object."""
        thing = self._draft.things.get(name)
        if thing is None or "particles" not in thing.rows:
            known = [t.name for t in self._draft.things.values() if "particles" in t.rows]
            raise KeyError(f"{what}: there is no object {name!r} with particles: {nearest(name, known)}")
        rows = thing.rows["particles"]
        x = self._draft.parameters[f"{name}.x"].value
        chosen = np.arange(rows.count) if where is None else np.asarray(where(x) if callable(where) else where)
        if chosen.dtype == bool:
            if chosen.shape != (rows.count,):
                raise ValueError(f"{what} {name!r}: the mask has shape {chosen.shape}; expected ({rows.count},)")
            chosen = np.flatnonzero(chosen)
        if not chosen.size:
            raise ValueError(f"{what} {name!r}: `where` chooses none of its {rows.count} particles")
        picked = indices(f"{what} {name!r}", chosen.reshape(-1, 1), 1, rows.count, "particle").ravel()
        return rows.start + np.unique(picked).astype(np.int64)

    # -- done
    def build(self, real: str = "float32", batch: int | None = None) -> Model:
        """The model of what has been added so far. `batch`: of so many copies of it, each with its own parameters."""
        if real not in ("float32", "float64"):
            raise ValueError(f'real is "float32" or "float64", not {real!r}')
        if not self._draft.things:
            raise ValueError("the scene is empty: add an object first, such as scene.add_particles(...)")
        if batch is not None and (not isinstance(batch, int) or batch < 1):
            raise ValueError(f"batch is how many copies there are, from 1 on, not {batch!r}")
        draft = _copy(self._draft)
        if self._held:
            motion = np.concatenate(draft.indices[MOTION.name])
            motion[self._held] = HELD
            draft.indices[MOTION.name] = [motion]
        for add in self._late.values():
            add(draft)
        if self._fixed:
            free = np.concatenate(draft.indices[FREE.name])
            free[np.concatenate(self._fixed)] = 0
            draft.indices[FREE.name] = [free]
        layout = finish(draft, in_use(draft.count))
        if batch is not None:
            layout = layout.batched(batch)
        return Model(layout, real, {name: p.value for name, p in layout.parameters.items()}, _not_in_force(layout))

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What is added inside is added whole, or not at all."""
        before = _copy(self._draft)
        try:
            yield
        except Exception:
            self._draft = before
            raise

    def _new(self, name: str) -> None:
        if not isinstance(name, str) or not name or "." in name or name in ("gravity", "wind"):
            raise ValueError(f'a name is a word without dots, and not "gravity" or "wind"; got {name!r}')
        if name in self._draft.things or name in self._late:
            raise ValueError(f"there is an object {name!r} already: names are given once")

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


def _not_in_force(layout: Layout) -> frozenset[str]:
    """Of quantities that exclude each other, the first ones that were added are in force."""
    first: dict[str, str] = {}
    for p in layout.parameters.values():
        if p.choice is not None and not p.dormant:
            first.setdefault(*p.choice)
    return frozenset(n for n, p in layout.parameters.items() if p.choice and first.get(p.choice[0]) != p.choice[1])


def _copy(draft: Draft) -> Draft:
    return Draft(dict(draft.count), {k: list(v) for k, v in draft.indices.items()}, list(draft.constants),
                 dict(draft.parameters), dict(draft.things), dict(draft.surfaces))  # fmt: skip


def _moved(points: NDArray[np.float64], pos: ArrayLike, rot: ArrayLike | None) -> NDArray[np.float64]:
    turned = points if rot is None else points @ rotation_matrix(rot).T
    return turned + shaped("pos", pos, (3,))
