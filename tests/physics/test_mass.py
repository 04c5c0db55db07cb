"""Laws of mass: closed surfaces against sums over tets, motions, gradients to density and vertices, lumped masses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kernelc as kc
from nablasim import physics as ph
from nablasim.physics.geometry.mass import Bodies, Lumping, lumped_masses, mass_properties
from nablasim.physics.geometry.mass_kernels import (
    body_mass_properties,
    face_moments,
    lump_masses,
    tet_volumes,
    triangle_areas,
)
from nablasim.physics.geometry.rotation import rotation_matrix

SEEDS = st.integers(0, 10_000)


def crooked_block(seed, cells=(2, 1, 2)):
    """A block with every vertex displaced a little: closed, no symmetry, full inertia tensor."""
    block = ph.TetMesh.box((1, 2, 1.5), cells)
    rng = np.random.default_rng(seed)
    return ph.TetMesh(block.vertices + rng.uniform(-0.08, 0.08, block.vertices.shape), block.tets)


def tet_sum(mesh, density):
    """Mass, centre and inertia by adding up tets: each one's own inertia, and the parallel axis rule."""
    corners = mesh.vertices[mesh.tets]
    m = density * mesh.volumes
    centres = corners.mean(axis=1)
    com = (m[:, None] * centres).sum(axis=0) / m.sum()
    r = corners - centres[:, None]
    C = np.einsum("e,eki,ekj->ij", m / 20, r, r)
    d = centres - com
    C += np.einsum("e,ei,ej->ij", m, d, d)
    return m.sum(), com, np.trace(C) * np.eye(3) - C


@given(seed=SEEDS, density=st.floats(1e-3, 1e4))
def test_the_surface_has_the_mass_properties_of_the_tets_inside(seed, density):
    mesh = crooked_block(seed)
    found = ph.solid_mass_properties(mesh.surface, density)
    mass, com, inertia = tet_sum(mesh, density)
    assert np.isclose(found.mass, mass, rtol=1e-13)
    assert np.allclose(found.com, com, atol=1e-13)
    assert np.allclose(found.inertia, inertia, atol=1e-13 * inertia.max())
    assert np.abs(found.inertia - np.diag(np.diag(found.inertia))).max() > 1e-5 * density  # off-diagonals are there


@given(seed=SEEDS, pos=hnp.arrays(float, 3, elements=st.floats(-100, 100)), angle=st.floats(-3, 3))
def test_mass_stays_the_centre_moves_along_and_the_inertia_turns(seed, pos, angle):
    mesh, rot = crooked_block(seed).surface, ph.quat((1, -2, 0.5), angle)
    before, after = (ph.solid_mass_properties(m, 2.0) for m in (mesh, mesh.moved(pos=pos, rot=rot)))
    R = rotation_matrix(rot)
    assert np.isclose(after.mass, before.mass, rtol=1e-11)
    assert np.allclose(after.com, R @ before.com + pos, atol=1e-11)
    assert np.allclose(after.inertia, R @ before.inertia @ R.T, atol=1e-10)


def test_single_precision_is_accurate_far_from_the_origin():
    mesh = ph.Box(1, 2, 3).mesh().moved(pos=(64, -128, 256))  # numbers that float32 holds exactly
    found = mass_properties(
        Bodies([mesh]), kc.array(mesh.vertices.astype(np.float32), dtype=kc.float3), kc.array(np.ones(1, np.float32))
    )
    wanted = ph.Box(1, 2, 3).mass_properties(1.0)
    assert np.isclose(found.mass.numpy()[0], 6.0, rtol=1e-6)
    assert np.allclose(found.inertia.numpy()[0], wanted.inertia, atol=1e-5)


def test_bodies_of_one_array_do_not_mix():
    meshes = [crooked_block(s).surface for s in range(3)]
    density = np.array([1.0, 2.0, 3.0])
    x = kc.array(np.vstack([m.vertices for m in meshes]), dtype=kc.float3)
    found = mass_properties(Bodies(meshes), x, kc.array(density))
    for k, mesh in enumerate(meshes):
        for part, wanted in zip(found, ph.solid_mass_properties(mesh, density[k])):
            assert np.allclose(part.numpy()[k], wanted, rtol=1e-13)


def test_kernels_of_mass_have_the_right_gradients():
    meshes = [crooked_block(s, (1, 1, 1)).surface for s in (1, 2)]
    bodies = Bodies(meshes)
    x = kc.array(np.vstack([m.vertices for m in meshes]), dtype=kc.float3, requires_grad=True)
    V, s, C = np.array([1.3, 0.7]), np.ones((2, 3)) * 0.3, np.arange(18.0).reshape(2, 3, 3)
    leaf = {"requires_grad": True}
    inputs = [
        x, bodies.reference, kc.array(V, **leaf), kc.array(s, dtype=kc.float3, **leaf),
        kc.array(C, dtype=kc.mat33, **leaf), kc.array(np.array([2.0, 3.0]), **leaf),
    ]  # fmt: skip
    outputs = [
        kc.zeros(2, real=kc.float64),
        kc.zeros(2, dtype=kc.float3, real=kc.float64),
        kc.zeros(2, dtype=kc.mat33, real=kc.float64),
    ]
    # The reference vertex is a constant to the kernels (the whole does not depend on it): leave x out here.
    inputs[0] = kc.array(x.numpy(), dtype=kc.float3)
    assert kc.testing.gradcheck(body_mass_properties, dim=2, inputs=inputs, outputs=outputs)


