"""Meshes survive files, and broken files are refused with the file, the line or element, and the reason."""

import struct

import numpy as np
import pytest

from nablasim import physics as ph

TET_VERTICES = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
TETS = [[0, 1, 2, 3], [1, 4, 2, 3]]
# Formats that hold single precision.
SINGLE = {".stl", ".glb", ".ply"}


def crooked_ball():
    ball = ph.TriMesh.icosphere(1.3, subdivisions=1)
    return ph.TriMesh(ball.vertices + np.random.default_rng(0).uniform(-0.1, 0.1, ball.vertices.shape), ball.faces)


@pytest.mark.parametrize("ending", [".obj", ".stl", ".ply", ".off", ".glb", ".msh", ".vtk", ".vtu"])
def test_a_surface_survives_its_file(tmp_path, ending):
    mesh = crooked_ball()
    path = tmp_path / f"ball{ending}"
    mesh.save(path)
    back = ph.TriMesh.load(path)
    assert back.is_closed and len(back.vertices) == len(mesh.vertices)
    tolerance = 1e-6 if ending in SINGLE | {".off"} else 0.0
    assert np.abs(back.vertices[back.faces] - mesh.vertices[mesh.faces]).max() <= tolerance
    if ending != ".stl":  # its triangles are a soup: the vertices come in the order of the faces
        assert np.array_equal(back.faces, mesh.faces)


@pytest.mark.parametrize("ending", [".tet", ".msh", ".vtk", ".vtu", ".mesh"])
def test_tets_survive_their_file(tmp_path, ending):
    block = ph.TetMesh.box((1, 2, 3), (2, 3, 1)).moved(rot=ph.quat((1, 2, 3), 0.7))
    path = tmp_path / f"block{ending}"
    block.save(path)
    back = ph.TetMesh.load(path)
    assert np.array_equal(back.tets, block.tets)
    assert np.abs(back.vertices - block.vertices).max() <= (1e-15 if ending == ".mesh" else 0)
    assert list(tmp_path.iterdir()) == [path]


def test_gltf_and_its_buffer_are_read(tmp_path):
    import trimesh

    box = ph.Box(1, 2, 3).mesh()
    scene = trimesh.Scene()
    move = np.eye(4)
    move[:3, 3] = (5, 0, 0)
    scene.add_geometry(trimesh.Trimesh(box.vertices, box.faces, process=False), transform=move)
    for name, data in scene.export(file_type="gltf").items():
        (tmp_path / name).write_bytes(data)
    back = ph.TriMesh.load(tmp_path / "model.gltf")
    assert back.is_closed and np.allclose(back.vertices.mean(axis=0), (5, 0, 0))


def test_seams_of_texture_do_not_open_an_obj(tmp_path):
    box = ph.Box(1, 1, 1).mesh()
    rows = [f"v {x} {y} {z}" for x, y, z in box.vertices] + [f"vt {k / 36} 0" for k in range(36)]
    rows += [
        "f " + " ".join(f"{v + 1}/{3 * f + k + 1}" for k, v in enumerate(face)) for f, face in enumerate(box.faces)
    ]
    (tmp_path / "box.obj").write_text("\n".join(rows))
    assert ph.TriMesh.load(tmp_path / "box.obj").is_closed


def test_obj_reads_polygons_negative_indices_comments_and_continued_lines(tmp_path):
    vertices = "# a square\nmtllib m.mtl\nv 0 0 0\nv 1 0 0 0.5 0.5 0.5\nv 1 1 0\nv 0 \\\n1 0\nvn 0 0 1\n"
    (tmp_path / "square.obj").write_text(vertices + "f -4//1 -3//1 -2//1 -1//1\n")
    mesh = ph.TriMesh.load(tmp_path / "square.obj")
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]] and np.isclose(mesh.areas.sum(), 1.0)


