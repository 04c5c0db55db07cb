"""Text to binaries: which compiler (`probe`, `nvcc`), what is there already (`cache`), one Ninja run for the rest.
Machine code that came with a package needs none of that (`shipped`).

Nothing here knows what a kernel is. Codegen hands in C++17 or CUDA text, the runtime opens what comes back.
"""

from kernelc.toolchain.build import build, build_many
from kernelc.toolchain.cache import cache_root
from kernelc.toolchain.nvcc import ARCHITECTURES, Nvcc, Resources, fatbins, has_nvcc, nvcc, resources
from kernelc.toolchain.probe import Compiler, compiler
from kernelc.toolchain.shipped import Shipped, shipped_with
from kernelc.toolchain.simd import Simd, libmvec, simd

__all__ = [
    "ARCHITECTURES", "Compiler", "Nvcc", "Resources", "Shipped", "Simd", "build", "build_many", "cache_root",
    "compiler", "fatbins", "has_nvcc", "libmvec", "nvcc", "resources", "shipped_with", "simd",
]  # fmt: skip
