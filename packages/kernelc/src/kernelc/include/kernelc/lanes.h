/* A group of KC_LANES threads in vector registers: types, selection, memory and mathematics, lane by lane.
   Included once per width, with KC_LANES defined; everything lives in a namespace named after the width.
   The vector types are those of GCC and clang: the compiler maps them to whatever registers there are.
   A kernel asks by KC_WITH_… for the parts that it uses: the compiler reads this for every kernel, and reading all of it
   would take longer than compiling a small one. */

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
/* Every second element of two vectors from the first or second on; every third of three, two of which come first. */
#define KC_TWOS0(l) 2 * l
#define KC_TWOS1(l) 2 * l + 1
#define KC_THREES(at) (at) % (2 * W)
#define KC_THREES0(l) KC_THREES(3 * l)
#define KC_THREES1(l) KC_THREES(3 * l + 1)
#define KC_THREES2(l) KC_THREES(3 * l + 2)
#define KC_REST(l, at) (at) < 2 * W ? l : (at) - W
#define KC_REST0(l) KC_REST(l, 3 * l)
#define KC_REST1(l) KC_REST(l, 3 * l + 1)
#define KC_REST2(l) KC_REST(l, 3 * l + 2)
#define KC_LOADS(name, T, V, M, I) \
    KC_LANE V kc_read(const T* p) { return *(const M*)p; } \
    /* How elements of several leaves come apart; c is a constant once this is inlined. */ \
    KC_LANE V kc_every2(V a, V b, int c) { \
        return c ? KC_SHUFFLE(a, b, I, KC_TWOS1) : KC_SHUFFLE(a, b, I, KC_TWOS0); \
    } \
    KC_LANE V kc_every3(V a, V b, V d, int c) { \
        if (c == 0) return KC_SHUFFLE(KC_SHUFFLE(a, b, I, KC_THREES0), d, I, KC_REST0); \
        if (c == 1) return KC_SHUFFLE(KC_SHUFFLE(a, b, I, KC_THREES1), d, I, KC_REST1); \
        return KC_SHUFFLE(KC_SHUFFLE(a, b, I, KC_THREES2), d, I, KC_REST2); \
    } \
    template <int N> KC_LANE V kc_load_own(const T* p, int c) { \
        if (N == 1) return kc_read(p); \
        if (N == 2) return kc_every2(kc_read(p), kc_read(p + W), c); \
        if (N == 3) return kc_every3(kc_read(p), kc_read(p + W), kc_read(p + 2 * W), c); \
        if (N == 4) \
            return kc_every2(kc_every2(kc_read(p), kc_read(p + W), c & 1), \
                             kc_every2(kc_read(p + 2 * W), kc_read(p + 3 * W), c & 1), c >> 1); \
        if (N == 9) \
            return kc_every3(kc_every3(kc_read(p), kc_read(p + W), kc_read(p + 2 * W), c % 3), \
                             kc_every3(kc_read(p + 3 * W), kc_read(p + 4 * W), kc_read(p + 5 * W), c % 3), \
                             kc_every3(kc_read(p + 6 * W), kc_read(p + 7 * W), kc_read(p + 8 * W), c % 3), c / 3); \
        V r; \
        for (int l = 0; l < W; ++l) r[l] = p[N * l + c]; \
        return r; \
    }
KC_TYPES(KC_LOADS)
#undef KC_LOADS
#endif

#ifdef KC_WITH_GATHERS
/* Compilers make these loops one gather instruction. */
#define KC_GATHERS(name, T, V, M, I) \
    KC_LANE V kc_gather(const T* p, vi at) { \
        V r; \
        for (int l = 0; l < W; ++l) r[l] = p[at[l]]; \
        return r; \
    } \
    KC_LANE V kc_gather_##name(const char* p, vl at) { \
        V r; \
        for (int l = 0; l < W; ++l) r[l] = *(const T*)(p + at[l]); \
        return r; \
    }
KC_TYPES(KC_GATHERS)
#undef KC_GATHERS
KC_LANE vb kc_gather_bytes(const uint8_t* p, vl at) {
    vb r;
    for (int l = 0; l < W; ++l) r[l] = -(int32_t)(p[at[l]] != 0);
    return r;
}
#endif

