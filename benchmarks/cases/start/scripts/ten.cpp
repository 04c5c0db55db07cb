// Ten kernels and their adjoints by hand. Adjoints add to what is there.
#include <math.h>

#ifndef REAL
#define REAL float
#endif

typedef REAL real;

struct vec {
    real x, y, z;
};

static vec operator+(vec a, vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static vec operator-(vec a, vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
static vec operator*(vec a, real s) { return {a.x * s, a.y * s, a.z * s}; }
static vec times(vec a, vec b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }
static real dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static vec cross(vec a, vec b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
static void add(vec& a, vec b) { a = a + b; }

// (x xᵀ + 1)⁻¹ b, by the cofactors of the matrix.
static vec solve(vec x, vec b) {
    const vec r = {x.x * x.x + 1, x.x * x.y, x.x * x.z}, s = {r.y, x.y * x.y + 1, x.y * x.z}, t = {r.z, s.z, x.z * x.z + 1};
    const vec u = cross(s, t), v = cross(t, r), w = cross(r, s);
    return vec{dot(u, b), dot(v, b), dot(w, b)} * (1 / dot(r, u));
}

extern "C" {

void scale(long n, const vec* x, vec* y) {
    for (long i = 0; i < n; ++i) y[i] = x[i] * real(0.3);
}

void scale_adjoint(long n, const vec*, vec* xb, const vec* yb) {
    for (long i = 0; i < n; ++i) add(xb[i], yb[i] * real(0.3));
}

void wave(long n, const vec* x, vec* y) {
    for (long i = 0; i < n; ++i) y[i] = {sin(x[i].x), cos(x[i].y), exp(-x[i].z * x[i].z)};
}

void wave_adjoint(long n, const vec* x, vec* xb, const vec* yb) {
    for (long i = 0; i < n; ++i)
        add(xb[i], times(yb[i], {cos(x[i].x), -sin(x[i].y), -2 * x[i].z * exp(-x[i].z * x[i].z)}));
}

void pull(long n, const vec* x, vec* y) {
    for (long i = 0; i < n; ++i) {
        const vec d = x[(i + 1) % n] - x[i];
        y[i] = d * (1 - real(0.5) / sqrt(dot(d, d)));
    }
}

void pull_adjoint(long n, const vec* x, vec* xb, const vec* yb) {
    for (long i = 0; i < n; ++i) {
        const vec d = x[(i + 1) % n] - x[i];
        const real l2 = dot(d, d), share = real(0.5) / sqrt(l2);
        const vec db = yb[i] * (1 - share) + d * (dot(d, yb[i]) * share / l2);
        add(xb[(i + 1) % n], db);
        add(xb[i], db * -1);
    }
}

void smooth(long n, const vec* x, vec* y) {
    for (long i = 0; i < n; ++i) {
        vec total = {0, 0, 0};
        for (long j = 0; j < n; ++j) add(total, x[j] * exp(-dot(x[j] - x[i], x[j] - x[i])));
        y[i] = total;
    }
}

void smooth_adjoint(long n, const vec* x, vec* xb, const vec* yb) {
    for (long i = 0; i < n; ++i)
        for (long j = 0; j < n; ++j) {
            const vec d = x[j] - x[i];
            const real e = exp(-dot(d, d));
            const vec db = d * (-2 * e * dot(x[j], yb[i]));
            add(xb[j], yb[i] * e + db);
            add(xb[i], db * -1);
        }
}

void power(long n, const vec* x, vec* y, long steps) {
    for (long i = 0; i < n; ++i) {
        vec p = x[i];
        for (long s = 0; s < steps; ++s) p = times(p, x[i]) + x[i] * real(0.5);
        y[i] = p;
    }
}

void power_adjoint(long n, const vec* x, vec* xb, const vec* yb, long steps) {
    vec p[16];  // no more steps than that
    for (long i = 0; i < n; ++i) {
        p[0] = x[i];
        for (long s = 0; s + 1 < steps; ++s) p[s + 1] = times(p[s], x[i]) + x[i] * real(0.5);
        vec pb = yb[i];
        for (long s = steps - 1; s >= 0; --s) {
            add(xb[i], times(pb, p[s]) + pb * real(0.5));
            pb = times(pb, x[i]);
        }
        add(xb[i], pb);
    }
}

void clip(long n, const vec* x, vec* y) {
    for (long i = 0; i < n; ++i) {
        const real l = sqrt(dot(x[i], x[i]));
        y[i] = l > 1 ? x[i] * (1 / l) : x[i];
    }
}

void clip_adjoint(long n, const vec* x, vec* xb, const vec* yb) {
    for (long i = 0; i < n; ++i) {
        const real l2 = dot(x[i], x[i]);
        add(xb[i], l2 > 1 ? (yb[i] - x[i] * (dot(x[i], yb[i]) / l2)) * (1 / sqrt(l2)) : yb[i]);
    }
}

// About the y axis, by the angle x.
void turn(long n, const vec* x, vec* y) {
    for (long i = 0; i < n; ++i) {
        const real c = cos(x[i].x), s = sin(x[i].x);
        y[i] = {c * x[i].x + s * x[i].z, x[i].y, c * x[i].z - s * x[i].x};
    }
}

void turn_adjoint(long n, const vec* x, vec* xb, const vec* yb) {
    for (long i = 0; i < n; ++i) {
        const real c = cos(x[i].x), s = sin(x[i].x);
        const real angle = yb[i].x * (c * x[i].z - s * x[i].x) - yb[i].z * (c * x[i].x + s * x[i].z);
        add(xb[i], {c * yb[i].x - s * yb[i].z + angle, yb[i].y, s * yb[i].x + c * yb[i].z});
    }
}

void stretch(long n, const vec* x, vec* y) {
    for (long i = 0; i < n; ++i) y[i] = solve(x[i], x[i]);
}

void stretch_adjoint(long n, const vec* x, vec* xb, const vec* yb) {
    for (long i = 0; i < n; ++i) {
        const vec y = solve(x[i], x[i]), w = solve(x[i], yb[i]);
        add(xb[i], w - w * dot(y, x[i]) - y * dot(w, x[i]));
    }
}

void spread(long n, const vec* x, vec* y) {
    for (long i = 0; i < n; ++i) {
        add(y[(i + 3) % n], x[i] * real(0.5));
        add(y[i], x[i]);
    }
}

void spread_adjoint(long n, const vec*, vec* xb, const vec* yb) {
    for (long i = 0; i < n; ++i) add(xb[i], yb[(i + 3) % n] * real(0.5) + yb[i]);
}

void energy(long n, const vec* x, real* loss) {
    for (long i = 0; i < n; ++i) *loss += dot(x[i], x[i]);
}

void energy_adjoint(long n, const vec* x, vec* xb, const real* loss_b) {
    for (long i = 0; i < n; ++i) add(xb[i], x[i] * (2 * *loss_b));
}
}
