/* What generated kernels call: scalar operations with the meaning of the kernel language.
   No STL and no math.h: declaring the few functions of libm keeps a kernel's build short. */
#ifndef KERNELC_KERNEL_H
#define KERNELC_KERNEL_H

#ifndef KERNELC_DEVICE_H
#include "context.h"
#endif

#ifdef __CUDACC__
#include <math.h>
#else
#define KC_LIBM1(name) float name##f(float); double name(double);
#define KC_LIBM3(name) float name##f(float, float, float); double name(double, double, double);
#define KC_LIBM2(name) float name##f(float, float); double name(double, double);
extern "C" {
KC_LIBM1(sqrt) KC_LIBM1(cbrt) KC_LIBM1(exp) KC_LIBM1(expm1) KC_LIBM1(log) KC_LIBM1(log1p) KC_LIBM1(log2)
KC_LIBM1(log10) KC_LIBM1(sin) KC_LIBM1(cos) KC_LIBM1(tan) KC_LIBM1(asin) KC_LIBM1(acos) KC_LIBM1(atan)
KC_LIBM1(sinh) KC_LIBM1(cosh) KC_LIBM1(tanh) KC_LIBM1(asinh) KC_LIBM1(acosh) KC_LIBM1(atanh) KC_LIBM1(erf)
KC_LIBM1(floor) KC_LIBM1(ceil) KC_LIBM1(trunc) KC_LIBM1(rint) KC_LIBM1(fabs)
KC_LIBM3(fma) KC_LIBM2(pow) KC_LIBM2(hypot) KC_LIBM2(atan2) KC_LIBM2(fmod) KC_LIBM2(copysign)
}
#undef KC_LIBM1
#undef KC_LIBM2
#undef KC_LIBM3
#endif
#include "functions.h"

KC_FN float kc_fabs(float x) { return fabsf(x); }
KC_FN double kc_fabs(double x) { return fabs(x); }
KC_FN float kc_floor(float x) { return floorf(x); }
KC_FN double kc_floor(double x) { return floor(x); }
KC_FN float kc_fmod(float a, float b) { return fmodf(a, b); }
KC_FN double kc_fmod(double a, double b) { return fmod(a, b); }
KC_FN float kc_fma(float a, float b, float c) { return fmaf(a, b, c); }
KC_FN double kc_fma(double a, double b, double c) { return fma(a, b, c); }
KC_FN float kc_copysign(float x, float s) { return copysignf(x, s); }
KC_FN double kc_copysign(double x, double s) { return copysign(x, s); }

/* Division of integers by zero gives zero: a signal would end the process. Debug mode reports it. */
template <class T> KC_FN T kc_int_floordiv(T a, T b) {
    if (b == 0) return 0;
    if (b == (T)-1) return (T)(0 - a); /* the smallest integer divided by -1 wraps */
    T q = (T)(a / b);
    return (T)(q - ((a % b != 0) & ((a < 0) != (b < 0))));
}
template <class T> KC_FN T kc_int_mod(T a, T b) {
    if (b == 0 || b == (T)-1) return 0;
    T r = (T)(a % b);
    return (T)(r + ((r != 0) & ((r < 0) != (b < 0)) ? b : (T)0));
}
template <class T> KC_FN T kc_real_mod(T a, T b) {
    T r = kc_fmod(a, b);
    if (r != 0 && (r < 0) != (b < 0)) r += b;
    return r != 0 ? r : kc_copysign((T)0, b);
}
/* As Python: the quotient of what the remainder leaves, so that (a // b) * b + a % b is a. */
template <class T> KC_FN T kc_real_floordiv(T a, T b) {
    if (b == 0) return a / b; /* IEEE, as NumPy */
    T r = kc_fmod(a, b), q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) q -= 1;
    T whole = kc_floor(q);
    if (q - whole > (T)0.5) whole += 1;
    return whole != 0 ? whole : kc_copysign((T)0, a / b);
}
KC_FN int32_t kc_floordiv(int32_t a, int32_t b) { return kc_int_floordiv(a, b); }
KC_FN int64_t kc_floordiv(int64_t a, int64_t b) { return kc_int_floordiv(a, b); }
KC_FN uint32_t kc_floordiv(uint32_t a, uint32_t b) { return b == 0 ? 0u : a / b; }
KC_FN uint64_t kc_floordiv(uint64_t a, uint64_t b) { return b == 0 ? 0u : a / b; }
KC_FN float kc_floordiv(float a, float b) { return kc_real_floordiv(a, b); }
KC_FN double kc_floordiv(double a, double b) { return kc_real_floordiv(a, b); }
KC_FN int32_t kc_mod(int32_t a, int32_t b) { return kc_int_mod(a, b); }
KC_FN int64_t kc_mod(int64_t a, int64_t b) { return kc_int_mod(a, b); }
KC_FN uint32_t kc_mod(uint32_t a, uint32_t b) { return b == 0 ? 0u : a % b; }
KC_FN uint64_t kc_mod(uint64_t a, uint64_t b) { return b == 0 ? 0u : a % b; }
KC_FN float kc_mod(float a, float b) { return kc_real_mod(a, b); }
KC_FN double kc_mod(double a, double b) { return kc_real_mod(a, b); }

