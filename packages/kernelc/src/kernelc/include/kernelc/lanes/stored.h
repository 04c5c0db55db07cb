/* A part of lanes.h: memory of few bits. Integers come and go as int32, halves as reals (kernelc/stored.h). */
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
