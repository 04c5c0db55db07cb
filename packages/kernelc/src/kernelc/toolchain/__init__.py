"""Text to shared library: which compiler (`probe`), what is there already (`cache`), one Ninja run for the rest.

Nothing here knows what a kernel is. Codegen hands in C++17 text, the runtime opens the libraries that come back.
"""

from kernelc.toolchain.build import build, build_many
from kernelc.toolchain.cache import cache_root
from kernelc.toolchain.probe import Compiler, compiler
from kernelc.toolchain.simd import Simd, simd

__all__ = ["Compiler", "Simd", "build", "build_many", "cache_root", "compiler", "simd"]
