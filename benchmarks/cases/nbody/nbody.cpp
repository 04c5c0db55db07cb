// Softened gravity by hand: a_i = sum_j m_j d / (d.d + eps)^(3/2), d = x_j - x_i, and its adjoint.
#include <stdint.h>
#include <string.h>

#include <vector>

#include "../by_hand.hpp"

namespace {

float sqrt_of(float x) { return __builtin_sqrtf(x); }
double sqrt_of(double x) { return __builtin_sqrt(x); }

// The plain double loop; the adjoint scatters to both bodies.
template <class T>
void scalar(const T* x, const T* mass, const T* seed, T* a, T* xb, T* mb, int64_t n, T eps, bool back) {
    for (int64_t i = 0; i < n; ++i) {
        T sum[3] = {0, 0, 0};
        for (int64_t j = 0; j < n; ++j) {
            const T d[3] = {x[3 * j] - x[3 * i], x[3 * j + 1] - x[3 * i + 1], x[3 * j + 2] - x[3 * i + 2]};
            const T r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + eps;
            const T pull = mass[j] / (r2 * sqrt_of(r2));
            for (int k = 0; k < 3; ++k) sum[k] += pull * d[k];
        }
        for (int k = 0; k < 3; ++k) a[3 * i + k] = sum[k];
    }
    if (!back) return;
    memset(xb, 0, 3 * n * sizeof(T));
    memset(mb, 0, n * sizeof(T));
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            const T d[3] = {x[3 * j] - x[3 * i], x[3 * j + 1] - x[3 * i + 1], x[3 * j + 2] - x[3 * i + 2]};
            const T r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + eps;
            const T inverse = 1 / r2, cube = inverse * sqrt_of(inverse);
            const T along = (seed[3 * i] * d[0] + seed[3 * i + 1] * d[1] + seed[3 * i + 2] * d[2]) * cube;
            mb[j] += along;
            for (int k = 0; k < 3; ++k) {
                const T db = mass[j] * (cube * seed[3 * i + k] - 3 * along * inverse * d[k]);
                xb[3 * j + k] += db;
                xb[3 * i + k] -= db;
            }
        }
    }
}

typedef Lanes V;

V root(V x) {
    V y;
    for (int l = 0; l < LANES; ++l) y[l] = __builtin_sqrtf(x[l]);
    return y;
}

// Bodies i in lanes, on as many threads as there are; j runs over all. Each i gathers what it gets as first and as second body.
void simd(const float* x, const float* mass, const float* seed, float* a, float* xb, float* mb, int64_t n, float eps,
          bool back) {
    const int64_t groups = (n + LANES - 1) / LANES;
    static std::vector<V> X, M, S;
    X.assign(3 * groups, V{}), M.assign(groups, V{}), S.assign(3 * groups, V{});
    for (int64_t i = 0; i < n; ++i) {
        M[i / LANES][i % LANES] = mass[i];
        for (int k = 0; k < 3; ++k) {
            X[3 * (i / LANES) + k][i % LANES] = x[3 * i + k];
            S[3 * (i / LANES) + k][i % LANES] = seed[3 * i + k];
        }
    }
    const auto put = [n](float* to, int64_t group, int k, int width, V value) {
        for (int l = 0; l < LANES && group * LANES + l < n; ++l) to[width * (group * LANES + l) + k] = value[l];
    };
    const auto pull = [&](int64_t g) {
        const V px = X[3 * g], py = X[3 * g + 1], pz = X[3 * g + 2];
        V ax{}, ay{}, az{};
        for (int64_t j = 0; j < n; ++j) {
            const V dx = x[3 * j] - px, dy = x[3 * j + 1] - py, dz = x[3 * j + 2] - pz;
            const V r2 = dx * dx + dy * dy + dz * dz + eps;
            const V by = mass[j] / (r2 * root(r2));
            ax += by * dx, ay += by * dy, az += by * dz;
        }
        put(a, g, 0, 3, ax), put(a, g, 1, 3, ay), put(a, g, 2, 3, az);
    };
    const auto pull_back = [&](int64_t g) {
        const V px = X[3 * g], py = X[3 * g + 1], pz = X[3 * g + 2], m = M[g];
        const V sx = S[3 * g], sy = S[3 * g + 1], sz = S[3 * g + 2];
        V bx{}, by{}, bz{}, bm{};
        for (int64_t j = 0; j < n; ++j) {
            const V dx = x[3 * j] - px, dy = x[3 * j + 1] - py, dz = x[3 * j + 2] - pz;
            const V r2 = dx * dx + dy * dy + dz * dz + eps;
            const V inverse = 1 / r2, cube = inverse * root(inverse);
            // As second body: the pull that m has on j.
            const V along = -(seed[3 * j] * dx + seed[3 * j + 1] * dy + seed[3 * j + 2] * dz) * cube;
            bm += along;
            // d a_i / d x_i and d a_j / d x_i have the same 3 x 3 matrix, and act on m_j s_i and m_i s_j.
            const V ux = m * seed[3 * j] - mass[j] * sx, uy = m * seed[3 * j + 1] - mass[j] * sy;
            const V uz = m * seed[3 * j + 2] - mass[j] * sz;
            const V ud = 3 * (ux * dx + uy * dy + uz * dz) * inverse;
            bx += cube * (ux - ud * dx), by += cube * (uy - ud * dy), bz += cube * (uz - ud * dz);
        }
        put(xb, g, 0, 3, bx), put(xb, g, 1, 3, by), put(xb, g, 2, 3, bz), put(mb, g, 0, 1, bm);
    };
    team::split(groups, [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) pull(g);
        if (!back) return;
        for (int64_t g = begin; g < end; ++g) pull_back(g);
    });
}

}  // namespace

#define NBODY(name, T, function)                                                                                      \
    extern "C" void name(const T* x, const T* mass, const T* seed, T* a, T* xb, T* mb, int64_t n, double eps,         \
                         int64_t back) {                                                                              \
        function(x, mass, seed, a, xb, mb, n, (T)eps, back != 0);                                                     \
    }
NBODY(scalar_float32, float, scalar)
NBODY(scalar_float64, double, scalar)
NBODY(simd_float32, float, simd)
