"""The flags that kernels are compiled with, and the libraries they are linked with, as far as a compiler takes them.

Nothing is imported: the build of the native core reads this file before there is a kernelc.
"""

FLAGS = (
    "-std=c++17",
    "-shared",
    "-fPIC",
    "-O2",
    "-march=native",
    "-fvisibility=hidden",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    # The adjoint computes again what the forward kernel computed, and must get the same bits: who won a maximum, which
    # branch was taken. Fused products depend on what else uses them, so they differ between the two.
    "-ffp-contract=off",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
    "-w",
    # math.h of the C library: the one of libstdc++ brings templates that take longer than a small kernel (85 ms).
    "-nostdinc++",
    # Kernels have nothing to run when they are opened or closed, and nothing is left to be optimised when they are
    # linked: without the start files and the plugin, linking takes two thirds of the time.
    "-nostartfiles",
    "-fno-use-linker-plugin",
)
# Kernels use no C++ library, and the C library is there when they are opened: looking through either takes the linker
# 10 ms. (Opening one resolves all of its functions, so what is missing is said there.)
LIBRARIES = ("-nodefaultlibs", "-lm", "-lgcc")
