// One semi-implicit step by hand, and its adjoint: every array is read once and written once, on as many threads as
// there are.
#include <stdint.h>

#include "../by_hand.hpp"

namespace {

template <class T>
void step(const T* __restrict x, const T* __restrict v, const T* __restrict f, const T* __restrict weight,
          T* __restrict x1, T* __restrict v1, int64_t n, T dt, T g) {
    const T gravity[3] = {0, g, 0};
    for (int64_t i = 0; i < n; ++i)
        for (int k = 0; k < 3; ++k) {
            const T now = v[3 * i + k] + (f[3 * i + k] * weight[i] + gravity[k]) * dt;
            v1[3 * i + k] = now;
            x1[3 * i + k] = x[3 * i + k] + now * dt;
        }
}

template <class T>
void adjoint(const T* __restrict f, const T* __restrict weight, const T* __restrict sx, const T* __restrict sv,
             T* __restrict xb, T* __restrict vb, T* __restrict fb, T* __restrict wb, int64_t n, T dt) {
    for (int64_t i = 0; i < n; ++i) {
        T sum = 0;
        for (int k = 0; k < 3; ++k) {
            const int64_t p = 3 * i + k;
            const T now = sv[p] + sx[p] * dt;
            xb[p] = sx[p];
            vb[p] = now;
            fb[p] = now * weight[i] * dt;
            sum += now * f[p] * dt;
        }
        wb[i] = sum;
    }
}

}  // namespace

#define PARTICLES(T, suffix)                                                                                          \
    extern "C" void step_##suffix(const T* x, const T* v, const T* f, const T* weight, T* x1, T* v1, int64_t n,       \
                                  double dt, double g) {                                                              \
        team::split(n, [=](int64_t b, int64_t e) {                                                                    \
            step(x + 3 * b, v + 3 * b, f + 3 * b, weight + b, x1 + 3 * b, v1 + 3 * b, e - b, (T)dt, (T)g);            \
        });                                                                                                           \
    }                                                                                                                 \
    extern "C" void adjoint_##suffix(const T* f, const T* weight, const T* sx, const T* sv, T* xb, T* vb, T* fb,      \
                                     T* wb, int64_t n, double dt) {                                                   \
        team::split(n, [=](int64_t b, int64_t e) {                                                                    \
            adjoint(f + 3 * b, weight + b, sx + 3 * b, sv + 3 * b, xb + 3 * b, vb + 3 * b, fb + 3 * b, wb + b, e - b, \
                    (T)dt);                                                                                           \
        });                                                                                                           \
    }
PARTICLES(float, float32)
PARTICLES(double, float64)
