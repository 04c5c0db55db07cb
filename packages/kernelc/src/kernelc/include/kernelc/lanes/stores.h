/* A part of lanes.h: stores of elements that lie side by side, each thread its own. */
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
