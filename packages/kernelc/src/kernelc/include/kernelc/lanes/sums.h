/* A part of lanes.h: sums over the lanes of a group, in pairs: the same bits on every run. */
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
