/* A group of KC_LANES threads in vector registers: types, selection, memory and mathematics, lane by lane.
   Included once per width, with KC_LANES defined; everything lives in a namespace named after the width.
   The vector types are those of GCC and clang: the compiler maps them to whatever registers there are.
   A kernel asks by KC_WITH_… for the parts that it uses, most of them files of their own in lanes/: the compiler reads
   this for every kernel, and reading all of it would take longer than compiling a small one. */

#define KC_PASTE_(a, b) a##b
#define KC_PASTE(a, b) KC_PASTE_(a, b)
#define W KC_LANES
/* Always inline: only then are the index vectors of shuffles constants. */
#define KC_LANE static inline __attribute__((always_inline))

/* What is there for a type only if the kernel uses it; of float and int32 this holds for memory alone. */
#ifdef KC_WITH_FLOAT32
#define KC_F(...) __VA_ARGS__
#else
#define KC_F(...)
#endif
#ifdef KC_WITH_FLOAT64
#define KC_D(...) __VA_ARGS__
#else
#define KC_D(...)
#endif
#ifdef KC_WITH_INT32
#define KC_I(...) __VA_ARGS__
#else
#define KC_I(...)
#endif
#if defined(KC_WITH_INT64) || defined(KC_WITH_FLOAT64) || defined(KC_WITH_UINT64)
/* Doubles are compared and chosen by integers of their size. */
#define KC_L(...) __VA_ARGS__
#else
#define KC_L(...)
#endif
#ifdef KC_WITH_UINT32
#define KC_U(...) __VA_ARGS__
#else
#define KC_U(...)
#endif
#ifdef KC_WITH_UINT64
#define KC_Q(...) __VA_ARGS__
#else
#define KC_Q(...)
#endif

