/* The mathematical functions of kernels: one function for a single number and for the lanes of a group.
   Those of libm and libmvec differ in their last bits (at most 4 units), and so do libmvec's of different widths. A
   kernel would compute other bits for one thread than for many, so all of them call the one that fits the processor:
   what is narrower than its registers fills one, what is wider is cut into several.
   KC_MATH names those that are used; without it all are there. KC_LIBMVEC: the C library has them for vectors. */
#ifndef KERNELC_FUNCTIONS_H
#define KERNELC_FUNCTIONS_H

#ifndef KC_MATH
#define KC_MATH \
    KC_MATH1(sin) KC_MATH1(cos) KC_MATH1(tan) KC_MATH1(asin) KC_MATH1(acos) KC_MATH1(atan) KC_MATH1(sinh) \
    KC_MATH1(cosh) KC_MATH1(tanh) KC_MATH1(asinh) KC_MATH1(acosh) KC_MATH1(atanh) KC_MATH1(exp) KC_MATH1(expm1) \
    KC_MATH1(log) KC_MATH1(log1p) KC_MATH1(log2) KC_MATH1(log10) KC_MATH1(cbrt) KC_MATH1(erf) KC_MATH2(atan2) \
    KC_MATH2(hypot) KC_MATH2(pow)
#endif

/* Names of libmvec: the registers, how many numbers they hold, the arguments. */
#if defined(KC_LIBMVEC) && defined(__AVX512F__)
#define KC_VECTOR 64
#define KC_VECTOR_F(name, args) _ZGVeN16##args##_##name##f
#define KC_VECTOR_D(name, args) _ZGVeN8##args##_##name
#elif defined(KC_LIBMVEC) && defined(__AVX2__)
#define KC_VECTOR 32
#define KC_VECTOR_F(name, args) _ZGVdN8##args##_##name##f
#define KC_VECTOR_D(name, args) _ZGVdN4##args##_##name
#elif defined(KC_LIBMVEC) && defined(__SSE4_2__)
#define KC_VECTOR 16
#define KC_VECTOR_F(name, args) _ZGVbN4##args##_##name##f
#define KC_VECTOR_D(name, args) _ZGVbN2##args##_##name
#endif

#ifdef KC_VECTOR
typedef float kc_many_f __attribute__((vector_size(KC_VECTOR)));
typedef double kc_many_d __attribute__((vector_size(KC_VECTOR)));

/* A register of a part of x, or of copies of x: the other lanes must not be slower than x is. */
template <class M, class V> KC_FN M kc_piece(const V& x, unsigned at) {
    M m;
    if (sizeof(V) >= sizeof(M)) KC_COPY(&m, (const char*)&x + at, sizeof m);
    else
        for (unsigned k = 0; k < sizeof m; k += sizeof x) KC_COPY((char*)&m + k, &x, sizeof x);
    return m;
}
template <class V, class M> KC_FN void kc_put_piece(V& r, unsigned at, const M& m) {
    KC_COPY((char*)&r + at, &m, sizeof(V) < sizeof(M) ? sizeof(V) : sizeof(M));
}
template <class M, M (*F)(M), class V> KC_FN V kc_pieces(V x) {
    V r;
    for (unsigned at = 0; at < sizeof r; at += sizeof(M)) kc_put_piece(r, at, F(kc_piece<M>(x, at)));
    return r;
}
template <class M, M (*F)(M, M), class V> KC_FN V kc_pieces(V x, V y) {
    V r;
    for (unsigned at = 0; at < sizeof r; at += sizeof(M))
        kc_put_piece(r, at, F(kc_piece<M>(x, at), kc_piece<M>(y, at)));
    return r;
}
#define KC_MATH1(name) \
    extern "C" kc_many_f KC_VECTOR_F(name, v)(kc_many_f); \
    extern "C" kc_many_d KC_VECTOR_D(name, v)(kc_many_d); \
    KC_FN float kc_##name(float x) { return kc_pieces<kc_many_f, KC_VECTOR_F(name, v)>(x); } \
    KC_FN double kc_##name(double x) { return kc_pieces<kc_many_d, KC_VECTOR_D(name, v)>(x); }
#define KC_MATH2(name) \
    extern "C" kc_many_f KC_VECTOR_F(name, vv)(kc_many_f, kc_many_f); \
    extern "C" kc_many_d KC_VECTOR_D(name, vv)(kc_many_d, kc_many_d); \
    KC_FN float kc_##name(float x, float y) { return kc_pieces<kc_many_f, KC_VECTOR_F(name, vv)>(x, y); } \
    KC_FN double kc_##name(double x, double y) { return kc_pieces<kc_many_d, KC_VECTOR_D(name, vv)>(x, y); }
#else
#define KC_MATH1(name) \
    KC_FN float kc_##name(float x) { return name##f(x); } \
    KC_FN double kc_##name(double x) { return name(x); }
#define KC_MATH2(name) \
    KC_FN float kc_##name(float x, float y) { return name##f(x, y); } \
    KC_FN double kc_##name(double x, double y) { return name(x, y); }
#endif
KC_MATH
#undef KC_MATH1
#undef KC_MATH2

#endif
