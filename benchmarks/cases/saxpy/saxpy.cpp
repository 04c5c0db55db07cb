// out = a x + y by hand, and its adjoint, on as many threads as there are.
#include <stdint.h>

#include "../by_hand.hpp"

namespace {

template <class T> void add(const T* __restrict x, const T* __restrict y, T* __restrict out, int64_t n, T a) {
    for (int64_t i = 0; i < n; ++i) out[i] = a * x[i] + y[i];
}

template <class T> void adjoint(const T* __restrict seed, T* __restrict xb, T* __restrict yb, int64_t n, T a) {
    for (int64_t i = 0; i < n; ++i) xb[i] = a * seed[i], yb[i] = seed[i];
}

}  // namespace

#define SAXPY(T, suffix)                                                                                              \
    extern "C" void saxpy_##suffix(const T* x, const T* y, T* out, int64_t n, double a) {                             \
        team::split(n, [=](int64_t b, int64_t e) { add(x + b, y + b, out + b, e - b, (T)a); });                       \
    }                                                                                                                 \
    extern "C" void adjoint_##suffix(const T* seed, T* xb, T* yb, int64_t n, double a) {                              \
        team::split(n, [=](int64_t b, int64_t e) { adjoint(seed + b, xb + b, yb + b, e - b, (T)a); });                \
    }
SAXPY(float, float32)
SAXPY(double, float64)