namespace KC_PASTE(kc_lanes_, KC_LANES) {

typedef float vf __attribute__((vector_size(4 * W)));
typedef double vd __attribute__((vector_size(8 * W)));
typedef int32_t vi __attribute__((vector_size(4 * W)));
typedef int64_t vl __attribute__((vector_size(8 * W)));
typedef uint32_t vu __attribute__((vector_size(4 * W)));
typedef uint64_t vq __attribute__((vector_size(8 * W)));
typedef vi vb; /* 0 or -1 in each lane */
/* The same in memory, where nothing but the element is aligned. */
typedef float mf __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef double md __attribute__((vector_size(8 * W), aligned(8), may_alias));
typedef int32_t mi __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef int64_t ml __attribute__((vector_size(8 * W), aligned(8), may_alias));
typedef uint32_t mu __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef uint64_t mq __attribute__((vector_size(8 * W), aligned(8), may_alias));

/* x - 0 keeps the sign of zero; x + 0 would not. */
KC_LANE vf kc_splat(float x) { return x - (vf){}; }
KC_D(KC_LANE vd kc_splat(double x) { return x - (vd){}; })
KC_LANE vi kc_splat(int32_t x) { return x - (vi){}; }
KC_L(KC_LANE vl kc_splat(int64_t x) { return x - (vl){}; })
KC_U(KC_LANE vu kc_splat(uint32_t x) { return x - (vu){}; })
KC_Q(KC_LANE vq kc_splat(uint64_t x) { return x - (vq){}; })
KC_LANE vb kc_splat(bool x) { return kc_splat((int32_t)-x); }

/* f of each lane, as constants: arithmetic on vectors would be folded lane by lane, at every use. */
#if KC_LANES == 16
#define KC_LIST(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#elif KC_LANES == 8
#define KC_LIST(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#elif KC_LANES == 4
#define KC_LIST(f) f(0), f(1), f(2), f(3)
#else
#define KC_LIST(f) f(0), f(1)
#endif
#define KC_EACH(f) {KC_LIST(f)}
/* Lane l is lane f(l) of a, and of b behind it; I is a vector of integers of the same shape. */
#ifdef __clang__
#define KC_SHUFFLE(a, b, I, f) __builtin_shufflevector(a, b, KC_LIST(f))
#else
#define KC_SHUFFLE(a, b, I, f) __builtin_shuffle(a, b, (I)KC_EACH(f))
#endif
#define KC_SELF(l) l
#define KC_IOTA KC_EACH(KC_SELF)
KC_LANE vi kc_iota() { return (vi)KC_IOTA; }

KC_L(KC_LANE vl kc_wide(vb m) { return __builtin_convertvector(m, vl); })
KC_LANE vf kc_select(vb m, vf a, vf b) { return m ? a : b; }
KC_LANE vi kc_select(vb m, vi a, vi b) { return m ? a : b; }
KC_U(KC_LANE vu kc_select(vb m, vu a, vu b) { return m ? a : b; })
KC_Q(KC_LANE vq kc_select(vb m, vq a, vq b) { return kc_wide(m) ? a : b; })
KC_D(KC_LANE vd kc_select(vb m, vd a, vd b) { return kc_wide(m) ? a : b; })
KC_L(KC_LANE vl kc_select(vb m, vl a, vl b) { return kc_wide(m) ? a : b; })
KC_LANE vb kc_mask(vi m) { return m; }
KC_L(KC_LANE vb kc_mask(vl m) { return __builtin_convertvector(m, vb); })

/* One bit per lane. */
KC_LANE uint32_t kc_bits(vb m) {
#if KC_LANES == 16 && defined(__AVX512DQ__)
    return (uint16_t)__builtin_ia32_cvtd2mask512((int __attribute__((vector_size(64))))m);
#elif KC_LANES == 8 && defined(__AVX2__)
    return (uint32_t)__builtin_ia32_movmskps256((float __attribute__((vector_size(32))))m);
#elif KC_LANES == 4 && defined(__SSE2__)
    return (uint32_t)__builtin_ia32_movmskps((float __attribute__((vector_size(16))))m);
#else
    uint32_t bits = 0;
    for (int l = 0; l < W; ++l) bits |= (uint32_t)(m[l] & 1) << l;
    return bits;
#endif
}
KC_LANE bool kc_any(vb m) { return kc_bits(m) != 0; }
KC_LANE bool kc_all(vb m) { return kc_bits(m) == (uint32_t)((UINT64_C(1) << W) - 1); }
#ifdef KC_WITH_HIGHEST
#define KC_HIGHEST(T, V, least) \
    KC_LANE T kc_highest(vb m, V x) { \
        T r = least; \
        for (int l = 0; l < W; ++l) r = m[l] && x[l] > r ? x[l] : r; \
        return r; \
    }
KC_HIGHEST(int32_t, vi, INT32_MIN) KC_L(KC_HIGHEST(int64_t, vl, INT64_MIN))
#undef KC_HIGHEST
#endif

/* ---- memory: elements of N leaves of one type T; V the register, M the memory form, I its indices */
#define KC_TYPES(macro) \
    KC_F(macro(float32, float, vf, mf, vi)) KC_D(macro(float64, double, vd, md, vl)) \
    KC_I(macro(int32, int32_t, vi, mi, vi)) KC_L(macro(int64, int64_t, vl, ml, vl)) \
    KC_U(macro(uint32, uint32_t, vu, mu, vi)) KC_Q(macro(uint64, uint64_t, vq, mq, vl))

#ifdef KC_WITH_LOADS
#include "lanes/loads.h"
#endif
#ifdef KC_WITH_GATHERS
#include "lanes/gathers.h"
#endif
#ifdef KC_WITH_STORES
#include "lanes/stores.h"
#endif
#ifdef KC_WITH_QUADS
#include "lanes/quads.h"
#endif
#ifdef KC_WITH_STORED
#include "lanes/stored.h"
#endif
#ifdef KC_WITH_SUMS
#include "lanes/sums.h"
#endif
#undef KC_TYPES

/* ---- operations on numbers, lane by lane */
#define KC_EACH1(V, name) KC_LANE V name(V a) { V r; for (int l = 0; l < W; ++l) r[l] = ::name(a[l]); return r; }
#define KC_EACH2(V, name) KC_LANE V name(V a, V b) { V r; for (int l = 0; l < W; ++l) r[l] = ::name(a[l], b[l]); return r; }
#include "lanes/operations.h"
#include "lanes/mathematics.h"
#undef KC_EACH1
#undef KC_EACH2

} /* namespace */

#undef W
#undef KC_IOTA
#undef KC_F
#undef KC_D
#undef KC_I
#undef KC_L
#undef KC_U
#undef KC_Q
#undef KC_EACH
#undef KC_LIST
#undef KC_SHUFFLE
#undef KC_LANE
#undef KC_LANES
