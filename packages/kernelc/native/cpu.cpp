#include "cpu.hpp"

namespace kernelc {

#if defined(__x86_64__)
// Exactly what the flags in toolchain/simd.py let the compiler use.
const char* cpu_level() {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                      __builtin_cpu_supports("popcnt");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    return avx2 ? avx512 ? "avx512" : "avx2" : "baseline";
}
#else
const char* cpu_level() { return "baseline"; }
#endif

}  // namespace kernelc
