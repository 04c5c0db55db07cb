"""The kernels that the wheel brings as machine code: all of them. Read when the wheel is built (CMakeLists.txt)."""

from itertools import product

from kernelc import aot
from nablasim.render.kernels import bands, bins, coverage, resolve, softras, triangles, visible

LIT = [((shines, harmonics), ()) for shines, harmonics in product((False, True), repeat=2)]
LIGHTS = [((False, False), ("surface.light",)), *LIT]
PAINTS = [(False, ("surface.uv", "surface.texture")), (False, ("surface.paint",)), (True, ("surface.paint",))]
SURFACES = [((wrapped, *shine), paint + light) for wrapped, paint in PAINTS for shine, light in LIGHTS]
"""The kinds of surfaces that there are, and what each lacks: painted, textured, wrapped; lit, shiny, by harmonics."""

NUMBERS = ("near", "far", "nothing", "reach", "infinity", "sharpness", "scale", "limit", "start", "sigmainv")
"""Given as arrays: a recorded picture is made again with others."""

AHEAD = [
    *aot.kernels(bands, coverage, resolve, softras, triangles, visible, boxed=NUMBERS),
    # Faces that need not be clipped.
    *aot.kernels(bands.gather_vectors, bands.gather_uvs, visible.flow_seen, boxed=NUMBERS, absent=("slots.mix",)),
    *(one for make in (softras.blend, visible.paint) for kind, absent in SURFACES
      for one in aot.kernels(make(kind), boxed=NUMBERS, absent=absent)),
    # Lists of which triangle meets which tile have no gradient.
    *aot.kernels(bins, adjoint=False),
]  # fmt: skip
