"""`Renderer`: from meshes, a camera and lights to pictures, as a module of torch or on a tape of kernelc.

With tensors, a call is one operation of autograd. With arrays of kernelc, its launches are recorded on the open tape
between those of the physics and of the loss, and replayed with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import kernelc as kc
from nablasim.render import pictures, recordings
from nablasim.render.camera import Camera
from nablasim.render.checks import check_choice, check_number, check_size
from nablasim.render.inputs import Inputs, gather
from nablasim.render.lights import Directional, Light, Material, check_lights
from nablasim.render.mesh import Mesh
from nablasim.render.raster import Screen, for_frames, lay_out, points_for_frames, precision, view_of
from nablasim.render.shadows import shadows_of
from nablasim.render.texels import lay_side_by_side

MODES = ("softras", "dibr", "hard")
OUTPUTS = ("rgba", "silhouette", "depth", "normals", "face", "object", "flow")
SHADINGS = ("color", "lambert", "phong")
NEAR, FAR = 1.0, 100.0
"""SoftRas' own planes, between which its z falls from 1 to 0."""
SHADOW_WIDTH = 0.02
"""Of the edges of soft shadows: a fixed length, as all of this, so that no picture changes when something moves."""
CLOSEST = 0.1
"""Where faces are cut off, unless told otherwise: a fixed place, so that no picture jumps when something moves. Not
closer: faces that pass beside the camera are wider on the screen by as much, and float32 loses as many digits."""
HUGE = 1e30
"""Numbers behind the settings stay below this, which a float32 holds: sharper or softer than that is nothing to see."""


