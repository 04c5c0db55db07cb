/* Numbers of 16 bits that arrays hold, and kernels compute with as float or double: loads widen them, stores round to the
   nearest one, halves to even. One text for a single number and for the lanes of a group: F are reals, I their bits. */
#ifndef KERNELC_STORED_H
#define KERNELC_STORED_H

#include "base.h"

#ifdef __CUDACC__
#define KC_MEMBER __device__ inline
#else
#define KC_MEMBER inline
#endif

template <class To, class From> KC_FN To kc_bits_as(From from) {
    To to;
    KC_COPY(&to, &from, sizeof to);
    return to;
}

/* float16: 5 bits of exponent, 10 of fraction. Those without the leading one are built with it, which is then taken off:
   no float on the way is so small that a processor might flush it to zero. */
template <class F, class I> KC_FN F kc_widen_float16(I h) {
    const I zero = h - h, rest = (h & 0x7fff) << 13, exponent = rest & 0x0f800000;
    const I shift = exponent == 0x0f800000 ? zero + (224 << 23) : exponent == 0 ? zero + (113 << 23) : zero + (112 << 23);
    const F x = kc_bits_as<F>(rest + shift);
    const F y = exponent == 0 ? x - 6.103515625e-05f : x;
    return kc_bits_as<F>(kc_bits_as<I>(y) | (h & 0x8000) << 16);
}
template <class I, class F> KC_FN I kc_narrow_float16(F x) {
    const I all = kc_bits_as<I>(x), u = all & 0x7fffffff, zero = u - u;
    const I large = u > (255 << 23) ? zero + 0x7e00 : zero + 0x7c00;
    /* The sum with 1/2 has the last bit of such a number where a float ends: the addition rounds. */
    const I small = kc_bits_as<I>(kc_bits_as<F>(u) + 0.5f) - (126 << 23);
    const I usual = (u - (112 << 23) + 0xfff + ((u >> 13) & 1)) >> 13;
    return (u >= (143 << 23) ? large : u < (113 << 23) ? small : usual) | ((all >> 16) & 0x8000);
}

/* bfloat16: the upper half of a float. */
template <class F, class I> KC_FN F kc_widen_bfloat16(I h) { return kc_bits_as<F>(h << 16); }
template <class I, class F> KC_FN I kc_narrow_bfloat16(F x) {
    const I all = kc_bits_as<I>(x), u = all & 0x7fffffff, zero = u - u;
    const I known = u > 0x7f800000 ? zero + 0x7fc00000 : u;
    return ((known + 0x7fff + ((known >> 16) & 1)) >> 16) | ((all >> 16) & 0x8000);
}

/* A double as a float that rounds on to fewer digits as the double itself would: where something was cut off, the last bit
   is set. Rounding twice to the nearest would not do. */
KC_FN float kc_cut(double x) {
    const float near = (float)x;
    if ((double)near == x) return near;
    const uint32_t bits = kc_bits_as<uint32_t>(near);
    const bool beyond = (near < 0 ? -(double)near : (double)near) > (x < 0 ? -x : x);
    return kc_bits_as<float>((bits - (beyond ? 1u : 0u)) | 1u);
}

#define KC_HALF(name)                                                                                    \
    struct kc_##name {                                                                                   \
        uint16_t bits;                                                                                   \
        KC_MEMBER operator float() const { return kc_widen_##name<float>((int32_t)bits); }               \
        KC_MEMBER void operator=(float x) { bits = (uint16_t)kc_narrow_##name<int32_t>(x); }             \
        KC_MEMBER void operator=(double x) { *this = kc_cut(x); }                                        \
        template <class V> KC_MEMBER void operator+=(V v) { *this = (V)((V)(float)*this + v); }          \
    };
KC_HALF(float16)
KC_HALF(bfloat16)
#undef KC_HALF

#endif
