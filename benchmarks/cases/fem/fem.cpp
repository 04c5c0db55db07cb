// Stable neo-Hookean tetrahedra by hand: one function of the element, in scalars and in the lanes of the machine; the
// lanes on as many threads as there are.
// The reverse sweep uses the symmetry of the Hessian: the adjoint of the positions is the force's derivative along the
// adjoint of the forces.
#include <stdint.h>
#include <string.h>

#include <vector>

#include "../by_hand.hpp"

typedef float f4 __attribute__((vector_size(16)));
typedef float f8 __attribute__((vector_size(32)));

namespace {

template <class V> struct Element {
    V B[9], volume, mu, lam;
};

template <class V> void cofactor(const V* F, V* C) {
    C[0] = F[4] * F[8] - F[5] * F[7];
    C[1] = F[5] * F[6] - F[3] * F[8];
    C[2] = F[3] * F[7] - F[4] * F[6];
    C[3] = F[2] * F[7] - F[1] * F[8];
    C[4] = F[0] * F[8] - F[2] * F[6];
    C[5] = F[1] * F[6] - F[0] * F[7];
    C[6] = F[1] * F[5] - F[2] * F[4];
    C[7] = F[2] * F[3] - F[0] * F[5];
    C[8] = F[0] * F[4] - F[1] * F[3];
}

// The derivative of the cofactors along D.
template <class V> void cofactor_along(const V* F, const V* D, V* C) {
    C[0] = D[4] * F[8] + F[4] * D[8] - D[5] * F[7] - F[5] * D[7];
    C[1] = D[5] * F[6] + F[5] * D[6] - D[3] * F[8] - F[3] * D[8];
    C[2] = D[3] * F[7] + F[3] * D[7] - D[4] * F[6] - F[4] * D[6];
    C[3] = D[2] * F[7] + F[2] * D[7] - D[1] * F[8] - F[1] * D[8];
    C[4] = D[0] * F[8] + F[0] * D[8] - D[2] * F[6] - F[2] * D[6];
    C[5] = D[1] * F[6] + F[1] * D[6] - D[0] * F[7] - F[0] * D[7];
    C[6] = D[1] * F[5] + F[1] * D[5] - D[2] * F[4] - F[2] * D[4];
    C[7] = D[2] * F[3] + F[2] * D[3] - D[0] * F[5] - F[0] * D[5];
    C[8] = D[0] * F[4] + F[0] * D[4] - D[1] * F[3] - F[1] * D[3];
}

// x: positions of the four corners, x[corner][axis].
template <class V> void gradient(const V x[4][3], const V* B, V* F) {
    for (int i = 0; i < 3; ++i) {
        const V a = x[1][i] - x[0][i], b = x[2][i] - x[0][i], c = x[3][i] - x[0][i];
        for (int j = 0; j < 3; ++j) F[3 * i + j] = a * B[j] + b * B[3 + j] + c * B[6 + j];
    }
}

// Force on the corners from stress P.
template <class V> void spread(const V* P, const V* B, V scale, V f[4][3]) {
    for (int i = 0; i < 3; ++i) {
        for (int k = 0; k < 3; ++k)
            f[k + 1][i] = scale * (P[3 * i] * B[3 * k] + P[3 * i + 1] * B[3 * k + 1] + P[3 * i + 2] * B[3 * k + 2]);
        f[0][i] = -(f[1][i] + f[2][i] + f[3][i]);
    }
}

template <class V> V dot9(const V* a, const V* b) {
    V s = a[0] * b[0];
    for (int i = 1; i < 9; ++i) s += a[i] * b[i];
    return s;
}

template <class V> void force(const V x[4][3], const Element<V>& e, V f[4][3]) {
    V F[9], C[9], P[9];
    gradient(x, e.B, F);
    cofactor(F, C);
    const V J = F[0] * C[0] + F[1] * C[1] + F[2] * C[2];
    const V shear = e.mu - e.mu / (dot9(F, F) + 1), press = e.lam * (J - 1) - e.mu * 0.75f;
    for (int i = 0; i < 9; ++i) P[i] = shear * F[i] + press * C[i];
    spread(P, e.B, -e.volume, f);
}

// d: adjoint of the forces; out: adjoint of the positions.
template <class V> void force_adjoint(const V x[4][3], const V d[4][3], const Element<V>& e, V out[4][3], V& mu, V& lam) {
    V F[9], C[9], D[9], CD[9], P[9];
    gradient(x, e.B, F);
    gradient(d, e.B, D);
    cofactor(F, C);
    cofactor_along(F, D, CD);
    const V J = F[0] * C[0] + F[1] * C[1] + F[2] * C[2];
    const V inverse = 1 / (dot9(F, F) + 1), FD = dot9(F, D), JD = dot9(C, D);
    const V shear = e.mu - e.mu * inverse, press = e.lam * (J - 1) - e.mu * 0.75f;
    const V by_F = 2 * e.mu * FD * inverse * inverse, by_C = e.lam * JD;
    for (int i = 0; i < 9; ++i) P[i] = shear * D[i] + by_F * F[i] + press * CD[i] + by_C * C[i];
    spread(P, e.B, -e.volume, out);
    mu += -e.volume * ((1 - inverse) * FD - JD * 0.75f);
    lam += -e.volume * (J - 1) * JD;
}

// ------------------------------------------------------------------------------------------------ one at a time
template <class T> struct Scalar {
    const int32_t* __restrict tets;
    const T *__restrict inverse, *__restrict volume, *__restrict mu, *__restrict lam;
    int64_t count;

    Element<T> element(int64_t t) const {
        Element<T> e;
        for (int i = 0; i < 9; ++i) e.B[i] = inverse[9 * t + i];
        e.volume = volume[t], e.mu = mu[t], e.lam = lam[t];
        return e;
    }
    void load(const T* from, int64_t t, T to[4][3]) const {
        for (int c = 0; c < 4; ++c)
            for (int i = 0; i < 3; ++i) to[c][i] = from[3 * tets[4 * t + c] + i];
    }
    void add(T* to, int64_t t, const T from[4][3]) const {
        for (int c = 0; c < 4; ++c)
            for (int i = 0; i < 3; ++i) to[3 * tets[4 * t + c] + i] += from[c][i];
    }
    void forces(const T* __restrict x, T* __restrict f) const {
        for (int64_t t = 0; t < count; ++t) {
            T corners[4][3], result[4][3];
            load(x, t, corners);
            force(corners, element(t), result);
            add(f, t, result);
        }
    }
    void forces_adjoint(const T* __restrict x, const T* __restrict fb, T* __restrict xb, T* __restrict mub,
                        T* __restrict lamb) const {
        for (int64_t t = 0; t < count; ++t) {
            T corners[4][3], d[4][3], result[4][3];
            load(x, t, corners);
            load(fb, t, d);
            force_adjoint(corners, d, element(t), result, mub[t], lamb[t]);
            add(xb, t, result);
        }
    }
};

template <class T>
void rollout_scalar(const T* x0, const T* v0, const int32_t* tets, const T* inverse, const T* volume, const T* mu,
                    const T* lam, const T* weight, const T* seed, T* out, T* xb, T* vb, T* mub, T* lamb, int64_t n,
                    int64_t count, int64_t steps, T dt, T g, bool back) {
    const Scalar<T> body{tets, inverse, volume, mu, lam, count};
    static std::vector<T> x, v, f;
    x.resize(3 * n * (steps + 1)), v.resize(3 * n), f.resize(3 * n);
    memcpy(x.data(), x0, 3 * n * sizeof(T));
    memcpy(v.data(), v0, 3 * n * sizeof(T));
    const T gravity[3] = {0, g, 0};
    for (int64_t s = 0; s < steps; ++s) {
        const T* now = x.data() + 3 * n * s;
        T* next = x.data() + 3 * n * (s + 1);
        memset(f.data(), 0, 3 * n * sizeof(T));
        body.forces(now, f.data());
        for (int64_t p = 0; p < n; ++p)
            for (int i = 0; i < 3; ++i) {
                v[3 * p + i] += dt * (f[3 * p + i] * weight[p] + gravity[i]);
                next[3 * p + i] = now[3 * p + i] + dt * v[3 * p + i];
            }
    }
    memcpy(out, x.data() + 3 * n * steps, 3 * n * sizeof(T));
    if (!back) return;
    memcpy(xb, seed, 3 * n * sizeof(T));
    memset(vb, 0, 3 * n * sizeof(T));
    memset(mub, 0, count * sizeof(T));
    memset(lamb, 0, count * sizeof(T));
    for (int64_t s = steps - 1; s >= 0; --s) {
        for (int64_t p = 0; p < n; ++p)
            for (int i = 0; i < 3; ++i) {
                vb[3 * p + i] += dt * xb[3 * p + i];
                f[3 * p + i] = dt * weight[p] * vb[3 * p + i];
            }
        body.forces_adjoint(x.data() + 3 * n * s, f.data(), xb, mub, lamb);
    }
}

// ------------------------------------------------------------------------------------------------ in lanes
f8 join(f4 a, f4 b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7); }

