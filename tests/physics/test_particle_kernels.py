"""Every kernel of the particles: its adjoint against central differences, by kernelc's own checker."""

import numpy as np

import kernelc as kc
from nablasim.physics.kernels.particles import integrate_particles, rigid_velocities, spring_forces

rng = np.random.default_rng(0)
N, M = 5, 7


def points(n=N):
    return kc.array(rng.normal(size=(n, 3)), dtype=kc.float3, requires_grad=True)


def positive(n):
    return kc.array(rng.uniform(0.5, 2.0, n), requires_grad=True)


def zeros():
    return kc.zeros(N, dtype=kc.float3, real=kc.float64)


def test_spring_forces():
    pairs = kc.array(np.array([rng.choice(N, 2, replace=False) for _ in range(M)], dtype=np.int32))
    inputs = [points(), points(), pairs, positive(M), positive(M), positive(M)]
    kc.testing.gradcheck(spring_forces, M, inputs, [zeros()])


def test_integrate_particles():
    free = kc.array(np.array([1, 0, 1, 1, 0], dtype=np.int32))
    inputs = [points(), points(), points(), positive(N), free, points(1), 0.1]
    kc.testing.gradcheck(integrate_particles, N, inputs, [zeros(), zeros()])


def test_rigid_velocities():
    kc.testing.gradcheck(rigid_velocities, N, [points(), points(1), points(1), points(1)], [zeros()])
