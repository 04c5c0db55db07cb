// Soft silhouettes by hand: a loop over faces, and over the pixels of each one's bounding box, grown by the soft reach.
// One thread, one pixel at a time. Backward computes distances again; it keeps the product of each pixel.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

template <class Real>
struct Triangle {
    Real x[3], y[3], inverse[3];  // corners, and 1 / length² of the edge that begins at each
    int64_t i0, i1, j0, j1;
};

template <class Real>
struct Nearest {
    Real d2 = INFINITY, weight[3] = {0, 0, 0};
    bool inside = false;
};

template <class Real>
Nearest<Real> nearest(const Triangle<Real>& t, Real px, Real py) {
    Nearest<Real> found;
    int left = 0, right = 0;
    for (int k = 0; k < 3; ++k) {
        const int next = k == 2 ? 0 : k + 1;
        const Real ex = t.x[next] - t.x[k], ey = t.y[next] - t.y[k], qx = px - t.x[k], qy = py - t.y[k];
        const Real side = ex * qy - ey * qx;
        left += side > 0;
        right += side < 0;
        const Real along = std::min(std::max((qx * ex + qy * ey) * t.inverse[k], Real(0)), Real(1));
        const Real dx = qx - along * ex, dy = qy - along * ey, d2 = dx * dx + dy * dy;
        if (d2 < found.d2) {
            found.d2 = d2;
            found.weight[0] = found.weight[1] = found.weight[2] = 0;
            found.weight[k] = 1 - along;
            found.weight[next] = along;
        }
    }
    found.inside = left == 3 || right == 3;
    return found;
}

template <class Real>
void run(const Real* vertices, const int32_t* faces, const Real* seed, int64_t points, int64_t count, int64_t n,
         double sigma_, double distance, double half_height, Real* image, Real* grad, int64_t backward) {
    const Real sigma = sigma_, limit = std::log(1e6 - 1) * sigma_, reach = std::sqrt(limit);
    std::vector<Triangle<Real>> triangles(count);
    for (int64_t f = 0; f < count; ++f) {
        Triangle<Real>& t = triangles[f];
        for (int k = 0; k < 3; ++k) {
            const Real* v = vertices + 3 * faces[3 * f + k];
            const Real depth = distance - v[2];
            t.x[k] = v[0] / depth / half_height;
            t.y[k] = v[1] / depth / half_height;
        }
        for (int k = 0; k < 3; ++k) {
            const Real ex = t.x[(k + 1) % 3] - t.x[k], ey = t.y[(k + 1) % 3] - t.y[k], l = ex * ex + ey * ey;
            t.inverse[k] = l > 0 ? 1 / l : 0;
        }
        const Real x0 = std::min({t.x[0], t.x[1], t.x[2]}) - reach, x1 = std::max({t.x[0], t.x[1], t.x[2]}) + reach;
        const Real y0 = std::min({t.y[0], t.y[1], t.y[2]}) - reach, y1 = std::max({t.y[0], t.y[1], t.y[2]}) + reach;
        t.j0 = std::max<int64_t>(0, std::ceil((x0 * n + n - 1) / 2));
        t.j1 = std::min<int64_t>(n - 1, std::floor((x1 * n + n - 1) / 2));
        t.i0 = std::max<int64_t>(0, std::ceil((n - 1 - y1 * n) / 2));
        t.i1 = std::min<int64_t>(n - 1, std::floor((n - 1 - y0 * n) / 2));
    }
    std::vector<Real> keep(n * n, Real(1));
    for (const Triangle<Real>& t : triangles)
        for (int64_t i = t.i0; i <= t.i1; ++i)
            for (int64_t j = t.j0; j <= t.j1; ++j) {
                const auto near = nearest(t, Real(2 * j + 1 - n) / n, Real(n - 1 - 2 * i) / n);
                if (!near.inside && near.d2 >= limit) continue;
                keep[i * n + j] *= 1 / (1 + std::exp((near.inside ? near.d2 : -near.d2) / sigma));
            }
    for (int64_t p = 0; p < n * n; ++p) image[p] = 1 - keep[p];
    if (!backward) return;

    std::fill(grad, grad + 3 * points, Real(0));
    for (int64_t f = 0; f < count; ++f) {
        const Triangle<Real>& t = triangles[f];
        Real gx[3] = {0, 0, 0}, gy[3] = {0, 0, 0};
        for (int64_t i = t.i0; i <= t.i1; ++i)
            for (int64_t j = t.j0; j <= t.j1; ++j) {
                const Real px = Real(2 * j + 1 - n) / n, py = Real(n - 1 - 2 * i) / n;
                const auto near = nearest(t, px, py);
                if (!near.inside && near.d2 >= limit) continue;
                const Real sign = near.inside ? 1 : -1;
                const Real D = 1 / (1 + std::exp(-sign * near.d2 / sigma));
                // d alpha / d d² = keep / (1 - D) · D (1 - D) · ±1 / sigma
                const Real g = -2 * seed[i * n + j] * keep[i * n + j] * D * sign / sigma;
                Real dx = px, dy = py;
                for (int k = 0; k < 3; ++k) {
                    dx -= near.weight[k] * t.x[k];
                    dy -= near.weight[k] * t.y[k];
                }
                for (int k = 0; k < 3; ++k) {
                    gx[k] += g * dx * near.weight[k];
                    gy[k] += g * dy * near.weight[k];
                }
            }
        for (int k = 0; k < 3; ++k) {
            const int64_t v = faces[3 * f + k];
            const Real depth = distance - vertices[3 * v + 2];
            grad[3 * v] += gx[k] / depth / half_height;
            grad[3 * v + 1] += gy[k] / depth / half_height;
            grad[3 * v + 2] += (gx[k] * t.x[k] + gy[k] * t.y[k]) / depth;
        }
    }
}

}  // namespace

#define SILHOUETTE(Real, name)                                                                                       \
    extern "C" void silhouette_##name(const Real* vertices, const int32_t* faces, const Real* seed, int64_t points,  \
                                      int64_t count, int64_t n, double sigma, double distance, double half_height,   \
                                      Real* image, Real* grad, int64_t backward) {                                   \
        run(vertices, faces, seed, points, count, n, sigma, distance, half_height, image, grad, backward);           \
    }
SILHOUETTE(float, float32)
SILHOUETTE(double, float64)