#ifdef KC_WITH_STORES
/* a, b (, c) of each element side by side: where each lane comes from. */
#define KC_LOW(l) l % 2 * W + l / 2
#define KC_HIGH(l) KC_LOW(l) + W / 2
#define KC_AB(at) (at) % 3 == 1 ? W + (at) / 3 : (at) / 3
#define KC_AB0(l) KC_AB(l)
#define KC_AB1(l) KC_AB(W + l)
#define KC_AB2(l) KC_AB(2 * W + l)
#define KC_C(l, at) (at) % 3 == 2 ? W + (at) / 3 : l
#define KC_C0(l) KC_C(l, l)
#define KC_C1(l) KC_C(l, W + l)
#define KC_C2(l) KC_C(l, 2 * W + l)
#define KC_STORES(name, T, V, M, I) \
    KC_LANE void kc_store_own(T* p, V a) { *(M*)p = a; } \
    KC_LANE void kc_store_own(T* p, V a, V b) { \
        *(M*)p = KC_SHUFFLE(a, b, I, KC_LOW); \
        *(M*)(p + W) = KC_SHUFFLE(a, b, I, KC_HIGH); \
    } \
    KC_LANE void kc_store_own(T* p, V a, V b, V c) { \
        *(M*)p = KC_SHUFFLE(KC_SHUFFLE(a, b, I, KC_AB0), c, I, KC_C0); \
        *(M*)(p + W) = KC_SHUFFLE(KC_SHUFFLE(a, b, I, KC_AB1), c, I, KC_C1); \
        *(M*)(p + 2 * W) = KC_SHUFFLE(KC_SHUFFLE(a, b, I, KC_AB2), c, I, KC_C2); \
    }
KC_TYPES(KC_STORES)
#undef KC_STORES
#endif

/* ---- four leaves side by side of each lane's element: as many instructions as for one, and a few shuffles */
#ifdef KC_WITH_QUADS
#ifndef KC_HAS_JOIN
#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define KC_HAS_JOIN 1
#endif
#endif
#endif
/* Within each four lanes: every second of the first or last two of a and b in turn; the first or last two of both. */
#define KC_TURN(l) l % 2 * W + l / 4 * 4 + l % 4 / 2
#define KC_TURN_LOW(l) KC_TURN(l)
#define KC_TURN_HIGH(l) KC_TURN(l) + 2
#define KC_PAIR(l) (l % 4 < 2 ? 0 : W - 2) + l
#define KC_PAIR_LOW(l) KC_PAIR(l)
#define KC_PAIR_HIGH(l) KC_PAIR(l) + 2
#define KC_PART(x, i) __builtin_shufflevector(x, x, 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3)
#if KC_LANES == 16
#define KC_SPLIT(q, k, x) \
    q[k] = KC_PART(x, 0), q[k + 4] = KC_PART(x, 1), q[k + 8] = KC_PART(x, 2), q[k + 12] = KC_PART(x, 3);
