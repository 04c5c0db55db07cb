"""From the entries of a scene file to a model, a camera and what is observed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.problem import Pictures
from nablasim.sysid.scenes.object_entries import (
    ClothEntry,
    FixedEntry,
    ObjectEntry,
    PendulumEntry,
    RigidEntry,
    RobotEntry,
    ShapeEntry,
    SoftEntry,
)
from nablasim.sysid.scenes.pendula import model_of, pictured
from nablasim.sysid.scenes.quantities import Range
from nablasim.sysid.scenes.reading import BadScene, Script
from nablasim.sysid.scenes.restitution import damping_of

DAMPING = 100.0
"""N s/m, of a floor that says nothing."""
STEPS = 960
"""A second, where the file says nothing."""
UNEVEN = 32
"""Steps in the shortest time between frames, where these are not evenly apart: a 64th of it is what times are off."""
SOFTNESS = 0.15
"""Pixels: the width of the edges of drawn silhouettes. Soft ones lie a little outside of the true ones, as faces in
front and behind add up; cameras do not do that."""
SAMPLES = 3
"""Along each side of a pixel: sharp edges need them."""
ALIKE = 9
"""Frames that count as one where objects are cut out of a video: an edge that is cut a little too far inside, or
drawn a little too far outside, is so in the next frames as well. Measured on compressed videos of a thrown block."""
ROUND: dict[str, Any] = {"sphere": ph.Sphere, "capsule": ph.Capsule, "cylinder": ph.Cylinder, "cone": ph.Cone}


class Stage:
    """What a scene file describes, ready to be simulated and drawn. `model` has the values of the file."""

    def __init__(self, script: Script):
        self.script, self.entries = script, script.entries

    @cached_property
    def model(self) -> Any:
        """A `ph.Model`, or a pendulum."""
        if self.entries.pendula:
            return model_of(self.script)
        scene = ph.Scene(gravity=self.entries.gravity)
        for name, entry in self.entries.objects.items():
            assert not isinstance(entry, PendulumEntry)  # they are by themselves, above
            try:
                self._add(scene, name, entry)
            except (ValueError, TypeError, OSError) as error:
                if isinstance(error, BadScene):
                    raise
                raise self.script.wrong(("objects", name), str(error).removeprefix(f"{name}: ")) from error
        if self.entries.floor is not None:
            floor = self.entries.floor
            if isinstance(floor.angle, Range):
                raise self.script.wrong(("floor", "angle"), "pixels need the slope: write one number, not a range")
            damping = DAMPING if floor.damping is None else floor.damping
            scene.add_plane("floor", normal=floor.up, offset=floor.height * floor.up[1], ke=floor.stiffness,
                            kd=damping, mu=floor.friction, kf=floor.slip_damping)  # fmt: skip
        for name, wall in self.entries.walls.items():
            normal, offset = wall.plane
            scene.add_plane(name, normal=normal, offset=offset, ke=wall.stiffness, kd=wall.damping, mu=wall.friction,
                            kf=wall.slip_damping)  # fmt: skip
        model = scene.build(real="float64")
        return model.replace(self._other_words(model))

    def _other_words(self, model: ph.Model) -> dict[str, Any]:
        """What the file gives in words that the scene does not take."""
        floor = self.entries.floor
        values: dict[str, Any] = {}
        for name, entry in self.entries.objects.items():
            if isinstance(entry, SoftEntry):
                values |= {f"{name}.E": entry.young, f"{name}.nu": entry.poisson}
        if floor is not None and floor.restitution is not None:
            (body,) = self.entries.rigid
            values["floor.kd"] = damping_of(floor.restitution, stiffness=floor.stiffness, mass=self.mass(body))
        return values

    # -- objects
    def _add(self, scene: ph.Scene, name: str, entry: ObjectEntry) -> None:
        rot = None if entry.rotation is None else ph.quat(entry.rotation.axis, np.deg2rad(entry.rotation.angle))
        place: dict[str, Any] = {"pos": entry.position, "vel": entry.velocity, **({} if rot is None else {"rot": rot})}
        if isinstance(entry, RigidEntry):
            density = self.density(name)
            scene.add_rigid(name, self._shape(name), density=density, omega=entry.spin, **place)
        elif isinstance(entry, SoftEntry):
            mesh = self._tets(name, entry)
            material = ph.NeoHookean(E=entry.young, nu=entry.poisson)
            scene.add_soft(name, mesh, density=entry.density, material=material, damping=entry.damping, **place)
            self._fix(scene, name, entry.fixed, mesh.vertices)
        elif isinstance(entry, ClothEntry):
            cloth = ph.TriMesh.grid(entry.size, entry.cells)
            scene.add_cloth(name, cloth, density=entry.density, stretch=entry.stretch, shear=entry.shear,
                            damping=entry.damping, bend=entry.bend, drag=entry.drag, **place)  # fmt: skip
            self._fix(scene, name, entry.fixed, cloth.vertices)
        elif isinstance(entry, RobotEntry):
            robot = ph.load_robot(self._file(("objects", name, "file"), entry.file), free=entry.free)
            turn = (0.0, 0.0, 0.0, 1.0) if rot is None else rot
            scene.add_robot(name, robot, pos=entry.position, rot=turn, q=entry.q, qd=entry.qd)
        for push in entry.pushes:
            if push.impulse is not None:
                scene.add_impulse(name, push.impulse, at=push.at, t=push.start)
            elif push.force is not None:
                stop = np.inf if push.stop is None else push.stop
                scene.add_force(name, push.force, at=push.at, t=(push.start, stop))

    def _fix(self, scene: ph.Scene, name: str, fixed: FixedEntry | None, points: Any) -> None:
        if fixed is None:
            return
        along = points[:, "xyz".index(fixed.axis)]
        held = np.zeros(len(along), bool)
        # A hair of room: the corners of a mesh are rounded.
        hair = 1e-9 * max(float(np.ptp(points)), 1e-9)
        if fixed.below is not None:
            held |= along <= fixed.below + hair
        if fixed.above is not None:
            held |= along >= fixed.above - hair
        if not held.any():
            raise self.script.wrong(("objects", name, "fixed"), f"no particle is there: {fixed.axis} goes from "
                                    f"{along.min():.4g} m to {along.max():.4g} m")  # fmt: skip
        scene.fix(name, where=held)

    def _shape(self, name: str) -> Any:
        thing = self.entries.objects[name]
        assert isinstance(thing, RigidEntry)
        entry = thing.shape
        file = None if entry.mesh is None else self._file(("objects", name, "shape", "mesh"), entry.mesh)
        try:
            return _simple(entry) if file is None else ph.TriMesh.load(file)
        except (ValueError, OSError) as error:
            raise self.script.wrong(("objects", name, "shape"), str(error)) from error

    def _tets(self, name: str, entry: SoftEntry) -> ph.TetMesh:
        if entry.mesh is not None:
            return ph.TetMesh.load(self._file(("objects", name, "mesh"), entry.mesh))
        assert entry.box is not None
        return ph.TetMesh.box(entry.box, entry.cells)

    def _file(self, place: tuple[str, ...], name: str) -> Any:
        path = self.script.folder / name
        if not path.is_file():
            raise self.script.wrong(place, f"there is no file {path}")
        return path

    def volume(self, name: str) -> float:
        """Of a rigid object (m³)."""
        shape = self._shape(name)
        return float(shape.volume if isinstance(shape, ph.Shape) else ph.solid_mass_properties(shape, 1.0).mass)

    def density(self, name: str) -> float:
        """Of a rigid object (kg/m³)."""
        entry = self.entries.objects[name]
        assert isinstance(entry, RigidEntry)
        if entry.density is not None:
            return float(entry.density)
        assert entry.mass is not None
        return float(entry.mass / self.volume(name))

    def mass(self, name: str) -> float:
        """Of a rigid object (kg)."""
        return self.density(name) * self.volume(name)

    # -- pictures
    @cached_property
    def camera(self) -> render.Camera:
        entry = self.entries.camera
        if entry.eye is None or entry.target is None or entry.open:
            raise self.script.wrong(("camera",), "pictures need a camera that is known: give eye, target and fov")
        assert not isinstance(entry.fov, Range)
        return render.Camera.look_at(entry.eye, entry.target, entry.up, fov=entry.fov, scale=entry.scale)

    def observe(self, *, softness: float = SOFTNESS, samples: int = SAMPLES) -> Pictures:
        """What is seen of the model: its silhouette, or its colours."""
        if self.entries.video.compare == "silhouette":
            silhouette = render.Silhouette(self.camera, sigma_pixels=softness, sampling=samples, near=self.near)
            hung = pictured(self.script) if self.entries.pendula else {}
            return Pictures(silhouette, alike=ALIKE, **hung)
        if self.entries.pendula:
            raise self.script.wrong(("video", "compare"), "pendula are seen as silhouettes: leave `compare` out")
        light = self.entries.light
        lights: list[Any] = [render.Ambient(light.ambient), render.Directional(light.direction, color=light.sun)]
        objects = self.entries.objects
        colors: list[Any] = [np.tile(np.array(objects[n].color), (self._corners(n), 1)) for n in self.model.surfaces]
        renderer = render.Renderer(self.camera, lights, sigma_pixels=softness, sampling=samples, smooth=False,
                                   background=np.array(light.background), near=self.near)  # fmt: skip
        return Pictures(renderer, paint={"colors": np.concatenate(colors)})

    @property
    def near(self) -> float:
        """What is nearer to the camera than a hundredth of its distance is not drawn."""
        eye, target = self.entries.camera.eye or (0.0, 0.0, 1.0), self.entries.camera.target or (0.0, 0.0, 0.0)
        return 0.01 * float(np.linalg.norm(np.subtract(eye, target)))

    def _corners(self, name: str) -> int:
        surface = self.model.surfaces[name]
        return len(self.model[f"{name}.x"]) if surface.points is None else len(surface.points)

    def time_step(self, fps: float) -> float:
        """The step of the simulation: the file's, or about 1/960 s, a whole number of them per frame."""
        dt = self.entries.time_step
        steps = max(1, round(STEPS / fps if dt is None else 1 / (fps * dt)))
        fitting = 1 / fps / steps
        if dt is not None and abs(fitting / dt - 1) > 1e-4:
            raise self.script.wrong(
                ("time_step",),
                f"a frame of {fps:.6g} fps lasts {1 / fps:.6g} s, which is not a whole number of steps of {dt:.6g} s: "
                f"write `time_step: 1/{fps * steps:.6g} s`, {steps} steps for each frame",
            )
        return fitting

    def uneven_step(self, shortest: float) -> float:
        """The step of the simulation for frames that are not evenly apart, and come at the nearest step."""
        dt, finest = self.entries.time_step, shortest / UNEVEN
        if dt is None:
            return min(1 / STEPS, finest)
        if dt > finest * (1 + 1e-9):
            raise self.script.wrong(
                ("time_step",),
                f"frames are not evenly apart, {1e3 * shortest:.3g} ms at least: steps of {dt:.6g} s are too coarse "
                f"for them; write `time_step: {1e3 * finest:.2g} ms` or less, or leave it out",
            )
        return dt


def _simple(entry: ShapeEntry) -> ph.Shape:
    """A shape that is given by its sizes."""
    if entry.box is not None:
        x, y, z = entry.box
        if isinstance(x, Range):
            raise ValueError("pixels need its size: write one number instead of a range")
        return ph.Box(x, y, z)
    for kind, make in ROUND.items():
        sizes = getattr(entry, kind)
        if isinstance(sizes, Range):
            raise ValueError("pixels need its size: write its radius as one number")
        if sizes is not None:
            return make(*np.atleast_1d(sizes).tolist())
    raise ValueError("it has no sizes")