def test_what_is_written_in_the_tet_format_is_lines_of_v_and_t(tmp_path):
    ph.TetMesh(TET_VERTICES, TETS).save(tmp_path / "two.tet")
    rows = (tmp_path / "two.tet").read_text().splitlines()
    assert rows == [
        "v 0.0 0.0 0.0", "v 1.0 0.0 0.0", "v 0.0 1.0 0.0", "v 0.0 0.0 1.0", "v 1.0 1.0 1.0", "t 0 1 2 3", "t 1 4 2 3",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------- text formats
TET = "# two\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 1 1 1\n\nt 0 1 2 3\nt 1 4 2 3\n"
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
MSH2 = (
    "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n5 1 1 1\n$EndNodes\n"
    "$Elements\n3\n1 15 2 0 0 1\n2 4 2 0 0 1 2 3 4\n3 4 2 0 0 2 5 3 4\n$EndElements\n"
)
MSH4 = (
    "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 5 1 5\n3 0 0 5\n1\n2\n3\n4\n5\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 1 1\n"
    "$EndNodes\n$Elements\n1 2 1 2\n3 0 4 2\n1 1 2 3 4\n2 2 5 3 4\n$EndElements\n"
)
VTK = (
    "# vtk DataFile Version 2.0\ntwo tets\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 5 double\n"
    "0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 1 1\nCELLS 2 10\n4 0 1 2 3\n4 1 4 2 3\nCELL_TYPES 2\n10\n10\n"
)
VTK5 = (
    "# vtk DataFile Version 5.1\ntwo tets\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 5 double\n"
    "0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 1 1\nCELLS 3 8\nOFFSETS vtktypeint64\n0 4 8\nCONNECTIVITY vtktypeint64\n"
    "0 1 2 3\n1 4 2 3\nCELL_TYPES 2\n10\n10\n"
)
PLY = (
    "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n"
    "property list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
)
STL = (
    "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid a\n"
)


@pytest.mark.parametrize(
    ("name", "text"), [("a.tet", TET), ("a.msh", MSH2), ("b.msh", MSH4), ("a.vtk", VTK), ("b.vtk", VTK5)]
)
def test_text_of_two_tets_is_read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    mesh = ph.TetMesh.load(tmp_path / name)
    assert mesh.vertices.tolist() == TET_VERTICES and mesh.tets.tolist() == TETS


@pytest.mark.parametrize(("name", "text"), [("a.obj", OBJ), ("a.ply", PLY), ("a.stl", STL)])
def test_text_of_one_triangle_is_read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    mesh = ph.TriMesh.load(tmp_path / name)
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]] and mesh.faces.tolist() == [[0, 1, 2]]


