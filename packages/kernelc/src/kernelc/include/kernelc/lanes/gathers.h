/* A part of lanes.h: loads from anywhere, one address for each lane. */
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
