"""What goes into one call of a renderer: checked, in one precision, with a row for each frame or for all.

The values are tensors, for a call that is an operation of autograd, or arrays of kernelc, for one on a tape.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import kernelc as kc
from nablasim.render.camera import Camera
from nablasim.render.checks import (
    NO_UVS,
    backdrop,
    check_faces,
    check_objects,
    check_paint,
    check_shape,
    check_texture,
    check_uvs,
    check_which,
    is_several,
)
from nablasim.render.either import below, check_no_mask, concatenated, is_mapped, is_tensor, numbers
from nablasim.render.kernels.bands import copy_points
from nablasim.render.lights import Light, Material, pack

KcArray = type(kc.zeros(1))


@dataclass
class Inputs:
    """Named values, and what is known about them before anything is drawn."""

    names: list[str]
    values: list[Any]
    frames: int
    faces: int
    is_batch: bool
    on_tape: bool
    perspective: bool
    moved_perspective: bool
    clips: bool
    """Whether something may be nearer than the near plane, or beyond the far one."""
    lit: bool
    shines: bool
    harmonics: bool
    objects: Any
    repeats: tuple[bool, ...]
    """Of each texture."""
    mixed: bool
    """Whether there are textures, and faces without one."""
    directions: int
    """How many of the lamps are directions."""

    @property
    def shape_key(self) -> tuple[Any, ...]:
        """What decides about kernels beside names and shapes."""
        return (
            self.frames, self.faces, self.is_batch, self.perspective, self.moved_perspective, self.clips, self.lit,
            self.shines, self.harmonics, self.objects.tobytes() if self.objects.any() else None, self.repeats,
            self.mixed, self.directions,
        )  # fmt: skip


def gather(
    mesh: Mapping[str, Any], camera: Camera, size: tuple[int, int], *, near: float, far: float, warns: bool,
    lights: Sequence[Light] | None, material: Material, shines: bool, background: Any, moved: Any,
    moved_camera: Camera | None, wrap: str,
) -> Inputs:  # fmt: skip
    """Check everything, and bring it into the shapes that the kernels read. With `warns`, faces that are lost because
    they are nearer than `near` are named."""
    vertices = mesh["vertices"]
    on_tape = is_array(vertices) or (isinstance(vertices, (list, tuple)) and any(map(is_array, vertices)))
    make = _Arrays(vertices) if on_tape else _Tensors(vertices)
    found: dict[str, Any] = {"vertices": make.points("vertices", vertices)}
    count = found["vertices"].shape[1]
    if count == 0:
        raise ValueError("there are no vertices: a mesh has at least one, even if it has no faces")
    face_count = check_faces("faces", _numpy(mesh["faces"]), count, "vertices")
    # Kernels look up a face also for slots that hold none, so there is always one to look up.
    found["faces"] = make.whole(mesh["faces"] if face_count else np.zeros((1, 3), np.int32))
    _add_paint(found, mesh, make, count, face_count)
    repeats, mixed, materials = _add_textures(found, mesh, make, (count, face_count), wrap, material)
    found |= {"pose": make.real(pose_of(camera)), "lens": make.real(lens_of(camera, size))}
    behind = backdrop(background, size)
    found["background"] = make.real(behind)
    packed = pack(lights, materials, shines=shines) if lights is not None else None
    if packed is not None:
        found |= {n: make.real(getattr(packed, n)) for n in ("sky", "material", "lights")}
    other = moved_camera or camera
    if moved is not None:
        found["moved"] = make.points("moved", moved)
        if found["moved"].shape[1] != count:
            raise ValueError(f"moved has {found['moved'].shape[1]} vertices, but there are {count}")
        found |= {"moved_pose": make.real(pose_of(other)), "moved_lens": make.real(lens_of(other, size))}
    frames = _frames({n: v.shape[0] for n, v in found.items() if n not in ("faces", "uv_faces", "kinds")})
    is_batch = make.is_batch or camera.is_batch or frames > 1
    objects = np.zeros(max(face_count, 1), np.int32)
    if mesh.get("objects") is not None:
        check_objects(_numpy(mesh["objects"]), face_count)
        objects[:face_count] = _numpy(mesh["objects"])
    depth, mapped = _depths(found["vertices"], found["pose"]), is_mapped(found["vertices"]) or is_mapped(found["pose"])
    if warns and not mapped:
        _say_what_is_lost(depth, _numpy(found["faces"])[:face_count], objects, near)
    return Inputs(
        list(found), list(found.values()), frames, face_count, is_batch, on_tape, camera.perspective, other.perspective,
        on_tape or mapped or bool((depth < near + 1e-5 * abs(near)).any() or (depth > far - 1e-5 * abs(far)).any()),
        packed is not None, packed is not None and packed.shines, packed is not None and packed.harmonics, objects,
        repeats, mixed, packed.directions if packed is not None else 0,
    )  # fmt: skip


def _depths(vertices: Any, pose: Any) -> Any:
    """(frames, vertices): how far in front of the camera they are."""
    x, rows = _numpy(vertices), _numpy(pose)
    back, eye = rows[:, 6:9], rows[:, 9:12]
    return (eye * back).sum(1)[:, None] - (x @ back[:, :, None])[..., 0]


def _say_what_is_lost(depth: Any, faces: Any, objects: Any, near: float) -> None:
    """Warn about faces in front of the camera that are nearer than the near plane as a whole."""
    if not ((depth > 0) & (depth < near)).any():
        return
    corners = depth[:, faces]
    lost = ((corners < near).all(-1) & (corners > 0).any(-1)).any(0)
    if lost.any():
        which = np.flatnonzero(lost)
        nearest = corners[:, which].max(-1).min()
        warnings.warn(
            f"{len(which)} faces are cut off (the first is {which[0]}, of object {objects[which[0]]}): they are nearer "
            f"to the camera, {nearest:.3g}, than near={near:.3g}. Renderer(…, near={nearest / 10:.2g}) draws them",
            stacklevel=6,
        )


def _add_paint(found: dict[str, Any], mesh: Mapping[str, Any], make: Any, count: int, faces: int) -> None:
    """Colours, texture and normals, with a dimension for frames in front."""
    colors = mesh.get("colors")
    if colors is not None and np.shape(colors) == (3,):
        colors = colors.expand(count, 3) if is_tensor(colors) else np.broadcast_to(np.asarray(colors), (count, 3))
    for name, value, shape, why in (
        ("colors", colors, (count, 3), "one colour per vertex, or (3,) for all"),
        ("face_colors", mesh.get("face_colors"), (faces, 3), "one colour per face"),
        ("normals", mesh.get("normals"), (count, 3), "one normal per vertex"),
    ):
        if value is not None:
            check_paint(name, value)
            given = check_shape(name, _numpy(value), shape, why=why, batch=True)
            rows = _framed(make.real(value), given)
            found[name] = rows if rows.shape[1] else make.real(np.ones((1, 1, 3)))


def _add_textures(
    found: dict[str, Any], mesh: Mapping[str, Any], make: Any, counts: tuple[int, int], wrap: str, material: Material
) -> tuple[tuple[bool, ...], bool, list[Material]]:
    """Textures, where they lie on faces, and which texture and material each face has. Gives whether textures repeat,
    whether some faces have none, and all materials, that of faces without one first."""
    (count, faces), texture, uvs = counts, mesh.get("texture"), mesh.get("uvs")
    own = mesh.get("material")
    materials = [] if own is None else list(own) if isinstance(own, (list, tuple)) else [own]
    kinds = np.zeros((max(faces, 1), 2), np.int32)
    kinds[:faces, 1] = _which("material_index", mesh.get("material_index"), faces, len(materials)) + 1
    repeats: tuple[bool, ...] = ()
    if texture is not None:
        textures = list(texture) if is_several(texture) else [texture]
        check_texture([_numpy(t) for t in textures] if is_several(texture) else _numpy(texture))
        if uvs is None:
            raise ValueError(NO_UVS)
        uv_faces = mesh.get("uv_faces")
        given = check_uvs(_numpy(uvs), None if uv_faces is None else _numpy(uv_faces), count, faces, batch=True)
        for k, one in enumerate(textures):
            found[f"texture {k}"] = make.pictures(one)
        found["uvs"] = _framed(make.real(uvs), given)
        if uv_faces is not None:
            found["uv_faces"] = make.whole(uv_faces)
        kinds[:faces, 0] = _which("texture_index", mesh.get("texture_index"), faces, len(textures))
        ways = mesh.get("wrap")
        each = [ways] * len(textures) if ways is None or isinstance(ways, str) else list(ways)
        repeats = tuple((way or wrap) == "wrap" for way in each)
    found["kinds"] = make.whole(kinds)
    return repeats, bool(repeats) and bool((kinds[:faces, 0] < 0).any()), [material, *materials]


def _which(name: str, index: Any, faces: int, count: int) -> Any:
    """Which of so many things each face has: the first, if there are some and nothing is said."""
    if index is None:
        return np.full(faces, 0 if count else -1, np.int32)
    check_which(name, _numpy(index), faces, count)
    return _numpy(index)


def _framed(value: Any, numbers: tuple[int, ...]) -> Any:
    """With a dimension for frames in front of (things, numbers); an array of kernelc may hold vectors as its things."""
    return value if len(numbers) == 3 else value.reshape(1, *value.shape)


def _frames(rows: Mapping[str, int]) -> int:
    """How many frames there are: every input has a row for each, or one for all."""
    most = max(rows.values())
    for name, n in rows.items():
        if n not in (1, most):
            largest = next(k for k, v in rows.items() if v == most)
            raise ValueError(
                f"{name} has a batch of {n}, but {largest} one of {most}: they must agree, or be one for all"
            )
    return most


def pose_of(camera: Camera) -> Any:
    """(n, 12): the axes of each camera, then its position."""
    return _side_by_side((camera.rotation, 9), (camera.eye, 3))


def lens_of(camera: Camera, size: tuple[int, int]) -> Any:
    """(n, 11), one row where all cameras of a batch have the same."""
    return _side_by_side(*((number, 1) for number in (*camera.lens(size), *camera.bending)))


def _side_by_side(*parts: tuple[Any, int]) -> Any:
    """Values of so many numbers for each camera, or for all."""
    rows: list[Any] = [v.reshape(-1, k) if is_tensor(v) else np.asarray(v, float).reshape(-1, k) for v, k in parts]
    n = max(r.shape[0] for r in rows)
    return concatenated([r if r.shape[0] == n else r.repeat(n, 1) if is_tensor(r) else r.repeat(n, 0) for r in rows], 1)


# -- tensors, or arrays of kernelc
def is_array(value: Any) -> bool:
    return isinstance(value, KcArray)


def _numpy(value: Any) -> Any:
    if is_tensor(value):
        return numbers(below(value))
    return value.numpy() if is_array(value) else np.asarray(value)


class _Tensors:
    """Values as tensors, in the precision of the vertices."""

    def __init__(self, vertices: Any):
        if isinstance(vertices, (list, tuple)) and any(is_tensor(v) for v in vertices):
            vertices = torch.stack([torch.as_tensor(v) for v in vertices])
        self.vertices = vertices if is_tensor(vertices) else torch.from_numpy(_floats(vertices))
        if self.vertices.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"vertices are float32 or float64, not {self.vertices.dtype}: convert them, .float()")
        if self.vertices.device.type != "cpu":
            raise TypeError(f"vertices are on {self.vertices.device}, but pictures are drawn on the CPU: .cpu()")
        self.is_batch = self.vertices.ndim == 3

    def points(self, name: str, value: Any) -> Any:
        value = self.vertices if name == "vertices" else self.real(value)
        self.is_batch = self.is_batch or value.ndim == 3
        return _framed(value, check_shape(name, value, (None, 3), batch=True))

    def real(self, value: Any) -> Any:
        if is_array(value):
            raise TypeError(
                "arrays of kernelc and tensors cannot be mixed in one picture: pass vertices of the same kind"
            )
        if is_tensor(value):
            return value.to(self.vertices)
        check_no_mask(value)
        return torch.from_numpy(np.array(value, dtype=_numpy(self.vertices[:0]).dtype))

    def pictures(self, value: Any) -> Any:
        value = self.real(value)
        return value if value.ndim == 4 else value[None]

    def whole(self, value: Any) -> Any:
        check_no_mask(value)
        return (value if is_tensor(value) else torch.from_numpy(np.array(value))).to(torch.int32)


class _Arrays:
    """Values as arrays of kernelc, in the precision of the vertices."""

    def __init__(self, vertices: Any):
        first = next(v for v in vertices if is_array(v)) if isinstance(vertices, (list, tuple)) else vertices
        self.dtype = first.numpy().dtype
        self.precision = kc.float64 if self.dtype == np.float64 else kc.float32
        self.is_batch = isinstance(vertices, (list, tuple)) or first.numpy().ndim == 3

    def points(self, name: str, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return self.stacked(name, value)
        array = value if is_array(value) else self.real(value)
        return _framed(array, check_shape(name, array.numpy(), (None, 3), batch=True))

    def stacked(self, name: str, states: Sequence[Any]) -> Any:
        """Vertices of several states as one array, on the tape."""
        shapes = {check_shape(name, v.numpy(), (None, 3)) for v in states}
        if len(shapes) != 1:
            raise ValueError(f"{name} of one batch have different shapes: {sorted(shapes)}")
        made = kc.empty((len(states), shapes.pop()[0]), dtype=kc.float3, real=self.precision)
        for b, state in enumerate(states):
            kc.launch(copy_points, made.shape[1], [state], [made[b]])
        return made

    def real(self, value: Any) -> Any:
        if is_array(value):
            return value
        if is_tensor(value):
            value = kc.array(value).numpy()  # refuses one whose gradient would be lost
        check_no_mask(value)
        return kc.array(np.array(value, dtype=self.dtype))

    def pictures(self, value: Any) -> Any:
        array = self.real(value)
        shape = array.numpy().shape
        return array.reals().reshape(*(shape if len(shape) == 4 else (1, *shape)))

    def whole(self, value: Any) -> Any:
        check_no_mask(value)
        return value if is_array(value) else kc.array(_numpy(value).astype(np.int32))


def _floats(value: Any) -> Any:
    check_no_mask(value)
    array = np.array(value)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64 if array.size else np.float32)
