/* A part of lanes.h: loads of elements that lie side by side, each thread its own. */
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