BROKEN = {
    # name: (file, text, what to replace, by what, line, words)
    "tet nan": ("a.tet", TET, "v 1 0 0", "v 1 nan 0", 3, "a coordinate is nan, which is not finite"),
    "tet short": ("a.tet", TET, "v 1 0 0", "v 1 0", 3, "a vertex has 3 coordinates, not 2"),
    "tet word": ("a.tet", TET, "v 1 0 0", "v 1 O 0", 3, "'O' is not a number"),
    "tet range": ("a.tet", TET, "t 1 4 2 3", "t 1 5 2 3", 9, "tet 1 names vertex 5, and there are vertices 0 to 4"),
    "tet inverted": ("a.tet", TET, "t 1 4 2 3", "t 1 2 4 3", 9, "tet 1 .* it is inverted .* orient=True"),
    "tet flat": ("a.tet", TET, "v 1 1 1", "v 1 1 -1", 9, "tet 1 .* has no volume"),
    "tet triangle": ("a.tet", TET, "t 1 4 2 3", "t 1 4 2", 9, "a tet has 4 vertices, not 3"),
    "tet fraction": ("a.tet", TET, "t 1 4 2 3", "t 1 4 2 3.5", 9, "'3.5' is not the index of a vertex"),
    "tet unused": ("a.tet", TET, "v 1 1 1", "v 1 1 1\nv 2 2 2", 7, "vertex 5 belongs to no tet.*drop_unused=True"),
    "tet unknown": ("a.tet", TET, "t 1 4 2 3", "q 1 4 2 3", 9, "a line starts with 'q'"),
    "tet none": ("a.tet", "v 0 0 0\n", "", "", None, "there are no tets"),
    "tet comment": ("a.tet", "# nothing\n", "", "", None, "there are no vertices"),
    "tet empty": ("a.tet", "", "", "", None, "the file is empty"),
    "obj nan": ("a.obj", OBJ, "v 1 0 0", "v 1 0 nan", 2, "not finite"),
    "obj range": ("a.obj", OBJ, "f 1 2 3", "f 1 2 4", 4, "a face names vertex 4, and there are 3. Obj counts from 1"),
    "obj zero": ("a.obj", OBJ, "f 1 2 3", "f 0 1 2", 4, "a face names vertex 0, .* Obj counts from 1"),
    "obj before": ("a.obj", OBJ, "f 1 2 3", "f -4 -2 -1", 4, "a face names vertex -4, and 3 were given before it"),
    "obj two": ("a.obj", OBJ, "f 1 2 3", "f 1 2", 4, "a face has at least 3 corners, not 2"),
    "obj twice": ("a.obj", OBJ, "f 1 2 3", "f 1 2 2", 4, "face 0 has a corner twice.*drop_degenerate=True"),
    "obj no faces": ("a.obj", OBJ, "f 1 2 3", "", None, "there are no faces"),
    "obj html": ("a.obj", "<html>\n", "", "", 1, "a line starts with '<html>', which obj does not know"),
    "msh nan": ("a.msh", MSH2, "2 1 0 0", "2 nan 0 0", 7, "vertex 1 is nan 0 0|a coordinate is nan"),
    "msh range": (
        "a.msh",
        MSH2,
        "0 0 2 5 3 4",
        "0 0 2 9 3 4",
        16,
        "an element names node 9, which the file does not have",
    ),
    "msh inverted": ("a.msh", MSH2, "0 0 2 5 3 4", "0 0 2 3 5 4", 16, "tet 1 .* it is inverted"),
    "msh cut": ("a.msh", MSH2[: MSH2.index("1 0\n4")], "", "", 8, "the file ends where a coordinate is expected"),
    "msh no elements": ("a.msh", MSH2[: MSH2.index("$Elem")], "", "", None, "no section \\$Elements|has no tets"),
    "msh word": ("a.msh", MSH2, "3 0 1 0", "3 0 one 0", 8, "'one' stands where a coordinate is expected"),
    "msh other": ("a.msh", "hello\n", "", "", 1, "the file starts with 'hello'; expected \\$MeshFormat"),
    "msh4 nan": ("a.msh", MSH4, "1 0 0\n0 1 0", "1 0 nan\n0 1 0", 13, "vertex 1 is 1 0 nan|a coordinate is nan"),
    "msh4 range": ("a.msh", MSH4, "2 2 5 3 4", "2 2 7 3 4", 22, "an element names node 7"),
    "msh4 inverted": ("a.msh", MSH4, "2 2 5 3 4", "2 5 2 3 4", 22, "tet 1 .* it is inverted"),
    "msh4 cut": ("a.msh", MSH4[: MSH4.index("0 1\n1 1 1")], "", "", 15, "the file ends where a coordinate is expected"),
    "vtk nan": ("a.vtk", VTK, "\n1 0 0", "\nnan 0 0", 7, "vertex 1 is nan 0 0|a coordinate is nan"),
    "vtk range": ("a.vtk", VTK, "4 1 4 2 3", "4 1 8 2 3", 13, "names (point|vertex) 8"),
    "vtk inverted": ("a.vtk", VTK, "4 1 4 2 3", "4 4 1 2 3", 13, "tet 1 .* it is inverted"),
    "vtk5 range": ("a.vtk", VTK5, "1 4 2 3\nCELL", "1 8 2 3\nCELL", 16, "names (point|vertex) 8"),
    "vtk5 inverted": ("a.vtk", VTK5, "1 4 2 3\nCELL", "4 1 2 3\nCELL", 16, "tet 1 .* it is inverted"),
    "vtk cut": ("a.vtk", VTK[: VTK.index("1 0\n0 0 1")], "", "", 8, "the file ends where a coordinate is expected"),
    "vtk word": ("a.vtk", VTK, "\n1 0 0", "\n1 zero 0", 7, "'zero' stands where a coordinate is expected"),
    "vtk other": ("a.vtk", "hello\n", "", "", 1, "the file starts with 'hello'"),
    "ply range": ("a.ply", PLY, "3 0 1 2", "3 0 1 7", 13, "face 0 names vertex 7"),
    "ply nan": ("a.ply", PLY, "1 0 0", "1 nan 0", 11, "vertex 1 is 1 nan 0"),
    "ply cut": ("a.ply", PLY[:-10], "", "", 12, "the file ends in line 12; its header promises 13"),
    "ply head": ("a.ply", PLY[:60], "", "", None, "the header has no end"),
    "stl nan": ("a.stl", STL, "vertex 1 0 0", "vertex 1 0 nan", 5, "not finite"),
    "stl cut": ("a.stl", STL[:60], "", "", 5, "the file ends where"),
    "stl two": ("a.stl", STL, "vertex 0 1 0\n", "", None, "1 facets have 2 vertices"),
    "stl twice": ("a.stl", STL, "vertex 1 0 0", "vertex 0 0 0", 2, "face 0 has a corner twice.*drop_degenerate=True"),
    "gltf empty": ("a.gltf", "{}", "", "", None, "there are no faces|cannot be read"),
    "wrong kind": ("a.obj", TET, "", "", 8, "a line starts with 't'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_text_file_is_refused_with_its_line(tmp_path, case, capfd):
    name, text, old, new, line, words = BROKEN[case]
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new) if old else text)
    load = ph.TetMesh.load if name.endswith((".tet", ".msh", ".vtk")) else ph.TriMesh.load
    with pytest.raises(ph.MeshError, match=words) as caught:
        load(path)
    assert caught.value.file == str(path)
    if line is not None:
        assert caught.value.line == line and str(caught.value).startswith(f"{path}:{line}: ")
    assert capfd.readouterr().out == ""
    assert path.read_text() == (text.replace(old, new) if old else text)


