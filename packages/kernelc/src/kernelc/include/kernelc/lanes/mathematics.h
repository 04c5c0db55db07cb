/* A part of lanes.h: the functions of functions.h that are used, KC_MATH1(exp) KC_MATH2(pow) …, and those made of them. */
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
