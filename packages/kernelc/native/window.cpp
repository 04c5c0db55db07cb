#include "window.hpp"

#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kernelc {
namespace {

char* plain_in(char* to, const char* from, int64_t lanes, int64_t size, int64_t left, int64_t room) {
    const int64_t some = std::max(std::min(left, room), int64_t{0});
    std::memcpy(to, from, static_cast<size_t>(some * size));
    std::memset(to + some * size, 0, static_cast<size_t>((lanes - some) * size));
    return to;
}

void plain_out(const char* from, char* to, int64_t size, int64_t left, int64_t room) {
    std::memcpy(to, from, static_cast<size_t>(std::max(std::min(left, room), int64_t{0}) * size));
}

#if defined(__x86_64__)
// In pieces as wide as the kernel reads them: it would wait for narrower ones to reach the memory.
constexpr int64_t kWords = 16;

inline uint16_t mask(int64_t words) {
    return words >= kWords ? 0xffff : words > 0 ? static_cast<uint16_t>((1 << words) - 1) : 0;
}

__attribute__((target("avx512f"))) char* wide_in(char* to, const char* from, int64_t lanes, int64_t size, int64_t left,
                                                 int64_t room) {
    const int64_t words = size / 4, some = std::min(left, room) * words;
    for (int64_t at = 0; at < lanes * words; at += kWords)
        _mm512_store_si512(to + at * 4, _mm512_maskz_loadu_epi32(mask(some - at), from + at * 4));
    return to;
}

__attribute__((target("avx512f"))) void wide_out(const char* from, char* to, int64_t size, int64_t left, int64_t room) {
    const int64_t words = size / 4, some = std::min(left, room) * words;
    for (int64_t at = 0; at < some; at += kWords)
        _mm512_mask_storeu_epi32(to + at * 4, mask(some - at), _mm512_load_si512(from + at * 4));
}

bool is_wide() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f");
}
#else
constexpr auto wide_in = plain_in;
constexpr auto wide_out = plain_out;
constexpr bool is_wide() { return false; }
#endif

}  // namespace

decltype(kc_context::copy_in) copy_in() { return is_wide() ? wide_in : plain_in; }
decltype(kc_context::copy_out) copy_out() { return is_wide() ? wide_out : plain_out; }

}  // namespace kernelc
