/* A part of lanes.h: operations on numbers, lane by lane, with the meaning that kernel.h gives them. */
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

#ifdef KC_WITH_CASTS
#define KC_TO_INT(V, R, name) KC_LANE R name(V x) { R r; for (int l = 0; l < W; ++l) r[l] = ::name(x[l]); return r; }
KC_TO_INT(vf, vi, kc_to_int32) KC_L(KC_TO_INT(vf, vl, kc_to_int64)) KC_U(KC_TO_INT(vf, vu, kc_to_uint32))
KC_Q(KC_TO_INT(vf, vq, kc_to_uint64)) KC_D(KC_Q(KC_TO_INT(vd, vq, kc_to_uint64)))
KC_D(KC_TO_INT(vd, vi, kc_to_int32) KC_L(KC_TO_INT(vd, vl, kc_to_int64)) KC_U(KC_TO_INT(vd, vu, kc_to_uint32)))
#undef KC_TO_INT
#endif
