"""The differentiable renderer: SoftRas, DIB-R and a z-buffer, as kernels that run on a kernelc tape or in torch.

`Renderer(camera, lights)(mesh)` draws a mesh; every number that went into the picture can have a gradient.
"""

from nablasim.render.anneal import anneal
from nablasim.render.camera import Camera, ndc_to_pixels, pixels_to_ndc
from nablasim.render.lights import Ambient, Directional, Material, Point, SphericalHarmonics
from nablasim.render.mesh import Mesh
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
    "anneal",
    "ndc_to_pixels",
    "pixels_to_ndc",
]