#ifdef __AVX512F__
Lanes gather(const f4* from, const int32_t* at) {
    const f8 low = join(from[at[0]], from[at[4]]), high = join(from[at[8]], from[at[12]]);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define ODD(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#else
Lanes gather(const f4* from, const int32_t* at) { return join(from[at[0]], from[at[4]]); }
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define ODD(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#endif

// Four rows of lanes: each four columns are a 4 x 4 matrix, transposed on its own.
void transpose(Lanes r[4]) {
    const Lanes a = LOW(r[0], r[1]), b = LOW(r[2], r[3]), c = HIGH(r[0], r[1]), d = HIGH(r[2], r[3]);
    r[0] = EVEN(a, b), r[1] = ODD(a, b), r[2] = EVEN(c, d), r[3] = ODD(c, d);
}

struct Group {
    int32_t corner[4][LANES];
    Element<Lanes> element;
};

void load(const f4* from, const Group& g, Lanes to[4][3]) {
    for (int c = 0; c < 4; ++c) {
        Lanes r[4];
        for (int k = 0; k < 4; ++k) r[k] = gather(from, g.corner[c] + k);
        transpose(r);
        for (int i = 0; i < 3; ++i) to[c][i] = r[i];
    }
}

void add(f4* to, const Group& g, const Lanes from[4][3]) {
    for (int c = 0; c < 4; ++c) {
        Lanes r[4] = {from[c][0], from[c][1], from[c][2], Lanes{}};
        transpose(r);
        for (int k = 0; k < 4; ++k) {
            const int32_t* at = g.corner[c] + k;
            to[at[0]] += __builtin_shufflevector(r[k], r[k], 0, 1, 2, 3);
            to[at[4]] += __builtin_shufflevector(r[k], r[k], 4, 5, 6, 7);
#ifdef __AVX512F__
            to[at[8]] += __builtin_shufflevector(r[k], r[k], 8, 9, 10, 11);
            to[at[12]] += __builtin_shufflevector(r[k], r[k], 12, 13, 14, 15);
#endif
        }
    }
}

// Vertices in fours; lanes beyond the last tetrahedron work on a vertex of their own, with no volume.
void rollout_simd(const float* x0, const float* v0, const int32_t* tets, const float* inverse, const float* volume,
                  const float* mu, const float* lam, const float* weight, const float* seed, float* out, float* xb_out,
                  float* vb_out, float* mub_out, float* lamb_out, int64_t n, int64_t count, int64_t steps, float dt,
                  float g, bool back) {
    static const void* prepared = nullptr;
    static std::vector<Group> groups;
    const int64_t lots = (count + LANES - 1) / LANES;
    if (prepared != tets || (int64_t)groups.size() != lots) {  // as a tape is recorded once
        prepared = tets;
        groups.assign(lots, Group{});
        for (int64_t t = 0; t < lots * LANES; ++t)
            for (int c = 0; c < 4; ++c) groups[t / LANES].corner[c][t % LANES] = t < count ? tets[4 * t + c] : n;
    }
    for (int64_t t = 0; t < count; ++t) {
        Element<Lanes>& e = groups[t / LANES].element;
        const int l = t % LANES;
        for (int i = 0; i < 9; ++i) e.B[i][l] = inverse[9 * t + i];
        e.volume[l] = volume[t], e.mu[l] = mu[t], e.lam[l] = lam[t];
    }
    // Threads add to memory of their own, which whoever moves a vertex sums up: [0] is the array itself.
    const int threads = team::threads();
    static std::vector<f4> x, v, fb, vb;
    static std::vector<std::vector<f4>> sums;
    static std::vector<Lanes> mub, lamb;
    x.resize((n + 1) * (steps + 1)), v.resize(n + 1), fb.resize(n + 1), vb.resize(n + 1), sums.resize(threads);
    for (auto& sum : sums) sum.resize(n + 1);
    const auto widen = [n](const float* from, f4* to) {
        for (int64_t p = 0; p < n; ++p) to[p] = f4{from[3 * p], from[3 * p + 1], from[3 * p + 2], 0};
        to[n] = f4{};
    };
    const auto narrow = [n](const f4* from, float* to) {
        for (int64_t p = 0; p < n; ++p)
            for (int i = 0; i < 3; ++i) to[3 * p + i] = from[p][i];
    };
    const auto clear = [n](f4* to) { memset((void*)to, 0, (n + 1) * sizeof(f4)); };
    const auto total = [threads](int64_t p) {
        f4 sum = sums[0][p];
        for (int t = 1; t < threads; ++t) sum += sums[t][p];
        return sum;
    };
    widen(x0, x.data()), widen(v0, v.data());
    const f4 gravity = {0, g, 0, 0};
    team::Barrier barrier(threads);
    team::run(threads, [&](int t) {
        const int64_t first = lots * t / threads, last = lots * (t + 1) / threads;
        const int64_t low = n * t / threads, high = n * (t + 1) / threads;
        for (int64_t s = 0; s < steps; ++s) {
            const f4* now = x.data() + (n + 1) * s;
            f4* next = x.data() + (n + 1) * (s + 1);
            clear(sums[t].data());
            for (int64_t k = first; k < last; ++k) {
                Lanes corners[4][3], result[4][3];
                load(now, groups[k], corners);
                force(corners, groups[k].element, result);
                add(sums[t].data(), groups[k], result);
            }
            barrier.meet();
            for (int64_t p = low; p < high; ++p) {
                v[p] += dt * (total(p) * weight[p] + gravity);
                next[p] = now[p] + dt * v[p];
            }
            if (t == 0) next[n] = f4{};
            barrier.meet();
        }
    });
    narrow(x.data() + (n + 1) * steps, out);
    if (!back) return;
    widen(seed, sums[0].data()), clear(vb.data());
    for (int t = 1; t < threads; ++t) clear(sums[t].data());
    fb[n] = f4{};
    mub.assign(lots, Lanes{}), lamb.assign(lots, Lanes{});
    team::run(threads, [&](int t) {
        const int64_t first = lots * t / threads, last = lots * (t + 1) / threads;
        const int64_t low = n * t / threads, high = n * (t + 1) / threads;
        for (int64_t s = steps - 1; s >= 0; --s) {
            for (int64_t p = low; p < high; ++p) {
                const f4 xb = sums[0][p] = total(p);
                vb[p] += dt * xb;
                fb[p] = dt * weight[p] * vb[p];
            }
            barrier.meet();
            if (t > 0) clear(sums[t].data());
            const f4* now = x.data() + (n + 1) * s;
            for (int64_t k = first; k < last; ++k) {
                Lanes corners[4][3], d[4][3], result[4][3];
                load(now, groups[k], corners);
                load(fb.data(), groups[k], d);
                force_adjoint(corners, d, groups[k].element, result, mub[k], lamb[k]);
                add(sums[t].data(), groups[k], result);
            }
            barrier.meet();
        }
        for (int64_t p = low; p < high; ++p) sums[0][p] = total(p);
    });
    narrow(sums[0].data(), xb_out), narrow(vb.data(), vb_out);
    memcpy(mub_out, mub.data(), count * sizeof(float));
    memcpy(lamb_out, lamb.data(), count * sizeof(float));
}

}  // namespace

#define ROLLOUT(name, T, function)                                                                                     \
    extern "C" void name(const T* x, const T* v, const int32_t* tets, const T* inverse, const T* volume, const T* mu,  \
                         const T* lam, const T* weight, const T* seed, T* out, T* xb, T* vb, T* mub, T* lamb,          \
                         int64_t n, int64_t count, int64_t steps, double dt, double g, int64_t back) {                 \
        function(x, v, tets, inverse, volume, mu, lam, weight, seed, out, xb, vb, mub, lamb, n, count, steps, (T)dt,   \
                 (T)g, back != 0);                                                                                     \
    }
ROLLOUT(scalar_float32, float, rollout_scalar)
ROLLOUT(scalar_float64, double, rollout_scalar)
ROLLOUT(simd_float32, float, rollout_simd)