# ----------------------------------------------------------------------------------------------------- binary formats
def cut(path, by):
    path.write_bytes(path.read_bytes()[:-by])


@pytest.mark.parametrize("ending", [".stl", ".ply", ".glb"])
def test_a_surface_that_was_cut_short_is_refused(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    crooked_ball().save(path)
    cut(path, 40)
    with pytest.raises(ph.MeshError, match=r"cut short|cannot be read") as caught:
        ph.TriMesh.load(path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("ending", [".msh", ".vtk", ".vtu"])
def test_tets_that_were_cut_short_are_refused(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    ph.TetMesh.box(1, 2).save(path)
    cut(path, path.stat().st_size // 2)
    with pytest.raises(ph.MeshError, match="cannot be read") as caught:
        ph.TetMesh.load(path)
    assert caught.value.file == str(path)


def test_elements_are_named_where_there_are_no_lines(tmp_path):
    path = tmp_path / "a.stl"
    crooked_ball().save(path)
    data = bytearray(path.read_bytes())
    data[84 + 50 * 3 + 12 : 84 + 50 * 3 + 16] = struct.pack("<f", np.nan)  # x of the first corner of face 3
    path.write_bytes(data)
    with pytest.raises(ph.MeshError, match="vertex 9 is nan") as caught:
        ph.TriMesh.load(path)
    assert caught.value.element == ("vertex", 9) and caught.value.line is None


def test_text_in_a_binary_ending_is_refused(tmp_path):
    (tmp_path / "a.stl").write_text("hello")
    with pytest.raises(ph.MeshError, match="a binary stl has at least 84 bytes, not 5"):
        ph.TriMesh.load(tmp_path / "a.stl")
    (tmp_path / "b.obj").write_bytes(bytes(range(128, 256)))
    with pytest.raises(ph.MeshError, match="this is not text"):
        ph.TriMesh.load(tmp_path / "b.obj")


# -------------------------------------------------------------------------------------------------------------- other
def test_a_mesh_of_another_kind_is_refused_with_what_is_there(tmp_path):
    crooked_ball().save(tmp_path / "ball.msh")
    with pytest.raises(ph.MeshError, match="the file has no tets; it has triangle"):
        ph.TetMesh.load(tmp_path / "ball.msh")


def test_curved_tets_are_refused_with_advice(tmp_path):
    import meshio

    points = np.random.default_rng(0).uniform(size=(10, 3))
    meshio.Mesh(points, [("tetra10", np.arange(10)[None])]).write(tmp_path / "a.vtk")
    with pytest.raises(ph.MeshError, match=r"it has tetra10\. Write it with straight edges"):
        ph.TetMesh.load(tmp_path / "a.vtk")


def test_inverted_tets_are_turned_and_unused_vertices_dropped_where_asked(tmp_path):
    path = tmp_path / "a.tet"
    path.write_text(
        TET.replace("t 1 4 2 3", "t 1 2 4 3")
        .replace("v 0 0 0", "v 9 9 9\nv 0 0 0")
        .replace("t 0 1 2 3", "t 1 2 3 4")
        .replace("t 1 2 4 3", "t 2 3 5 4")
    )
    mesh = ph.TetMesh.load(path, orient=True, drop_unused=True)
    assert mesh.vertices.tolist() == TET_VERTICES and (mesh.volumes > 0).all()


def test_degenerate_faces_are_dropped_where_asked(tmp_path):
    (tmp_path / "a.obj").write_text(OBJ + "f 1 2 2\n")
    assert len(ph.TriMesh.load(tmp_path / "a.obj", drop_degenerate=True).faces) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: ph.TriMesh.load(p / "no.obj"), "there is no such file"),
        (lambda p: ph.TriMesh.load(p / "a.xyz"), "a surface cannot be read from .xyz. Known endings: .dae, .glb"),
        (lambda p: ph.TetMesh.load(p / "a"), "cannot be read from a file without ending"),
        (lambda p: crooked_ball().save(p / "a.tet"), "a surface cannot be written to .tet"),
    ],
)
def test_files_that_are_not_there_or_not_known_are_refused(tmp_path, call, words):
    with pytest.raises(ph.MeshError, match=words):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    import meshio

    path = tmp_path / "a.msh"
    ph.TetMesh.box(1, 1).save(path)
    before = path.read_bytes()

    def fail(self, *args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(meshio.Mesh, "write", fail)
    with pytest.raises(OSError, match="no space"):
        ph.TetMesh.box(1, 2).save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_an_open_surface_is_refused_with_its_file_where_a_closed_one_is_needed(tmp_path):
    path = tmp_path / "sheet.obj"
    path.write_text(OBJ)
    sheet = ph.TriMesh.load(path)
    with pytest.raises(ph.MeshError, match=r"sheet\.obj: ball: the surface is open: 3 edges .* of face 0") as caught:
        ph.Scene().add_rigid("ball", sheet, density=1.0, scale=2.0)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("word", [str(2**63), "1" * 40, "-" + "9" * 25, str(2**31), "9" * 5000])
@pytest.mark.parametrize("ending", ["tet", "obj"])
def test_an_index_beyond_any_mesh_is_refused_with_its_line(tmp_path, ending, word):
    path = tmp_path / f"huge.{ending}"
    element = "t 0 1 2 " if ending == "tet" else "f 1 2 "
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n" + element + word + "\n")
    load = ph.TetMesh.load if ending == "tet" else ph.TriMesh.load
    with pytest.raises(ph.MeshError, match=rf"huge.{ending}:5: '-?\d+' is not the index of a vertex"):
        load(path)
