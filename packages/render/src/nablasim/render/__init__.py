"""The differentiable renderer: SoftRas, DIB-R and a z-buffer, as kernels that run on a kernelc tape or in torch.

`Renderer(camera, lights)(mesh)` draws a mesh; every number that went into the picture can have a gradient.
"""

from typing import TYPE_CHECKING, Any

from nablasim.render.anneal import anneal
from nablasim.render.camera import Camera, ndc_to_pixels, pixels_to_ndc
from nablasim.render.lights import Ambient, Directional, Material, Point, SphericalHarmonics
from nablasim.render.loading import load
from nablasim.render.mesh import Mesh
from nablasim.render.video import Video, contact_sheet, overlay, read_video, video_times, write_image, write_video

if TYPE_CHECKING:
    from nablasim.render import losses
    from nablasim.render.renderer import Renderer, Silhouette

__all__ = [
    "Ambient",
    "Camera",
    "Directional",
    "Material",
    "Mesh",
    "Point",
    "Renderer",
    "Silhouette",
    "SphericalHarmonics",
    "Video",
    "anneal",
    "contact_sheet",
    "load",
    "losses",
    "ndc_to_pixels",
    "overlay",
    "pixels_to_ndc",
    "read_video",
    "video_times",
    "write_image",
    "write_video",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # it takes a while to import

        return version("nablasim-render")
    # These need torch, which takes a second to import: cameras, meshes and videos do without.
    if name in ("Renderer", "Silhouette"):
        from nablasim.render import renderer

        return getattr(renderer, name)
    if name == "losses":
        from importlib import import_module

        return import_module("nablasim.render.losses")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
