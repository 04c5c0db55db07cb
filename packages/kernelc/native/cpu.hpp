// What the vector unit of this processor can do.
#pragma once

namespace kernelc {

// The highest level of toolchain/simd.py that this processor, and the operating system, can run: "baseline", "avx2" or
// "avx512". Asked of the processor itself: in a container /proc may be another machine's, or missing.
const char* cpu_level();

}  // namespace kernelc