/* Shifts by more than the width give what Python's unbounded integers would leave in the width. */
template <class T> KC_FN T kc_shl(T a, T b) {
    return (uint64_t)b >= 8 * sizeof(T) ? (T)0 : (T)((uint64_t)a << (uint64_t)b);
}
template <class T> KC_FN T kc_shr(T a, T b) {
    return (uint64_t)b >= 8 * sizeof(T) ? (T)(a < 0 ? -1 : 0) : (T)(a >> b);
}
KC_FN uint32_t kc_shr(uint32_t a, uint32_t b) { return b >= 32 ? 0u : a >> b; }
KC_FN uint64_t kc_shr(uint64_t a, uint64_t b) { return b >= 64 ? 0u : a >> b; }

template <class T> KC_FN T kc_abs(T x) { return x < 0 ? (T)(0 - x) : x; }
KC_FN uint32_t kc_abs(uint32_t x) { return x; }
KC_FN uint64_t kc_abs(uint64_t x) { return x; }
KC_FN float kc_abs(float x) { return fabsf(x); }
KC_FN double kc_abs(double x) { return fabs(x); }
template <class T> KC_FN T kc_sign(T x) { return (T)((x > 0) - (x < 0)); }
KC_FN uint32_t kc_sign(uint32_t x) { return x != 0; }
KC_FN uint64_t kc_sign(uint64_t x) { return x != 0; }
KC_FN float kc_sign(float x) { return x != x ? x : (float)((x > 0) - (x < 0)); }
KC_FN double kc_sign(double x) { return x != x ? x : (double)((x > 0) - (x < 0)); }
/* A NaN on either side is the result. */
template <class T> KC_FN T kc_min(T a, T b) { return (a < b) | (a != a) ? a : b; }
template <class T> KC_FN T kc_max(T a, T b) { return (a > b) | (a != a) ? a : b; }
template <class T> KC_FN T kc_clamp(T x, T low, T high) { return kc_min(kc_max(x, low), high); }
template <class T> KC_FN T kc_step(T x) { return x > 0 ? (T)1 : (T)0; }
template <class T> KC_FN bool kc_isfinite(T x) { return x - x == 0; }
/* By powers of e that are at most 1: nothing overflows, and what is small keeps its digits. */
template <class T> KC_FN T kc_sigmoid(T x) {
    const T e = kc_exp(-kc_fabs(x));
    return (x < 0 ? e : (T)1) / ((T)1 + e);
}
template <class T> KC_FN T kc_softplus(T x) { return (x > 0 ? x : (T)0) + kc_log1p(kc_exp(-kc_fabs(x))); }

/* Reals to integers: towards zero, saturating; a NaN gives zero. */
template <class T> KC_FN int32_t kc_to_int32(T x) {
    return x != x ? 0 : x >= (T)2147483648.0 ? INT32_MAX : x < (T)-2147483648.0 ? INT32_MIN : (int32_t)x;
}
template <class T> KC_FN int64_t kc_to_int64(T x) {
    return x != x ? 0 : x >= (T)9223372036854775808.0 ? INT64_MAX : x < (T)-9223372036854775808.0 ? INT64_MIN : (int64_t)x;
}
template <class T> KC_FN uint32_t kc_to_uint32(T x) {
    return x != x || x <= 0 ? 0u : x >= (T)4294967296.0 ? UINT32_MAX : (uint32_t)x;
}
template <class T> KC_FN uint64_t kc_to_uint64(T x) {
    return x != x || x <= 0 ? 0u : x >= (T)18446744073709551616.0 ? UINT64_MAX : (uint64_t)x;
}

/* Integers to reals. GCC makes trunc(x) of a real that became an integer and is to be one again, and trunc(-0.5) is -0:
   it must not see where the integer comes from. */
template <class T, class I> KC_FN T kc_real(I x) {
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
    __asm__("" : "+r"(x));
#endif
    return (T)x;
}

/* Words of the argument block. */
template <class T> KC_FN T kc_word(const int64_t* word) {
    T value;
    KC_COPY(&value, word, sizeof value);
    return value;
}

#endif