@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_reach_density_and_every_vertex(seed):
    """Of a random weighted sum of all ten numbers, against central differences of the whole, in double precision."""
    mesh = crooked_block(seed, (1, 1, 1)).surface
    bodies, rng = Bodies([mesh]), np.random.default_rng(seed)
    weights = [rng.normal(size=1), rng.normal(size=(1, 3)), rng.normal(size=(1, 3, 3))]
    x0, rho0 = np.array(mesh.vertices), np.array([2.5])

    def value(x, rho):
        found = mass_properties(bodies, kc.array(x, dtype=kc.float3), kc.array(rho))
        return sum(float((w * part.numpy()).sum()) for w, part in zip(weights, found))

    x, rho = kc.array(x0, dtype=kc.float3, requires_grad=True), kc.array(rho0, requires_grad=True)
    with kc.Tape() as tape:
        found = mass_properties(bodies, x, rho)
    tape.backward(grads=dict(zip(found, weights)))
    h = 1e-5
    slopes = np.zeros_like(x0)
    for index in np.ndindex(*x0.shape):
        e = np.zeros_like(x0)
        e[index] = h
        slopes[index] = (value(x0 + e, rho0) - value(x0 - e, rho0)) / (2 * h)
    assert np.allclose(x.grad.numpy(), slopes, atol=1e-8)
    assert np.isclose(rho.grad.numpy()[0], (value(x0, rho0 + h) - value(x0, rho0 - h)) / (2 * h), atol=1e-8)


def test_a_replay_starts_from_zero_again():
    mesh = crooked_block(3).surface
    x = kc.array(np.array(mesh.vertices), dtype=kc.float3, requires_grad=True)
    with kc.Tape() as tape:
        found = mass_properties(Bodies([mesh]), x, kc.array(np.ones(1)))
    x.assign(2 * mesh.vertices)
    tape.replay()
    assert np.isclose(found.mass.numpy()[0], 8 * mesh.volume)


def test_an_open_surface_has_no_mass():
    with pytest.raises(ph.MeshError, match="the surface is open"):
        ph.solid_mass_properties(ph.TriMesh.grid((1, 1), (1, 1)), 1.0)


# ------------------------------------------------------------------------------------------------------------ lumped
@given(seed=SEEDS)
def test_lumped_masses_add_up_to_the_whole_and_balance_at_its_centre(seed):
    mesh = crooked_block(seed)
    rho = np.random.default_rng(seed).uniform(0.5, 2, len(mesh.tets))
    m = ph.vertex_masses(mesh, rho)
    assert (m > 0).all() and np.isclose(m.sum(), (rho * mesh.volumes).sum())
    # A quarter to each corner keeps each tet's centre of mass where it is.
    first = (rho * mesh.volumes)[:, None] * mesh.vertices[mesh.tets].mean(axis=1)
    assert np.allclose((m[:, None] * mesh.vertices).sum(axis=0), first.sum(axis=0))


def test_the_corners_of_a_cloth_are_lighter_than_its_middle():
    """Two cells by two, crossed diagonals: the middle has 8 half cells' thirds, a corner one or two."""
    cloth = ph.TriMesh.grid((2, 2), (2, 2))
    m = ph.vertex_masses(cloth, 6.0)  # a triangle of half a cell has mass 3, one to each corner
    assert np.array_equal(m, np.bincount(cloth.faces.ravel()))
    assert np.isclose(m.sum(), 6.0 * 4.0)


@pytest.mark.parametrize("kind", ["tets", "triangles"])
def test_gradients_of_lumped_masses_reach_densities_and_vertices(kind):
    mesh = crooked_block(5, (1, 1, 1))
    mesh = mesh if kind == "tets" else mesh.surface
    lumping, n = Lumping(mesh), len(mesh.vertices)
    measuring = tet_volumes if kind == "tets" else triangle_areas
    cells = lumping.cells
    x = kc.array(np.array(mesh.vertices), dtype=kc.float3, requires_grad=True)
    measure = kc.zeros(cells.shape[0], real=kc.float64)
    assert kc.testing.gradcheck(measuring, dim=cells.shape[0], inputs=[x, cells], outputs=[measure])
    rng = np.random.default_rng(0)
    rho = kc.array(rng.uniform(1, 2, cells.shape[0]), requires_grad=True)
    size = kc.array(rng.uniform(1, 2, cells.shape[0]), requires_grad=True)
    inputs = [size, rho, lumping.start, lumping.item, lumping.corners]
    assert kc.testing.gradcheck(lump_masses, dim=n, inputs=inputs, outputs=[kc.zeros(n, real=kc.float64)])

    w, h = rng.normal(size=n), 1e-6
    with kc.Tape() as tape:
        mass = lumped_masses(lumping, x, rho)
    tape.backward(grads={mass: w})
    direction = rng.normal(size=(n, 3))
    ends = [
        w @ lumped_masses(lumping, kc.array(mesh.vertices + s * h * direction, dtype=kc.float3), rho).numpy()
        for s in (1, -1)
    ]
    assert np.isclose((x.grad.numpy() * direction).sum(), (ends[0] - ends[1]) / (2 * h), atol=1e-8)


def test_face_moments_add_to_what_is_there():
    mesh = crooked_block(0).surface
    bodies = Bodies([mesh])
    x = kc.array(np.array(mesh.vertices), dtype=kc.float3)
    volume = kc.array(np.array([10.0]))
    rest = [kc.zeros(1, dtype=kc.float3, real=kc.float64), kc.zeros(1, dtype=kc.mat33, real=kc.float64)]
    kc.launch(face_moments, len(mesh.faces), [x, bodies.faces, bodies.body, bodies.reference], [volume, *rest])
    assert np.isclose(volume.numpy()[0], 10.0 + mesh.volume)
