"""Laws of the analytic shapes: closed forms against meshes, signed distances against what makes them one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.geometry.shapes_kernels import shape_distances, shape_mass_properties

SIZES = st.floats(0.2, 3.0)
SHAPES = st.one_of(
    st.builds(ph.Box, SIZES, SIZES, SIZES),
    st.builds(ph.Sphere, SIZES),
    *(st.builds(shape, SIZES, SIZES) for shape in (ph.Capsule, ph.Cylinder, ph.Cone)),
)
FINE = {ph.Box: {}, ph.Sphere: {"subdivisions": 4}, ph.Capsule: {"segments": 64, "rings": 32}}
ONE_OF_EACH = [ph.Box(1, 2, 3), ph.Sphere(0.7), ph.Capsule(0.5, 1.2), ph.Cylinder(0.6, 1.5), ph.Cone(0.8, 1.3)]


def fine_mesh(shape):
    return shape.mesh(**FINE.get(type(shape), {"segments": 96}))


@given(shape=SHAPES)
def test_mass_properties_are_those_of_a_fine_mesh(shape):
    mesh = fine_mesh(shape).require_closed()
    exact, found = shape.mass_properties(3.0), ph.solid_mass_properties(mesh, 3.0)
    assert np.isclose(exact.mass, 3.0 * shape.volume)
    # The inscribed mesh of 64 segments lacks about (2π/64)²/6 = 0.16 % of the area, twice that of the inertia.
    tolerance = 1e-12 if isinstance(shape, ph.Box) else 5e-3
    assert np.isclose(found.mass, exact.mass, rtol=tolerance)
    assert np.allclose(found.com, exact.com, atol=1e-12 + 1e-3 * tolerance)
    assert np.allclose(found.inertia, exact.inertia, atol=2 * tolerance * exact.inertia.max())


@given(shape=SHAPES)
def test_vertices_of_the_mesh_lie_on_the_surface(shape):
    assert np.abs(shape.distance(shape.mesh().vertices)).max() < 1e-12


@given(shape=SHAPES, seed=st.integers(0, 1000))
def test_the_distance_is_that_to_the_nearest_point_of_the_surface(shape, seed):
    """Exact: walking back by it along the normal ends on the surface, and no point of a fine mesh is nearer."""
    p = np.random.default_rng(seed).uniform(-4, 4, (50, 3))
    distance, normal = shape.distance(p), shape.normal(p)
    assert np.allclose(np.linalg.norm(normal, axis=1), 1.0)
    assert np.abs(shape.distance(p - distance[:, None] * normal)).max() < 1e-9
    mesh = fine_mesh(shape)
    nearest = np.linalg.norm(p[:, None] - mesh.vertices, axis=2).min(axis=1)
    assert (nearest >= np.abs(distance) - 1e-9).all()


@given(shape=SHAPES, seed=st.integers(0, 1000))
def test_the_inside_is_negative(shape, seed):
    """Monte Carlo would be noisy; the sign must agree with the winding of the exact shape's own definition."""
    p = np.random.default_rng(seed).uniform(-3, 3, (200, 3))
    x, y, z = p.T
    r = np.hypot(x, z)
    s = np.array([*shape.size[:1], max(shape.size[1], 1e-9), shape.size[2]])  # a sphere has no height
    inside = {
        ph.Box: (np.abs(p) < s / 2).all(axis=1),
        ph.Sphere: (p**2).sum(axis=1) < s[0] ** 2,
        ph.Capsule: r**2 + np.maximum(np.abs(y) - s[1] / 2, 0) ** 2 < s[0] ** 2,
        ph.Cylinder: (r < s[0]) & (np.abs(y) < s[1] / 2),
        ph.Cone: (y > -s[1] / 2) & (r < s[0] * (0.5 - y / s[1])),
    }[type(shape)]
    assert np.array_equal(shape.distance(p) < 0, inside)


@pytest.mark.parametrize("shape", ONE_OF_EACH, ids=lambda s: type(s).__name__)
def test_gradients_of_distance_and_normal_are_right(shape):
    """By the point and by the size, inside and outside; the points stay clear of edges and of the medial axis."""
    p = np.array([[0.31, 0.12, 0.23], [0.9, 0.3, 1.9], [0.2, 1.7, 0.33], [-1.1, -1.4, 0.7]])
    n = len(p)
    inputs = [
        np.full(n, shape.kind, np.int32),
        kc.array(np.tile(shape.size, (n, 1)), dtype=kc.float3, requires_grad=True),
        kc.array(p, dtype=kc.float3, requires_grad=True),
    ]
    outputs = [kc.zeros(n, real=kc.float64), kc.zeros(n, dtype=kc.float3, real=kc.float64)]
    assert kc.testing.gradcheck(shape_distances, dim=n, inputs=inputs, outputs=outputs)


def test_gradients_of_mass_properties_by_size_and_density_are_right():
    n = len(ONE_OF_EACH)
    inputs = [
        np.array([s.kind for s in ONE_OF_EACH], np.int32),
        kc.array(np.array([s.size for s in ONE_OF_EACH]), dtype=kc.float3, requires_grad=True),
        kc.array(np.linspace(0.5, 2.5, n), requires_grad=True),
    ]
    outputs = [
        kc.zeros(n, real=kc.float64),
        kc.zeros(n, dtype=kc.float3, real=kc.float64),
        kc.zeros(n, dtype=kc.mat33, real=kc.float64),
    ]
    assert kc.testing.gradcheck(shape_mass_properties, dim=n, inputs=inputs, outputs=outputs)
    kc.launch(shape_mass_properties, dim=n, inputs=inputs, outputs=outputs)
    for i, shape in enumerate(ONE_OF_EACH):
        for found, wanted in zip(outputs, shape.mass_properties(inputs[2].numpy()[i])):
            assert np.allclose(found.numpy()[i], wanted, rtol=1e-13)


SIZES = [
    lambda: ph.Box(1, 0, 1), lambda: ph.Sphere(-1), lambda: ph.Cone(1, np.nan),
    lambda: ph.Sphere("1"), lambda: ph.Sphere(None), lambda: ph.Sphere([1.0]),
]  # fmt: skip


@pytest.mark.parametrize("make", SIZES)
def test_sizes_are_positive(make):
    with pytest.raises(ValueError, match="must be positive and finite"):
        make()


def test_an_icosphere_has_its_triangles_and_nearly_equal_areas():
    ball = ph.TriMesh.icosphere(2.0, subdivisions=3)
    assert len(ball.faces) == 20 * 4**3
    assert np.allclose(np.linalg.norm(ball.vertices, axis=1), 2.0)
    assert ball.areas.max() / ball.areas.min() < 2.0
