"""The kernels that the wheel brings as machine code: all of them. Read when the wheel is built (CMakeLists.txt)."""

from itertools import product

from kernelc import aot
from nablasim.render.kernels import bands, bins, coverage, resolve, softras, triangles, visible

UNLIT = (False, False, False)
LIT = [(True, shines, harmonics) for shines, harmonics in product((False, True), repeat=2)]
SURFACES = [(*texture, *light) for texture in ((False, False), (True, False), (True, True)) for light in (UNLIT, *LIT)]
"""The kinds of surfaces that there are: textured and wrapped; lit, shiny and lit by harmonics."""

NUMBERS = ("near", "far", "nothing", "reach", "infinity", "sharpness", "scale", "limit", "start", "sigmainv")
"""Given as arrays: a recorded picture is made again with others."""

AHEAD = [
    *aot.kernels(bands, coverage, resolve, softras, triangles, visible, boxed=NUMBERS),
    *aot.kernels(*(make(kind) for make in (softras.blend, visible.paint) for kind in SURFACES), boxed=NUMBERS),
    # Lists of which triangle meets which tile have no gradient.
    *aot.kernels(bins, adjoint=False),
]