#define KC_JOIN(q, k) \
    __builtin_shufflevector(__builtin_shufflevector(q[k], q[4 + k], 0, 1, 2, 3, 4, 5, 6, 7), \
                            __builtin_shufflevector(q[8 + k], q[12 + k], 0, 1, 2, 3, 4, 5, 6, 7), \
                            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif KC_LANES == 8
#define KC_SPLIT(q, k, x) q[k] = KC_PART(x, 0), q[k + 4] = KC_PART(x, 1);
#define KC_JOIN(q, k) __builtin_shufflevector(q[k], q[4 + k], 0, 1, 2, 3, 4, 5, 6, 7)
#else
#define KC_SPLIT(q, k, x) q[k] = x;
#define KC_JOIN(q, k) q[k]
#endif
#if defined(KC_HAS_JOIN) && KC_LANES % 4 == 0
#define KC_QUAD_BODY(name, T, V, I) \
    /* Rows and columns of each four lanes change places. */ \
    KC_LANE void kc_turn(V& a, V& b, V& c, V& d) { \
        const V e = KC_SHUFFLE(a, b, I, KC_TURN_LOW), f = KC_SHUFFLE(c, d, I, KC_TURN_LOW); \
        const V g = KC_SHUFFLE(a, b, I, KC_TURN_HIGH), h = KC_SHUFFLE(c, d, I, KC_TURN_HIGH); \
        a = KC_SHUFFLE(e, f, I, KC_PAIR_LOW), b = KC_SHUFFLE(e, f, I, KC_PAIR_HIGH); \
        c = KC_SHUFFLE(g, h, I, KC_PAIR_LOW), d = KC_SHUFFLE(g, h, I, KC_PAIR_HIGH); \
    } \
    KC_LANE void kc_join(const name##_quad* q, V& a, V& b, V& c, V& d) { \
        a = (V)KC_JOIN(q, 0), b = (V)KC_JOIN(q, 1), c = (V)KC_JOIN(q, 2), d = (V)KC_JOIN(q, 3); \
        kc_turn(a, b, c, d); \
    } \
    KC_LANE void kc_quads(name##_quad* q, V a, V b, V c, V d) { \
        kc_turn(a, b, c, d); \
        KC_SPLIT(q, 0, a) KC_SPLIT(q, 1, b) KC_SPLIT(q, 2, c) KC_SPLIT(q, 3, d) \
    }
#else
#define KC_QUAD_BODY(name, T, V, I) \
    KC_LANE void kc_join(const name##_quad* q, V& a, V& b, V& c, V& d) { \
        for (int l = 0; l < W; ++l) a[l] = q[l][0], b[l] = q[l][1], c[l] = q[l][2], d[l] = q[l][3]; \
    } \
    KC_LANE void kc_quads(name##_quad* q, V a, V b, V c, V d) { \
        for (int l = 0; l < W; ++l) q[l] = (name##_quad){a[l], b[l], c[l], d[l]}; \
    }
#endif
#define KC_QUAD_AT(l) *(const Q*)(p + at[l])
#define KC_QUAD_OWN(l) *(const Q*)(p + N * l)
#define KC_QUADS(name, T, V, M, I) \
    typedef T name##_quad __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias)); \
    KC_QUAD_BODY(name, T, V, I) \
    KC_LANE void kc_load4(const T* p, vi at, V& a, V& b, V& c, V& d) { \
        typedef name##_quad Q; \
        const Q q[W] = {KC_LIST(KC_QUAD_AT)}; \
        kc_join(q, a, b, c, d); \
    } \
    KC_LANE void kc_load4_##name(const char* p, vl at, V& a, V& b, V& c, V& d) { \
        typedef name##_quad Q; \
        const Q q[W] = {KC_LIST(KC_QUAD_AT)}; \
        kc_join(q, a, b, c, d); \
    } \
    template <int N> KC_LANE void kc_load4_own(const T* p, V& a, V& b, V& c, V& d) { \
        typedef name##_quad Q; \
        const Q q[W] = {KC_LIST(KC_QUAD_OWN)}; \
        kc_join(q, a, b, c, d); \
    } \
    template <int N> KC_LANE void kc_store4_own(T* p, V a, V b, V c, V d) { \
        name##_quad q[W]; \
        kc_quads(q, a, b, c, d); \
        _Pragma("GCC unroll 16") for (int l = 0; l < W; ++l) *(name##_quad*)(p + N * l) = q[l]; \
    }
KC_F(KC_QUADS(float32, float, vf, mf, vi)) KC_D(KC_QUADS(float64, double, vd, md, vl))
#undef KC_QUADS
#undef KC_QUAD_BODY
#undef KC_QUAD_AT
#undef KC_QUAD_OWN
#undef KC_SPLIT
#undef KC_JOIN
#undef KC_PART
#endif

/* ---- memory of few bits: integers come and go as int32, halves as reals (stored.h) */
#ifdef KC_WITH_STORED
#ifdef __OPTIMIZE__ /* without it, GCC 12 fails on conversions of 16 integers */
#define KC_FEW(x) x
#else
#define KC_FEW(x)
#endif
#define KC_SMALL(name, T) \
    typedef T name##_few __attribute__((vector_size(W * sizeof(T)), aligned(sizeof(T)), may_alias)); \
    template <int N> KC_LANE vi kc_load_own(const T* p, int c) { \
        KC_FEW(if (N == 1) return __builtin_convertvector(*(const name##_few*)p, vi);) \
        vi r; \
        for (int l = 0; l < W; ++l) r[l] = p[N * l + c]; \
        return r; \
    } \
    KC_LANE vi kc_gather(const T* p, vi at) { \
        vi r; \
        for (int l = 0; l < W; ++l) r[l] = p[at[l]]; \
        return r; \
    } \
    KC_LANE vi kc_gather_##name(const char* p, vl at) { \
        vi r; \
        for (int l = 0; l < W; ++l) r[l] = *(const T*)(p + at[l]); \
        return r; \
    } \
    KC_LANE void kc_store_own(T* p, vi a) { \
        KC_FEW(*(name##_few*)p = __builtin_convertvector(a, name##_few); return;) \
        for (int l = 0; l < W; ++l) p[l] = (T)a[l]; \
    } \
    KC_LANE void kc_store_own(T* p, vi a, vi b) { \
        for (int l = 0; l < W; ++l) p[2 * l] = (T)a[l], p[2 * l + 1] = (T)b[l]; \
    } \
    KC_LANE void kc_store_own(T* p, vi a, vi b, vi c) { \
        for (int l = 0; l < W; ++l) p[3 * l] = (T)a[l], p[3 * l + 1] = (T)b[l], p[3 * l + 2] = (T)c[l]; \
    }
KC_SMALL(int8, int8_t) KC_SMALL(uint8, uint8_t) KC_SMALL(int16, int16_t) KC_SMALL(uint16, uint16_t)
#undef KC_SMALL
#undef KC_FEW
#ifdef KERNELC_STORED_H
#define KC_HALVES(name) \
    template <int N> KC_LANE vf kc_load_own(const kc_##name* p, int c) { \
        return kc_widen_##name<vf>(kc_load_own<N>((const uint16_t*)p, c)); \
    } \
    KC_LANE vf kc_gather(const kc_##name* p, vi at) { \
        return kc_widen_##name<vf>(kc_gather((const uint16_t*)p, at)); \
    } \
    KC_LANE vf kc_gather_##name(const char* p, vl at) { return kc_widen_##name<vf>(kc_gather_uint16(p, at)); } \
    KC_LANE vi kc_narrow(const kc_##name*, vf a) { return kc_narrow_##name<vi>(a); } \
    KC_LANE vi kc_narrow(const kc_##name*, vd a) { \
        vi r; \
        for (int l = 0; l < W; ++l) r[l] = kc_narrow_##name<int32_t>(kc_cut(a[l])); \
        return r; \
    } \
    template <class... V> KC_LANE void kc_store_own(kc_##name* p, V... a) { \
        kc_store_own((uint16_t*)p, kc_narrow(p, a)...); \
    }
KC_HALVES(float16) KC_HALVES(bfloat16)
#undef KC_HALVES
#endif
#endif

#ifdef KC_WITH_SUMS
/* The sum of the halves of a vector: the narrower, the cheaper. */
template <class Half, class V> KC_LANE Half kc_halves(V x) {
    Half low, high;
    __builtin_memcpy(&low, &x, sizeof low);
    __builtin_memcpy(&high, (const char*)&x + sizeof low, sizeof high);
    return low + high;
}
#if KC_LANES == 16
#define KC_FOLD(name, x) kc_halves<name##_four>(kc_halves<name##_eight>(x))
#elif KC_LANES == 8
#define KC_FOLD(name, x) kc_halves<name##_four>(x)
#elif KC_LANES == 4
#define KC_FOLD(name, x) x
#else
#define KC_FOLD(name, x) name##_four{} /* never called: two lanes are added without it */
#endif
/* Sums of neighbours: where each lane comes from. */
#define KC_EVEN(l) l / 4 * 4 + l % 2 * 2 + l / 2 % 2 * W
#define KC_ODD(l) KC_EVEN(l) + 1
#define KC_BESIDE8(l) (l ^ 8) % W
#define KC_BESIDE4(l) (l ^ 4) % W
#define KC_BESIDE2(l) (l ^ 2) % W
#define KC_SUMS(name, T, V, M, I) \
    /* Of each four lanes two of a, then two of b. */ \
    KC_LANE V kc_pairs(V a, V b) { \
        return KC_SHUFFLE(a, b, I, KC_EVEN) + KC_SHUFFLE(a, b, I, KC_ODD); \
    } \
    /* The sums of the active lanes of four vectors. */ \
    typedef T name##_four __attribute__((vector_size(4 * sizeof(T)))); \
    typedef T name##_eight __attribute__((vector_size(8 * sizeof(T)))); \
    KC_LANE name##_four kc_sum4(bool full, vb active, V a, V b, V c, V d) { \
        if (KC_UNLIKELY(!full)) { \
            const V zero = {}; \
            a = kc_select(active, a, zero), b = kc_select(active, b, zero); \
            c = kc_select(active, c, zero), d = kc_select(active, d, zero); \
        } \
        return KC_FOLD(name, kc_pairs(kc_pairs(a, b), kc_pairs(c, d))); \
    } \
    /* Adds to four numbers side by side. */ \
    KC_LANE void kc_add4(T* p, name##_four x) { \
        typedef T there __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias)); \
        *(there*)p += x; \
    } \
    /* The sum of the active lanes, in pairs: the same bits on every run. */ \
    KC_LANE T kc_sum(bool full, vb active, V x) { \
        if (KC_UNLIKELY(!full)) x = kc_select(active, x, V{}); \
        if (W > 8) x += KC_SHUFFLE(x, x, I, KC_BESIDE8); \
        if (W > 4) x += KC_SHUFFLE(x, x, I, KC_BESIDE4); \
        if (W > 2) x += KC_SHUFFLE(x, x, I, KC_BESIDE2); \
        return x[0] + x[1]; \
    }
KC_TYPES(KC_SUMS)
#undef KC_SUMS
#undef KC_FOLD
/* Adds to three numbers side by side. */
#define KC_ADD3(name, T) KC_LANE void kc_add3(T* p, name##_four x) { p[0] += x[0], p[1] += x[1], p[2] += x[2]; }
#if defined(__AVX512VL__) && !defined(__clang__) /* clang's take pointers to vectors, and it needs none of them */
KC_F(KC_LANE void kc_add3(float* p, float32_four x) {
    __builtin_ia32_storeups128_mask(p, __builtin_ia32_loadups128_mask(p, float32_four{}, 7) + x, 7);
})
KC_D(KC_LANE void kc_add3(double* p, float64_four x) {
    __builtin_ia32_storeupd256_mask(p, __builtin_ia32_loadupd256_mask(p, float64_four{}, 7) + x, 7);
})
#else
KC_F(KC_ADD3(float32, float)) KC_D(KC_ADD3(float64, double))
#endif
KC_I(KC_ADD3(int32, int32_t)) KC_L(KC_ADD3(int64, int64_t)) KC_U(KC_ADD3(uint32, uint32_t))
KC_Q(KC_ADD3(uint64, uint64_t))
#undef KC_ADD3
#endif
#undef KC_TYPES

/* ---- scalar operations, lane by lane */
#define KC_EACH1(V, name) KC_LANE V name(V a) { V r; for (int l = 0; l < W; ++l) r[l] = ::name(a[l]); return r; }
#define KC_EACH2(V, name) KC_LANE V name(V a, V b) { V r; for (int l = 0; l < W; ++l) r[l] = ::name(a[l], b[l]); return r; }
#ifdef KC_WITH_DIVISION
#ifdef __OPTIMIZE__ /* without it, GCC 12 fails on conversions of 16 integers */
/* Quotients of 32 bits are exact in double precision once they are cut off. As kc_int_floordiv and kc_int_mod. */
KC_LANE vi kc_cut_quotient(vi a, vi b) {
    return __builtin_convertvector(__builtin_convertvector(a, vd) / __builtin_convertvector(b, vd), vi);
}
KC_LANE vi kc_floordiv(vi a, vi b) {
    const vi q = kc_cut_quotient(a, b), r = a - q * b;
    return b == 0 ? (vi){} : b == -1 ? -a : q + ((r != 0) & ((r ^ b) < 0));
}
KC_LANE vi kc_mod(vi a, vi b) {
    const vi r = a - kc_cut_quotient(a, b) * b;
    return (b == 0) | (b == -1) ? (vi){} : r + (b & ((r != 0) & ((r ^ b) < 0)));
}
#else
KC_EACH2(vi, kc_floordiv) KC_EACH2(vi, kc_mod)
#endif
KC_EACH2(vf, kc_floordiv) KC_D(KC_EACH2(vd, kc_floordiv)) KC_L(KC_EACH2(vl, kc_floordiv)) KC_U(KC_EACH2(vu, kc_floordiv))
KC_EACH2(vf, kc_mod) KC_D(KC_EACH2(vd, kc_mod)) KC_L(KC_EACH2(vl, kc_mod)) KC_U(KC_EACH2(vu, kc_mod))
KC_Q(KC_EACH2(vq, kc_floordiv) KC_EACH2(vq, kc_mod))
#endif
#ifdef KC_WITH_SHIFTS
KC_EACH2(vi, kc_shl) KC_L(KC_EACH2(vl, kc_shl)) KC_U(KC_EACH2(vu, kc_shl))
KC_EACH2(vi, kc_shr) KC_L(KC_EACH2(vl, kc_shr)) KC_U(KC_EACH2(vu, kc_shr))
KC_Q(KC_EACH2(vq, kc_shl) KC_EACH2(vq, kc_shr))
#endif
#ifdef KC_WITH_ROUNDING
KC_EACH1(vf, floorf) KC_EACH1(vf, ceilf) KC_EACH1(vf, truncf) KC_EACH1(vf, rintf)
KC_D(KC_EACH1(vd, floor) KC_EACH1(vd, ceil) KC_EACH1(vd, trunc) KC_EACH1(vd, rint))
#endif

/* One instruction each. GCC would find it for the loop over lanes as well, but takes ten times as long. */
#if defined(__GNUC__) && !defined(__clang__)
#if KC_LANES == 16 && defined(__AVX512F__)
#define KC_FMA_F(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)
#define KC_SQRT_F(a) __builtin_ia32_sqrtps512_mask(a, a, -1, 4)
#elif KC_LANES == 8 && defined(__FMA__)
#define KC_FMA_F __builtin_ia32_vfmaddps256
#define KC_SQRT_F __builtin_ia32_sqrtps256
#elif KC_LANES == 4 && defined(__FMA__)
#define KC_FMA_F __builtin_ia32_vfmaddps
#define KC_SQRT_F __builtin_ia32_sqrtps
#endif
#if KC_LANES == 8 && defined(__AVX512F__)
#define KC_FMA_D(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)
#define KC_SQRT_D(a) __builtin_ia32_sqrtpd512_mask(a, a, -1, 4)
#elif KC_LANES == 4 && defined(__FMA__)
#define KC_FMA_D __builtin_ia32_vfmaddpd256
#define KC_SQRT_D __builtin_ia32_sqrtpd256
#elif KC_LANES == 2 && defined(__FMA__)
#define KC_FMA_D __builtin_ia32_vfmaddpd
#define KC_SQRT_D __builtin_ia32_sqrtpd
#endif
#endif

#define KC_FMA(V) KC_LANE V kc_fma(V a, V b, V c) { V r; for (int l = 0; l < W; ++l) r[l] = ::kc_fma(a[l], b[l], c[l]); return r; }
#ifdef KC_FMA_F
KC_LANE vf kc_fma(vf a, vf b, vf c) { return KC_FMA_F(a, b, c); }
KC_LANE vf sqrtf(vf a) { return KC_SQRT_F(a); }
#else
KC_FMA(vf) KC_EACH1(vf, sqrtf)
#endif
#ifdef KC_FMA_D
KC_D(KC_LANE vd kc_fma(vd a, vd b, vd c) { return KC_FMA_D(a, b, c); }
     KC_LANE vd sqrt(vd a) { return KC_SQRT_D(a); })
#else
KC_D(KC_FMA(vd) KC_EACH1(vd, sqrt))
#endif
#undef KC_FMA
#undef KC_FMA_F
#undef KC_FMA_D
#undef KC_SQRT_F
#undef KC_SQRT_D

#ifdef KC_WITH_SIGNS
KC_LANE vf kc_abs(vf x) { return (vf)((vi)x & 0x7fffffff); }
KC_LANE vi kc_abs(vi x) { return x < 0 ? -x : x; }
KC_D(KC_LANE vd kc_abs(vd x) { return (vd)((vl)x & INT64_MAX); })
KC_L(KC_LANE vl kc_abs(vl x) { return x < 0 ? -x : x; })
KC_U(KC_LANE vu kc_abs(vu x) { return x; })
KC_Q(KC_LANE vq kc_abs(vq x) { return x; })
KC_LANE vf kc_copysign(vf x, vf s) { return (vf)(((vi)x & 0x7fffffff) | ((vi)s & INT32_MIN)); }
KC_D(KC_LANE vd kc_copysign(vd x, vd s) { return (vd)(((vl)x & INT64_MAX) | ((vl)s & INT64_MIN)); })
#define KC_REAL(V, S) \
    KC_LANE V kc_sign(V x) { return x > 0 ? kc_splat((S)1) : x < 0 ? kc_splat((S)-1) : x - x; } \
    KC_LANE V kc_step(V x) { return x > 0 ? kc_splat((S)1) : (V){}; } \
    KC_LANE vb kc_isfinite(V x) { return kc_mask(x - x == 0); }
KC_REAL(vf, float) KC_D(KC_REAL(vd, double))
#undef KC_REAL
KC_LANE vi kc_sign(vi x) { return (x < 0) - (x > 0); }
KC_L(KC_LANE vl kc_sign(vl x) { return (x < 0) - (x > 0); })
KC_U(KC_LANE vu kc_sign(vu x) { return x != 0 ? kc_splat(1u) : (vu){}; })
KC_Q(KC_LANE vq kc_sign(vq x) { return x != 0 ? kc_splat((uint64_t)1) : (vq){}; })
#endif
#ifdef KC_WITH_ORDER
#define KC_ORDER(V) \
    KC_LANE V kc_min(V a, V b) { return (a < b) | (a != a) ? a : b; } \
    KC_LANE V kc_max(V a, V b) { return (a > b) | (a != a) ? a : b; } \
    KC_LANE V kc_clamp(V x, V low, V high) { return kc_min(kc_max(x, low), high); }
KC_ORDER(vf) KC_ORDER(vi) KC_D(KC_ORDER(vd)) KC_L(KC_ORDER(vl)) KC_U(KC_ORDER(vu)) KC_Q(KC_ORDER(vq))
#undef KC_ORDER
#endif

/* ---- mathematics: the functions of functions.h that are used, KC_MATH1(exp) KC_MATH2(pow) … */
#ifdef KC_VECTOR
#define KC_MATH1(name) \
    KC_LANE vf kc_##name(vf x) { return kc_pieces<kc_many_f, KC_VECTOR_F(name, v)>(x); } \
    KC_D(KC_LANE vd kc_##name(vd x) { return kc_pieces<kc_many_d, KC_VECTOR_D(name, v)>(x); })
#define KC_MATH2(name) \
    KC_LANE vf kc_##name(vf x, vf y) { return kc_pieces<kc_many_f, KC_VECTOR_F(name, vv)>(x, y); } \
    KC_D(KC_LANE vd kc_##name(vd x, vd y) { return kc_pieces<kc_many_d, KC_VECTOR_D(name, vv)>(x, y); })
#else
#define KC_MATH1(name) KC_EACH1(vf, kc_##name) KC_D(KC_EACH1(vd, kc_##name))
#define KC_MATH2(name) KC_EACH2(vf, kc_##name) KC_D(KC_EACH2(vd, kc_##name))
#endif
KC_MATH
#undef KC_MATH1
#undef KC_MATH2

#ifdef KC_WITH_SIGMOID
#define KC_SIGMOID(V, S) \
    KC_LANE V kc_sigmoid(V x) { \
        const V e = kc_exp(-kc_abs(x)); \
        return (x < 0 ? e : kc_splat((S)1)) / ((S)1 + e); \
    }
KC_SIGMOID(vf, float) KC_D(KC_SIGMOID(vd, double))
#undef KC_SIGMOID
#endif
#ifdef KC_WITH_SOFTPLUS
KC_LANE vf kc_softplus(vf x) { return (x > 0 ? x : (vf){}) + kc_log1p(kc_exp(-kc_abs(x))); }
KC_D(KC_LANE vd kc_softplus(vd x) { return (x > 0 ? x : (vd){}) + kc_log1p(kc_exp(-kc_abs(x))); })
#endif
#undef KC_EACH1
#undef KC_EACH2

#ifdef KC_WITH_CASTS
#define KC_TO_INT(V, R, name) KC_LANE R name(V x) { R r; for (int l = 0; l < W; ++l) r[l] = ::name(x[l]); return r; }
KC_TO_INT(vf, vi, kc_to_int32) KC_L(KC_TO_INT(vf, vl, kc_to_int64)) KC_U(KC_TO_INT(vf, vu, kc_to_uint32))
KC_Q(KC_TO_INT(vf, vq, kc_to_uint64)) KC_D(KC_Q(KC_TO_INT(vd, vq, kc_to_uint64)))
KC_D(KC_TO_INT(vd, vi, kc_to_int32) KC_L(KC_TO_INT(vd, vl, kc_to_int64)) KC_U(KC_TO_INT(vd, vu, kc_to_uint32)))
#undef KC_TO_INT
#endif

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
