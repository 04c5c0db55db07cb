/* A part of lanes.h: four leaves side by side of each lane's element, with as many instructions as for one and a few
   shuffles. */
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
