// out = a x + y by hand, and its adjoint.
#include <stdint.h>

#define SAXPY(T, suffix)                                                                                              \
    extern "C" void saxpy_##suffix(const T* __restrict x, const T* __restrict y, T* __restrict out, int64_t n,        \
                                   double a) {                                                                        \
        for (int64_t i = 0; i < n; ++i) out[i] = (T)a * x[i] + y[i];                                                  \
    }                                                                                                                 \
    extern "C" void adjoint_##suffix(const T* __restrict seed, T* __restrict xb, T* __restrict yb, int64_t n,         \
                                     double a) {                                                                      \
        for (int64_t i = 0; i < n; ++i) xb[i] = (T)a * seed[i], yb[i] = seed[i];                                      \
    }
SAXPY(float, float32)
SAXPY(double, float64)
