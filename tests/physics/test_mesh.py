"""Laws of meshes: what touches what, and which meshes are refused with which words."""

import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nablasim import physics as ph

TET = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
CELLS = st.tuples(*[st.integers(1, 4)] * 3)


@given(cells=CELLS)
def test_the_surface_of_a_block_is_closed_and_encloses_its_tets(cells):
    block = ph.TetMesh.box((1, 2, 3), cells)
    assert len(block.tets) == 6 * np.prod(cells)
    assert np.allclose(block.volumes, 1.0 / np.prod(cells))
    surface = block.surface.require_closed()
    assert np.isclose(surface.volume, 6.0)
    nx, ny, nz = cells
    assert len(surface.faces) == 4 * (nx * ny + ny * nz + nx * nz)
    # Euler: a block is a ball.
    outer = surface.compact()
    assert len(outer.vertices) - len(outer.edges) + len(outer.faces) == 2


@given(cells=st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_a_grid_has_the_area_of_its_rectangle_and_faces_up(cells):
    grid = ph.TriMesh.grid((3, 2), cells)
    assert np.isclose(grid.areas.sum(), 6.0)
    a, b, c = (grid.vertices[grid.faces[:, k]] for k in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()
    vertices = (cells[0] + 1) * (cells[1] + 1)
    assert len(grid.vertices) - len(grid.edges) + len(grid.faces) == 1  # a disc
    assert vertices == len(grid.vertices)
    assert not grid.is_closed
    assert np.allclose(grid.vertices[cells[0] + 1], (0, 2 / cells[1], 0))


@given(cells=CELLS)
def test_incidence_lists_every_corner_once_at_its_vertex(cells):
    block = ph.TetMesh.box(1, cells)
    start, item = block.incidence
    flat = block.tets.ravel()
    assert np.array_equal(np.sort(item), np.arange(len(flat)))
    for v in range(len(block.vertices)):
        mine = item[start[v] : start[v + 1]]
        assert (flat[mine] == v).all() and (np.diff(mine) > 0).all()


@given(cells=st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_hinges_are_the_inner_edges_between_their_two_faces(cells):
    grid = ph.TriMesh.grid((1, 1), cells)
    vertices, faces = grid.hinges
    boundary = 2 * (cells[0] + cells[1])
    assert len(vertices) == len(grid.edges) - boundary
    for (a, b, i, j), (first, second) in zip(vertices, faces):
        assert {a, i, j} == set(grid.faces[first]) and {b, i, j} == set(grid.faces[second])
        corner = list(grid.faces[first]).index(i)
        assert grid.faces[first][(corner + 1) % 3] == j  # the first face runs from i to j


def test_a_closed_surface_has_a_hinge_at_every_edge():
    ball = ph.TriMesh.icosphere(subdivisions=2)
    assert len(ball.hinges.vertices) == len(ball.edges) == 3 * len(ball.faces) // 2


@given(
    pos=hnp.arrays(float, 3, elements=st.floats(-5, 5)),
    angle=st.floats(-3, 3),
    scale=st.sampled_from([0.5, 2.0, -1.0, (1.0, -2.0, 3.0)]),
)
def test_moving_keeps_tets_and_surfaces_right_way_round(pos, angle, scale):
    rot = ph.quat((1, 2, 3), angle)
    factor = abs(np.prod(np.broadcast_to(scale, 3)))
    block = ph.TetMesh.box(1, 2).moved(pos=pos, rot=rot, scale=scale)
    assert np.isclose(block.volume, factor)
    box = ph.Box(1, 1, 1).mesh().moved(pos=pos, rot=rot, scale=scale).require_closed()
    assert np.isclose(box.volume, factor)


def test_merging_joins_what_lies_in_one_place_and_keeps_the_first():
    box = ph.Box(1, 1, 1).mesh()
    soup = ph.TriMesh(box.vertices[box.faces].reshape(-1, 3), np.arange(36).reshape(-1, 3))
    assert not soup.is_closed
    joined = soup.merged()
    assert len(joined.vertices) == 8 and joined.is_closed
    assert np.array_equal(joined.vertices[joined.faces], box.vertices[box.faces])
    noisy = ph.TriMesh(soup.vertices + np.random.default_rng(0).uniform(-1e-9, 1e-9, soup.vertices.shape), soup.faces)
    assert len(noisy.merged().vertices) == 36 and noisy.merged(1e-6).is_closed


def test_meshes_cannot_be_changed_and_do_not_share_what_they_were_made_of():
    vertices = TET.copy()
    mesh = ph.TetMesh(vertices, [[0, 1, 2, 3]])
    vertices[0] = 7
    assert np.array_equal(mesh.vertices, TET)
    with pytest.raises(ValueError, match="read-only"):
        mesh.vertices[0] = 1
    with pytest.raises(AttributeError):
        mesh.tets = None


# ---------------------------------------------------------------------------------------------------------- refused
NAN = TET.copy()
NAN[2, 1] = np.nan
REFUSED_TETS = {
    "nan": (NAN, [[0, 1, 2, 3]], "vertex 2 is 0 nan 0, which is not finite", ("vertex", 2)),
    "range": (TET, [[0, 1, 2, 3], [0, 1, 2, 4]], "tet 1 names vertex 4, and there are vertices 0 to 3", ("tet", 1)),
    "negative": (TET, [[0, 1, 2, -1]], "tet 0 names vertex -1", ("tet", 0)),
    "inverted": (
        TET,
        [[1, 0, 2, 3]],
        r"tet 0 \(vertices 1 0 2 3\) has the volume -0.166667: it is inverted",
        ("tet", 0),
    ),
    "flat": (np.vstack([TET, [0.5, 0.5, 0]]), [[0, 1, 2, 3], [0, 1, 2, 4]], r"tet 1 \(.*\) has no volume", ("tet", 1)),
    "twice": (TET, [[0, 1, 2, 2]], "tet 0 has a corner twice", ("tet", 0)),
    "unused": (np.vstack([TET, [9, 9, 9]]), [[0, 1, 2, 3]], "vertex 4 belongs to no tet", ("vertex", 4)),
    "no vertices": (np.zeros((0, 3)), [[0, 1, 2, 3]], "there are no vertices", None),
    "no tets": (TET, np.zeros((0, 4), int), "there are no tets", None),
    "planar": (TET[:, :2], [[0, 1, 2, 3]], r"vertices have shape \(4, 2\)", None),
    "triangles": (TET, [[0, 1, 2]], r"tets have shape \(1, 3\); expected \(m, 4\)", None),
    "floats": (TET, [[0.0, 1, 2, 3]], "tets are float64; expected whole numbers", None),
}


@pytest.mark.parametrize("case", REFUSED_TETS)
def test_a_broken_tet_mesh_is_refused_with_the_element_and_the_reason(case):
    vertices, tets, words, element = REFUSED_TETS[case]
    with pytest.raises(ph.MeshError, match=words) as caught:
        ph.TetMesh(vertices, tets)
    assert caught.value.element == element


def test_slivers_that_are_not_flat_are_accepted():
    assert ph.TetMesh(TET * [1, 1, 1e-4], [[0, 1, 2, 3]]).volume > 0


FACES = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
REFUSED_SURFACES = {
    "open": (FACES[:3], "the surface is open: 3 edges have a triangle on one side only", 2),
    "twisted": ([*FACES[:3], FACES[3, ::-1]], "run the same way through their edge .* orientation is inconsistent", 3),
    "inside out": (FACES[:, ::-1], "encloses a volume of -0.166667: its faces look inwards", 0),
    "doubled": ([*FACES, FACES[0]], "3 triangles meet in the edge", 0),
}


@pytest.mark.parametrize("case", REFUSED_SURFACES)
def test_a_surface_that_bounds_no_volume_is_refused(case):
    faces, words, face = REFUSED_SURFACES[case]
    mesh = ph.TriMesh(TET, faces)
    assert not mesh.is_closed
    with pytest.raises(ph.MeshError, match=words) as caught:
        mesh.require_closed()
    assert caught.value.element[0] == "face"
    if case != "twisted":  # either of the two may be named
        assert caught.value.element[1] == face


def test_a_flat_surface_bounds_no_volume():
    box = ph.Box(1, 1, 1).mesh()
    with pytest.raises(ph.MeshError, match="encloses no volume: it is flat"):
        ph.TriMesh(box.vertices * [1, 1, 0], box.faces).require_closed()


BOX = ph.Box(1, 1, 1).mesh()
STEEL = {"density": 1.0, "material": ph.NeoHookean(E=1e3, nu=0.3)}


@pytest.mark.parametrize(("add", "error", "words"), [
    (lambda s: s.add_rigid("cube", (BOX.vertices, BOX.faces[:-1]), density=1.0), ph.MeshError, "cube: .* is open"),
    (lambda s: s.add_obstacle("wall", (BOX.vertices, BOX.faces[:, ::-1])), ph.MeshError, "wall: .* look inwards"),
    (lambda s: s.add_soft("gear", (TET, [[0, 2, 1, 3]]), **STEEL), ph.MeshError, "gear: tet 0 .* it is inverted"),
    (lambda s: s.add_soft("gear", "gear.msh", **STEEL), TypeError, r"gear: mesh is a .*load\(path\)"),
    (lambda s: s.add_cloth("flag", (TET * [1, 0, 0], [[0, 1, 2]]), mass=1.0), ph.MeshError, "flag: face 0 .* no area"),
    (lambda s: s.add_cloth("flag", "flag.obj", mass=1.0), TypeError, "flag: mesh is a ph.TriMesh"),
])  # fmt: skip
def test_a_scene_says_whose_mesh_is_broken(add, error, words):
    scene = ph.Scene()
    with pytest.raises(error, match=words):
        add(scene)
    with pytest.raises(ValueError, match="the scene is empty"):  # Nothing of it was added.
        scene.build()


def test_bodies_that_touch_in_an_edge_bound_a_volume():
    one = ph.Box(1, 1, 1).mesh()
    other = one.moved(pos=(1, 1, 0))
    both = ph.TriMesh(np.vstack([one.vertices, other.vertices]), np.vstack([one.faces, other.faces + 8])).merged()
    assert len(both.vertices) == 14
    assert np.isclose(both.require_closed().volume, 2.0)
    with pytest.raises(ph.MeshError, match="4 triangles meet in the edge"):
        _ = both.hinges


def test_a_triangle_without_area_is_refused_where_one_is_needed():
    mesh = ph.TriMesh([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0]], [[0, 1, 3], [0, 1, 2]])
    with pytest.raises(ph.MeshError, match=r"face 1 \(vertices 0 1 2\) has no area"):
        mesh.require_area()


def test_tets_that_overlap_have_no_surface():
    mesh = ph.TetMesh(np.vstack([TET, [0.2, 0.2, 2], [0.2, 0.3, 3]]), [[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 5]])
    with pytest.raises(ph.MeshError, match="3 tets share the triangle"):
        _ = mesh.surface


@pytest.mark.parametrize(("axis", "angle"), [((0, 0, 0), 1.0), ((1, 2), 1.0), ((0, 0, 1), np.nan), ((0, np.inf, 1), 1)])
def test_a_rotation_needs_an_axis_and_an_angle(axis, angle):
    with pytest.raises(ValueError, match="a rotation needs an axis"):
        ph.quat(axis, angle)


def test_a_quarter_turn_about_z_brings_x_to_y():
    turned = ph.TriMesh(TET, FACES).moved(rot=ph.quat((0, 0, 5), np.pi / 2))
    assert np.allclose(turned.vertices[1], (0, 1, 0))
    assert np.allclose(ph.quat((0, 0, 1), np.pi / 2), (0, 0, np.sqrt(0.5), np.sqrt(0.5)))


@pytest.mark.parametrize("cells", [(10**7,) * 3, (10**30, 2, 2), (2, 2, 10**400), 10**5])
def test_more_cells_than_fit_into_a_mesh_are_refused(cells):
    with pytest.raises(ph.MeshError, match="more than fit into a mesh"):
        ph.TetMesh.box((1, 1, 1), cells=cells)
    with pytest.raises(ph.MeshError, match="more than fit into a mesh"):
        ph.TriMesh.grid((1, 1), cells=(10**30, 2))


@pytest.mark.parametrize("cells", [(2.5, 2), (2,), (0, 3), ("a", 2)])
def test_cells_are_whole_numbers(cells):
    with pytest.raises(ph.MeshError, match="cells are 2 whole numbers"):
        ph.TriMesh.grid((1, 1), cells=cells)


# ---------------------------------------------------------------------------------------------------------- hulls
def test_the_hull_of_a_hollow_shape_is_closed_convex_and_as_large_as_trimesh_says():
    rng = np.random.default_rng(3)
    ball = ph.Sphere(1.0).mesh()
    dented = ph.TriMesh(ball.vertices * rng.uniform(0.5, 1.0, (len(ball.vertices), 1)), ball.faces)
    hull = dented.convex_hull()
    hull.require_closed()
    witness = trimesh.Trimesh(dented.vertices, dented.faces).convex_hull
    assert hull.volume == pytest.approx(witness.volume, rel=1e-12) and hull.volume > dented.volume
    a, b, c = np.moveaxis(hull.vertices[hull.faces], 1, 0)
    above = np.einsum("fi,fvi->fv", np.cross(b - a, c - a), dented.vertices[None] - a[:, None])
    assert above.max() < 1e-12


def test_what_is_flat_has_no_hull():
    with pytest.raises(ph.MeshError, match="span no volume"):
        ph.TriMesh.grid((1, 1), cells=(3, 3)).convex_hull()


@pytest.mark.parametrize("corners", [4, 8, 40, 5000])
def test_a_hull_of_few_corners_lies_inside_and_has_what_stands_out(corners):
    ball = ph.TriMesh.icosphere(subdivisions=3).moved(scale=(3, 1, 2))
    hull = ball.convex_hull(corners=corners)
    assert hull.is_closed and 4 <= len(hull.vertices) <= corners
    known = {tuple(v) for v in ball.vertices.tolist()}
    assert all(tuple(v) in known for v in hull.vertices.tolist())
    assert hull.volume <= ball.convex_hull().volume * (1 + 1e-12)
    if corners == 40:
        assert hull.volume > 0.75 * ball.volume
    if corners == 5000:
        assert hull.volume == pytest.approx(ball.volume)


def test_a_hull_of_a_box_has_its_corners():
    box = ph.TriMesh.from_shape(ph.Box(1, 2, 3)).moved(rot=ph.quat((1, 2, 3), 0.7))
    assert box.convex_hull(corners=8).volume == pytest.approx(6.0)
    with pytest.raises(ValueError, match="corners must be at least 4"):
        box.convex_hull(corners=3)
