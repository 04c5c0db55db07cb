"""The kernels that the wheel brings as machine code: all of them. Read when the wheel is built (CMakeLists.txt)."""

from itertools import product

from kernelc import aot
from nablasim.render.kernels import bands, bins, coverage, resolve, shadows, softras, textures, triangles, visible

LIT = [((shines, harmonics), ("surface.light.shadow",)) for shines, harmonics in product((False, True), repeat=2)]
LIGHTS = [((False, False), ("surface.light",)), *LIT, ((True, True), ())]
PAINTS = [("uv", "textures", "triangles"), ("colors", "triangles"), ()]
SURFACES = [
    (kind, tuple(f"surface.paint.{name}" for name in lacks) + dark) for lacks in PAINTS for kind, dark in LIGHTS
]
"""The kinds of surfaces that there are, and what each lacks: colours, textures, or all; lit, shiny, by harmonics, or
with shadows of all lights."""
OPAQUE = ("paint.colors", "paint.uv", "paint.textures", "paint.triangles")

NUMBERS = ("near", "far", "nothing", "reach", "infinity", "sharpness", "scale", "limit", "start", "sigmainv", "width",
           "bias")  # fmt: skip
"""Given as arrays: a recorded picture is made again with others."""

AHEAD = [
    *aot.kernels(bands, coverage, resolve, shadows, softras, textures, triangles, visible, boxed=NUMBERS),
    # Faces that need not be clipped.
    *aot.kernels(bands.gather_vectors, bands.gather_uvs, visible.flow_seen, boxed=NUMBERS, absent=("slots.mix",)),
    *(one for make in (softras.blend, visible.paint) for kind, absent in SURFACES
      for one in aot.kernels(make(kind), boxed=NUMBERS, absent=absent)),
    *(one for absent in (OPAQUE, ("paint.colors", "paint.triangles"))
      for one in aot.kernels(softras.nearest_depths, boxed=NUMBERS, absent=absent)),
    # Lists of which triangle meets which tile have no gradient.
    *aot.kernels(bins, adjoint=False),
]  # fmt: skip