class Renderer(torch.nn.Module):
    """A differentiable renderer for triangle meshes.

    camera: a `Camera`, or a batch of them
    lights: a list of lights; without any, colours are shown as they are
    mode: "softras" (soft everywhere), "dibr" (soft outside, sharp inside) or "hard" (a z-buffer)
    size: (height, width) in pixels
    shading: "color", "lambert" or "phong"; "lambert" if there are lights
    material: of all surfaces; ks and shininess count for "phong"
    smooth: interpolate normals of vertices, given or not, instead of one normal per face
    sigma: how soft edges are (SoftRas), in NDC squared; sigma_pixels: the same as a length in pixels, for all modes
    gamma, eps: how nearer faces hide others, and what the background weighs (SoftRas)
    near, far: what is nearer or farther is cut off, in every mode; SoftRas' weights fall from one to the other.
        By default these weights begin at 1, and faces are cut off at 0.1, with a warning where some are lost
    composite: faces over the background by alpha, instead of the background as one more face (SoftRas)
    sigmainv: how fast DIB-R's mask falls off, in NDC
    cull: only faces that are counter-clockwise on the screen are seen ("dibr": always)
    sampling: samples along each side of a pixel
    wrap: what lies outside of a texture: "clamp" (its border) or "wrap" (it repeats)
    background: a colour, or a picture of this size; either may be one for each frame
    shadows: directional lights cast shadows. They fade beyond their edge over `shadow_width`, in units of the world,
        so that edges have a gradient; 0 makes them sharp, without one, which is what "hard" pictures have by default
    shadow_bias: how far in front of a point something must be to take light from it, in units of the world
    two_sided: backs of faces are lit as if they were fronts, and DIB-R shows them
    mipmaps: what is far away shows smaller copies of textures, so that fine patterns do not flicker
    """

    def __init__(
        self,
        camera: Camera,
        lights: Sequence[Light] | None = None,
        *,
        mode: str = "softras",
        size: tuple[int, int] = (128, 128),
        shading: str | None = None,
        material: Material | None = None,
        smooth: bool = True,
        background: Any = 0.0,
        sigma: float = 1e-4,
        sigma_pixels: float | None = None,
        gamma: float = 1e-4,
        eps: float = 1e-3,
        near: float | None = None,
        far: float = FAR,
        composite: bool = False,
        sigmainv: float = 7000.0,
        cull: bool = False,
        sampling: int = 1,
        wrap: str = "clamp",
        shadows: bool = False,
        shadow_width: float | None = None,
        shadow_bias: float = 0.01,
        two_sided: bool = False,
        mipmaps: bool = False,
    ):
        super().__init__()
        self.camera, self.lights, self.mode, self.size = camera, lights, mode, size
        self.shading, self.material, self.smooth, self.background = shading, material or Material(), smooth, background
        self.sigma, self.sigma_pixels, self.gamma, self.eps = sigma, sigma_pixels, gamma, eps
        self.near, self.far, self.composite, self.sigmainv = near, far, composite, sigmainv
        self.cull, self.sampling, self.wrap = cull, sampling, wrap
        self.shadows, self.shadow_width, self.shadow_bias = shadows, shadow_width, shadow_bias
        self.two_sided, self.mipmaps = two_sided, mipmaps
        self.check()

    def check(self) -> None:
        """Say which setting cannot be."""
        check_choice("mode", self.mode, MODES)
        check_choice("wrap", self.wrap, ("clamp", "wrap"))
        if self.shading is not None:
            check_choice("shading", self.shading, SHADINGS)
        check_lights(self.lights, self.material)
        if self.shading in ("lambert", "phong") and not self.lights:
            raise ValueError(f"shading={self.shading!r} needs lights: Renderer(camera, [render.Ambient(0.4), …])")
        self.size = check_size(self.size)
        for name in ("sigma", "gamma", "sigmainv"):
            check_number(name, getattr(self, name), positive=True)
        if self.sigma_pixels is not None:
            check_number("sigma_pixels", self.sigma_pixels, positive=True)
        check_number("shadow_bias", self.shadow_bias, positive=True)
        if self.shadow_width is not None and not check_number("shadow_width", self.shadow_width) >= 0:
            raise ValueError(f"shadow_width is a length, or 0 for sharp shadows, not {self.shadow_width!r}")
        if self.shadows and not any(isinstance(light, Directional) for light in self.lights or ()):
            raise ValueError("shadows are those of a directional light, and there is none: "
                             "lights=[render.Ambient(0.3), render.Directional(to_light=(1, 2, 1))]")  # fmt: skip
        for name in ("eps", "far") if self.near is None else ("eps", "near", "far"):
            check_number(name, getattr(self, name))
        if not isinstance(self.sampling, int) or self.sampling < 1:
            raise ValueError(f"sampling is a whole number of samples along a pixel, not {self.sampling!r}")
        _check_camera(self.camera)
        if not self.closest < self.far or (self.camera.perspective and not self.closest > 0):
            raise ValueError(
                f"near must be above zero and below far, not near={self.near}, far={self.far}: a perspective camera "
                "sees nothing at its own place"
            )

    @property
    def closest(self) -> float:
        """Where faces are cut off: at `near`; by default close to the camera."""
        return CLOSEST * min(1.0, float(self.far)) if self.near is None else float(self.near)

    @property
    def first(self) -> float:
        """Where SoftRas' z is 1: at `near`; by default the paper's, if that is in front of `far`."""
        return (NEAR if self.far > NEAR else self.closest) if self.near is None else float(self.near)

    def forward(
        self,
        vertices: Any,
        faces: Any = None,
        *,
        colors: Any = None,
        face_colors: Any = None,
        uvs: Any = None,
        uv_faces: Any = None,
        texture: Any = None,
        normals: Any = None,
        objects: Any = None,
        texture_index: Any = None,
        material: Any = None,
        material_index: Any = None,
        output: str | Sequence[str] = "rgba",
        camera: Camera | None = None,
        size: tuple[int, int] | None = None,
        moved: Any = None,
        moved_camera: Camera | None = None,
    ) -> Any:
        """Draw a mesh: RGBA as (height, width, 4), or (B, height, width, 4) where vertices or cameras are a batch.

        `vertices` is a `Mesh`, or vertices (n, 3) with `faces` (m, 3) and what is painted on them, as in `Mesh`.
        `output` names a picture, or several, which come in a dictionary: "rgba", "silhouette" (height, width); and of
        the nearest surface "depth" (far where there is none), "normals", "face" and "object" (numbers, -1 for none),
        "flow" (to the right and down, in pixels, if the vertices go to `moved`, seen by `moved_camera`).
        """
        given = {"faces": faces, "colors": colors, "face_colors": face_colors, "uvs": uvs, "uv_faces": uv_faces,
                 "texture": texture, "normals": normals, "objects": objects, "texture_index": texture_index,
                 "material": material, "material_index": material_index}  # fmt: skip
        call = self._read(vertices, given, output, camera, size, moved, moved_camera)
        results = self._draw(*call)
        return results[0] if isinstance(output, str) else dict(zip(call[1], results))

    def jvp(
        self, vertices: Any, faces: Any = None, *, tangents: Mapping[str, Any], output: str | Sequence[str] = "rgba",
        camera: Camera | None = None, size: tuple[int, int] | None = None, moved: Any = None,
        moved_camera: Camera | None = None, **mesh: Any,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Draw a mesh, and say how the picture moves where its inputs do: (picture, tangent).

        tangents: directions of inputs by name ("vertices", "colors", "texture" …), tensors in the shape of the input
            with k of them along an axis in front, which the tangents of pictures then have.

        For one direction of anything else, such as a camera, use torch's forward mode, `torch.autograd.forward_ad`.
        """
        inputs, names, size = self._read(vertices, {"faces": faces, **mesh}, output, camera, size, moved, moved_camera)
        ways = {}
        for name, way in tangents.items():
            if name not in inputs.names:
                raise ValueError(f"there is no input {name!r} that could move; there are {', '.join(inputs.names)}")
            value, way = inputs.values[inputs.names.index(name)], torch.as_tensor(way)
            if way.ndim == 0 or way[0].numel() != value.numel():
                shape = ", ".join(map(str, value.shape))
                raise ValueError(f"tangents of {name!r} have shape {tuple(way.shape)}; expected (k, {shape})")
            ways[name] = way.to(value.dtype).reshape(len(way), *value.shape)
        if not ways or len({len(way) for way in ways.values()}) > 1:
            raise ValueError("tangents are as many directions of one input or more, along an axis in front")
        results, found = self._draw(inputs, names, size, ways)
        if isinstance(output, str):
            return results[0], found[0]
        return dict(zip(names, results)), dict(zip(names, found))

    def _read(
        self, vertices: Any, given: Mapping[str, Any], output: str | Sequence[str], camera: Camera | None,
        size: tuple[int, int] | None, moved: Any, moved_camera: Camera | None,
    ) -> tuple[Inputs, list[str], tuple[int, int]]:  # fmt: skip
        """Check a call: what goes in, the names of the pictures, and their size."""
        self.check()
        names = [output] if isinstance(output, str) else list(output)
        for name in names or [""]:
            check_choice("output", name, OUTPUTS)
        size = self.size if size is None else check_size(size)
        for other in (camera, moved_camera):
            if other is not None:
                _check_camera(other)
        given = {k: v for k, v in given.items() if v is not None}
        if isinstance(vertices, Mesh):
            if given:
                raise TypeError(
                    f"a Mesh brings its own {', '.join(given)}: renderer(mesh.replace(…)) draws it with others"
                )
            mesh: Mapping[str, Any] = {k: v for k, v in vars(vertices).items() if v is not None}
        else:
            if "faces" not in given:
                raise TypeError("give vertices and faces, or a Mesh")
            mesh = {"vertices": vertices, **given}
        inputs = gather(
            mesh, camera or self.camera, size, near=self.closest, far=float(self.far), warns=self.near is None,
            lights=self.lights if self.is_lit else None, material=self.material, shines=self.shading == "phong",
            background=self.background, moved=self._moved(names, moved), moved_camera=moved_camera, wrap=self.wrap,
        )  # fmt: skip
        return inputs, names, size

    @property
    def is_lit(self) -> bool:
        return bool(self.lights) and self.shading != "color"

    @property
    def casts(self) -> bool:
        """Whether there are shadows in the picture."""
        return self.shadows and self.is_lit

    def _moved(self, names: Sequence[str], moved: Any) -> Any:
        if "flow" in names and moved is None:
            raise ValueError("flow needs the vertices of the other state: renderer(..., output='flow', moved=vertices)")
        return (moved.vertices if isinstance(moved, Mesh) else moved) if "flow" in names else None

    def _draw(
        self, inputs: Inputs, names: Sequence[str], size: tuple[int, int], ways: Mapping[str, Any] | None = None
    ) -> Any:
        """The pictures; where `ways` are given, how they move as well."""
        numbers = softness(self)

        def draw(arrays: dict[str, Any], numbers: dict[str, Any]) -> tuple[list[Any], list[tuple[Any, Any]]]:
            scene = Scene(self, inputs, arrays, numbers, size)
            return [scene.picture(name) for name in names], scene.lists

        if inputs.on_tape:
            real = precision(inputs.values[0])
            boxed = {n: kc.array(np.array([v]), dtype=float, real=real) for n, v in numbers.items()}
            return draw(dict(zip(inputs.names, inputs.values)), boxed)[0]
        # Everything that decides which kernels run; numbers and arrays may change between replays.
        key = (
            tuple(names), size, self.mode, self.sampling, self.sigma_pixels is None, self.composite, self.cull,
            self.smooth, self.casts, self.two_sided, self.mipmaps, tuple(inputs.names), inputs.shape_key,
        )  # fmt: skip
        how = (recordings.pool_of(self), key, draw, inputs.names, inputs.values, numbers)
        return recordings.run(*how) if ways is None else recordings.push(*how, ways)

    def extra_repr(self) -> str:
        return f"mode={self.mode!r}, size={self.size}"


class Silhouette(torch.nn.Module):
    """Soft silhouettes: `Silhouette(camera)(vertices, faces)` is (height, width), or a batch of them.

    `size` is (height, width); it may be given with each call instead. The other settings are those of `Renderer`.
    """

    def __init__(self, camera: Camera, *, size: tuple[int, int] = (128, 128), **settings: Any):
        super().__init__()
        self.renderer = Renderer(camera, size=size, **settings)

    @property
    def camera(self) -> Camera:
        return self.renderer.camera

    def forward(self, vertices: Any, faces: Any = None, *, size: tuple[int, int] | None = None, **named: Any) -> Any:
        """1 - Π(1 - D) of a mesh."""
        return self.renderer(vertices, faces, output="silhouette", size=size, **named)

    def jvp(self, vertices: Any, faces: Any = None, *, tangents: Mapping[str, Any], **named: Any) -> tuple[Any, Any]:
        """A silhouette, and how it moves where inputs do: see `Renderer.jvp`."""
        return self.renderer.jvp(vertices, faces, tangents=tangents, output="silhouette", **named)


def softness(style: Renderer) -> dict[str, float]:
    """The numbers behind the settings: the same for every picture, whatever its size."""
    pixels = style.sigma_pixels
    sigma = float(style.sigma) if pixels is None else float(pixels) ** 2
    sigmainv = float(style.sigmainv) if pixels is None else 1 / sigma
    limits = {
        "soft": pictures.soft_limit(sigma, pictures.SILHOUETTE_CUTOFF),
        "colour": pictures.soft_limit(sigma, pictures.COLOUR_CUTOFF),
        "mask": pictures.mask_limit(sigmainv),
        "hard": 0.0,
    }
    first, far = style.first, float(style.far)
    infinity = far - float(style.eps) * (far - first)  # the depth whose z is eps
    numbers = {
        "scale": 1 / sigma, "sigmainv": sigmainv, "near": style.closest, "far": far, "infinity": infinity,
        "start": HUGE if style.composite else infinity, "sharpness": 1 / ((far - first) * float(style.gamma)),
        "shadow_width": shadow_width(style), "shadow_bias": float(style.shadow_bias),
        **{f"{name}_limit": limit for name, limit in limits.items()},
        **{f"{name}_reach": float(np.sqrt(limit)) for name, limit in limits.items()},
    }  # fmt: skip
    return {name: max(-HUGE, min(value, HUGE)) for name, value in numbers.items()}


def shadow_width(style: Renderer) -> float:
    """Of the soft edges of shadows."""
    if style.shadow_width is None:
        return 0.0 if style.mode == "hard" else SHADOW_WIDTH
    return float(style.shadow_width)


@dataclass
class Scene:
    """One call: the arrays of everything, and the stages that its pictures share."""

    style: Renderer
    inputs: Inputs
    arrays: dict[str, Any]
    numbers: dict[str, Any]
    size: tuple[int, int]

    def __post_init__(self) -> None:
        self.frames = self.inputs.frames
        self.screen = Screen(self.size, self.style.sampling, self.style.sigma_pixels is not None)
        self._triangles: dict[str, Any] = {}
        self._seen: dict[bool, Any] = {}
        self._surface: Any = None
        self._view: Any = None

    @property
    def lists(self) -> list[tuple[Any, Any]]:
        cast = [] if self._surface is None or self._surface.shadows is None else [self._surface.shadows.triangles]
        return [(t.starts, t.items) for t in (*self._triangles.values(), *cast)]

    def picture(self, name: str) -> Any:
        """An array without the dimension of the batch, if there is none."""
        image = getattr(self, name)()
        return image if self.inputs.is_batch else image.reshape(*image.shape[1:])

    # -- shared stages
    def row(self, name: str) -> Any:
        """An input with a row for each frame, as an array of kernelc."""
        return for_frames(self.arrays[name], self.frames)

    @property
    def points(self) -> Any:
        if "points" not in self.arrays:
            self.arrays["points"] = points_for_frames(self.arrays["vertices"], self.frames)
        return self.arrays["points"]

    def triangles(self, border: str) -> Any:
        """Triangles with soft borders of one kind."""
        if border not in self._triangles:
            if self._view is None:
                self._view = view_of(self.points, self.row("pose"))
            self._triangles[border] = lay_out(
                self._view, self.arrays["faces"], self.inputs.faces, self.row("lens"), self.screen,
                perspective=self.inputs.perspective, near=self.numbers["near"], far=self.numbers["far"],
                reach=self.numbers[f"{border}_reach"], clips=self.inputs.clips,
            )  # fmt: skip
        return self._triangles[border]

    def seen(self, *, cull: bool) -> Any:
        if cull not in self._seen:
            border = "mask" if self.style.mode == "dibr" else "hard"
            self._seen[cull] = pictures.see(self.triangles(border), cull=cull)
        return self._seen[cull]

    @property
    def surface(self) -> Any:
        if self._surface is None:
            a, given = self.arrays, self.inputs
            named = {n: a.get(n) for n in ("colors", "face_colors", "uvs", "uv_faces", "kinds", "normals")}
            if given.repeats:
                painted = [a[f"texture {k}"] for k in range(len(given.repeats))]
                named["textures"] = lay_side_by_side(
                    painted, given.repeats, mipmaps=self.style.mipmaps, mixed=given.mixed
                )
            if given.lit:
                named |= {n: a[n] for n in ("sky", "material", "lights")}
            if self.style.casts:
                named["shadows"] = shadows_of(
                    self.points, a["faces"], given.faces, a["lights"], given.directions,
                    width=self.numbers["shadow_width"], bias=self.numbers["shadow_bias"],
                )  # fmt: skip
            turned = (1 if given.perspective else 2) if self.style.two_sided else 0
            self._surface = pictures.Surface(
                self.points, self.row("pose"), a["faces"], smooth=self.style.smooth, shines=given.shines,
                harmonics=given.harmonics, turned=turned, **named,
            )  # fmt: skip
        return self._surface

    @property
    def culls(self) -> bool:
        return (self.style.mode == "dibr" and not self.style.two_sided) or self.style.cull

    # -- pictures
    def rgba(self) -> Any:
        n, background = self.numbers, self.arrays["background"]
        if self.style.mode == "softras":
            return pictures.soft_colours(
                self.triangles("colour"), self.surface, background, scale=n["scale"], limit=n["colour_limit"],
                sharpness=n["sharpness"], infinity=n["infinity"], start=n["start"], composite=self.style.composite,
            )  # fmt: skip
        seen = self.seen(cull=self.culls)
        if self.style.mode == "dibr":
            return pictures.masked(
                seen, self.surface, background, sigmainv=n["sigmainv"], limit=n["mask_limit"], cull=self.culls
            )
        return pictures.painted(seen, self.surface, background, cull=self.culls)

    def silhouette(self) -> Any:
        n = self.numbers
        return pictures.silhouette(self.triangles("soft"), scale=n["scale"], limit=n["soft_limit"])

    def depth(self) -> Any:
        return pictures.depths(self.seen(cull=self.culls), nothing=self.numbers["far"])

    def normals(self) -> Any:
        return pictures.normals(self.seen(cull=self.culls), self.surface)

    def face(self) -> Any:
        count = self.arrays["faces"].shape[0]
        return pictures.indices(self.seen(cull=self.culls), np.arange(count, dtype=np.int32))

    def object(self) -> Any:
        return pictures.indices(self.seen(cull=self.culls), self.inputs.objects)

    def flow(self) -> Any:
        points = points_for_frames(self.arrays["moved"], self.frames)
        return pictures.flow(
            self.seen(cull=self.culls), points, self.row("moved_pose"), self.row("moved_lens"),
            perspective=self.inputs.moved_perspective, near=self.numbers["near"],
        )  # fmt: skip


def _check_camera(camera: Any) -> None:
    if not isinstance(camera, Camera):
        raise TypeError(f"the camera is a render.Camera, not {type(camera).__name__}")
