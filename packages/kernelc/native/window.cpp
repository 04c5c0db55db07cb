#include "window.hpp"

#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kernelc {
namespace {

constexpr int64_t kAlign = 64;  // the widest register; copies begin and end there

int64_t rounded(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// `some` bytes, then zeros up to `all`.
void plain_in(char* to, const char* from, int64_t all, int64_t some) {
    std::memcpy(to, from, static_cast<size_t>(some));
    std::memset(to + some, 0, static_cast<size_t>(all - some));
}

void plain_out(char* to, const char* from, int64_t some) { std::memcpy(to, from, static_cast<size_t>(some)); }

#if defined(__x86_64__)
// In pieces as wide as the kernel reads them: it would wait for narrower ones to reach the memory.
inline uint16_t mask(int64_t bytes) {
    return bytes >= kAlign ? 0xffff : bytes > 0 ? static_cast<uint16_t>((1 << bytes / 4) - 1) : 0;
}

__attribute__((target("avx512f"))) void wide_in(char* to, const char* from, int64_t all, int64_t some) {
    for (int64_t at = 0; at < all; at += kAlign)
        _mm512_store_si512(to + at, _mm512_maskz_loadu_epi32(mask(some - at), from + at));
}

__attribute__((target("avx512f"))) void wide_out(char* to, const char* from, int64_t some) {
    for (int64_t at = 0; at < some; at += kAlign)
        _mm512_mask_storeu_epi32(to + at, mask(some - at), _mm512_load_si512(from + at));
}

const bool is_wide = (__builtin_cpu_init(), __builtin_cpu_supports("avx512f"));
#else
constexpr auto wide_in = plain_in;
constexpr auto wide_out = plain_out;
constexpr bool is_wide = false;
#endif

}  // namespace

void Windows::open(const int64_t* block, int64_t begin, int64_t end, const kc_window* windows, int32_t count,
                   int32_t lanes) {
    size_t room = kAlign;
    for (int32_t k = 0; k < count; ++k) room += static_cast<size_t>(rounded(int64_t{lanes} * windows[k].size));
    if (room > room_) {
        memory_.reset(new char[room]);
        room_ = room;
    }
    if (places_.size() < static_cast<size_t>(count)) places_.resize(static_cast<size_t>(count));
    written_.clear();
    char* here = reinterpret_cast<char*>(rounded(reinterpret_cast<intptr_t>(memory_.get())));
    for (int32_t k = 0; k < count; ++k) {
        const kc_window& w = windows[k];
        const int64_t all = rounded(int64_t{lanes} * w.size);
        const int64_t some = std::max(std::min(end, block[w.rows]) - begin, int64_t{0}) * w.size;
        char* there = reinterpret_cast<char*>(block[w.pointer]) + begin * w.size;
        (is_wide ? wide_in : plain_in)(here, there, all, some);
        places_[static_cast<size_t>(k)] = here - begin * w.size;
        if (w.written) written_.push_back(Copy{there, here, some});
        here += all;
    }
}

void Windows::close() {
    for (const Copy& c : written_) (is_wide ? wide_out : plain_out)(c.there, c.here, c.bytes);
}

}  // namespace kernelc
