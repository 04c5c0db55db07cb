"""Meshes from files: what other programs wrote comes back as it looks, and broken files are refused with the reason."""

import json
import struct

import mitsuba_scene
import numpy as np
import pytest
import trimesh
from PIL import Image
from trimesh.visual import ColorVisuals, TextureVisuals
from trimesh.visual.material import PBRMaterial, SimpleMaterial

from nablasim import render

RNG = np.random.default_rng(0)
PICTURE = RNG.integers(0, 256, (6, 6, 3), np.uint8)
CLEAR = np.concatenate([PICTURE, RNG.integers(0, 256, (6, 6, 1), np.uint8)], -1)
QUAD = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
FACES = np.array([[0, 1, 2], [0, 2, 3]])
UVS = (QUAD[:, :2] + 1) / 2
CAMERA = render.Camera.look_at((0, 0, 3), (0, 0, 0), scale=1.0)


def quad(material, by=(0, 0, 0)):
    return trimesh.Trimesh(QUAD + by, FACES, visual=TextureVisuals(uv=UVS, material=material), process=False)


def pbr(**values):
    return PBRMaterial(**{"metallicFactor": 0.0, "roughnessFactor": 0.5, **values})


def shown(mesh, **settings):
    return render.Renderer(CAMERA, mode="hard", size=(6, 6), **settings)(mesh).numpy()


@pytest.mark.parametrize("kind", ["glb", "obj", "gltf"])
def test_a_texture_comes_back_texel_by_texel(tmp_path, kind):
    material = SimpleMaterial(image=Image.fromarray(PICTURE)) if kind == "obj" else pbr(
        baseColorTexture=Image.fromarray(PICTURE))  # fmt: skip
    path = tmp_path / f"quad.{kind}"
    if kind == "gltf":
        for name, data in trimesh.exchange.gltf.export_gltf(trimesh.Scene(quad(material))).items():
            (tmp_path / name.replace("model.gltf", path.name)).write_bytes(data)
    else:
        quad(material).export(path)
    mesh = render.load(path)
    assert len(mesh.textures) == 1 and mesh.wrap == "wrap"
    np.testing.assert_allclose(shown(mesh)[..., :3], PICTURE / 255, atol=1e-6)


def test_parts_with_different_textures_and_materials_in_their_places(tmp_path):
    """Three parts, one moved by its node, one without a picture: in trimesh's places, of Pillow's pixels."""
    other = RNG.integers(0, 256, (4, 4, 3), np.uint8)
    scene = trimesh.Scene()
    scene.add_geometry(quad(pbr(baseColorTexture=Image.fromarray(PICTURE))), node_name="first")
    turn = trimesh.transformations.rotation_matrix(np.pi / 2, [0, 0, 1], [0, 0, 0])
    turn[:3, 3] = [3.0, 0, 0]
    material = pbr(baseColorTexture=Image.fromarray(other), baseColorFactor=[128, 255, 255, 255], roughnessFactor=0.2)
    scene.add_geometry(quad(material), node_name="second", transform=turn)
    scene.add_geometry(trimesh.creation.box(), node_name="third")
    scene.geometry[list(scene.geometry)[-1]].visual = TextureVisuals(material=pbr(baseColorFactor=[0, 0, 255, 255]))
    path = tmp_path / "scene.glb"
    scene.export(path)
    mesh = render.load(path)
    assert len(mesh.textures) == 2 and len(mesh.materials) == 3 and set(np.asarray(mesh.objects)) == {0, 1, 2}
    assert sorted(np.bincount(np.asarray(mesh.objects)).tolist()) == [2, 2, 12]
    wanted = (scene.to_geometry() if hasattr(scene, "to_geometry") else scene.dump(concatenate=True)).bounds
    np.testing.assert_allclose([mesh.vertices.min(0), mesh.vertices.max(0)], wanted, atol=1e-6)
    camera = render.Camera.look_at((3, 0, 3), (3, 0, 0), scale=1.0)
    image = render.Renderer(camera, mode="hard", size=(4, 4))(mesh).numpy()[..., :3]
    np.testing.assert_allclose(image, np.rot90(other / 255) * [128 / 255, 1, 1], atol=1e-6)
    camera = render.Camera.look_at((0.2, 0.3, -3), (0, 0, 0), scale=0.5)
    image = render.Renderer(camera, mode="hard", size=(4, 4))(mesh).numpy()[1:3, 1:3, :3]
    np.testing.assert_allclose(image, np.broadcast_to([0, 0, 1.0], image.shape), atol=1e-6)
    shine = {round(m.shininess, 3) for m in mesh.materials}
    assert shine == {round(2 / 0.5**4 - 2, 3), round(2 / 0.2**4 - 2, 3)}


@pytest.mark.parametrize("mode", ["OPAQUE", "MASK", "BLEND"])
def test_opacity_is_what_the_material_says(tmp_path, mode):
    material = pbr(baseColorTexture=Image.fromarray(CLEAR), alphaMode=mode, alphaCutoff=0.4)
    quad(material).export(tmp_path / "a.glb")
    opacity = {"OPAQUE": np.ones((6, 6)), "MASK": CLEAR[..., 3] / 255 >= 0.4, "BLEND": CLEAR[..., 3] / 255}[mode]
    image = shown(render.load(tmp_path / "a.glb"), background=(0.1, 0.2, 0.3))
    wanted = CLEAR[..., :3] / 255 * opacity[..., None] + np.array([0.1, 0.2, 0.3]) * (1 - opacity[..., None])
    np.testing.assert_allclose(image, np.concatenate([wanted, opacity[..., None]], -1), atol=1e-6)


def test_materials_of_obj(tmp_path):
    (tmp_path / "two.mtl").write_text("newmtl red\nKd 1 0.2 0.1\nKs 0.5 0.5 0.5\nNs 60\nnewmtl plain\nKd 0 1 0\n")
    lines = [f"v {x} {y} {z}" for x, y, z in [*QUAD, *(QUAD + [3, 0, 0])]]
    faces = ["usemtl red", "f 1 2 3 4", "usemtl plain", "f 5 6 7", "f 5 7 8"]
    (tmp_path / "two.obj").write_text("\n".join(["mtllib two.mtl", *lines, *faces]))
    mesh = render.load(tmp_path / "two.obj")
    look = {tuple(np.asarray(mesh.colors)[np.asarray(mesh.faces)[f, 0]].round(3)): mesh.materials[k]
            for f, k in enumerate(mesh.material_index)}  # fmt: skip
    assert look[1.0, 0.2, 0.102].ks == pytest.approx(0.5, abs=0.01) and look[1.0, 0.2, 0.102].shininess == 60
    assert look[0.0, 1.0, 0.0].ks == 0
    assert len(mesh.faces) == 4


def test_colours_and_normals_of_ply(tmp_path):
    colors = RNG.integers(0, 256, (4, 4), np.uint8)
    normals = np.tile([0.6, 0.0, 0.8], (4, 1))
    mesh = trimesh.Trimesh(QUAD, FACES, vertex_normals=normals, process=False)
    mesh.visual = ColorVisuals(mesh, vertex_colors=colors)
    mesh.export(tmp_path / "a.ply", vertex_normal=True)
    found = render.load(tmp_path / "a.ply")
    np.testing.assert_allclose(found.colors, colors[:, :3] / 255)
    np.testing.assert_allclose(found.normals, normals, atol=1e-6)
    trimesh.creation.icosphere(2).export(tmp_path / "a.stl")
    assert render.load(tmp_path / "a.stl").faces.shape == (320, 3)


@pytest.mark.nightly
def test_mitsuba_sees_the_same_texture(tmp_path):
    pytest.importorskip("mitsuba")
    picture = RNG.integers(0, 256, (16, 16, 3), np.uint8)
    quad(SimpleMaterial(image=Image.fromarray(picture))).export(tmp_path / "quad.obj")
    Image.fromarray(picture).save(tmp_path / "picture.png")
    wanted = mitsuba_scene.texture_of(tmp_path / "quad.obj", tmp_path / "picture.png", (64, 64))
    camera = render.Camera.look_at((0.8, 0.6, 3), (0, 0, 0), fov=45)
    found = render.Renderer(camera, mode="hard", size=(64, 64), sampling=4)(render.load(tmp_path / "quad.obj")).numpy()
    assert np.abs(found[..., :3] - wanted).mean() < 0.01


# -- broken files
def broken_gltf():
    good = trimesh.exchange.gltf.export_glb(trimesh.Scene(quad(pbr())))
    size = struct.unpack("<I", good[12:16])[0]
    header = json.loads(good[20 : 20 + size])
    header["accessors"][0]["bufferView"] = 77
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    rest = good[20 + size :]
    total = 20 + len(text) + len(rest)
    return b"glTF" + struct.pack("<II", 2, total) + struct.pack("<I", len(text)) + b"JSON" + text + rest


OBJ = "mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\nusemtl m\nf 1/1 2/2 3/3\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "there is no file"),
        ({"a.fbx": b"x"}, r"a.fbx is none of the kinds that are read"),
        ({"a.glb": b"not a file at all, but long enough"}, r"a.glb cannot be read"),
        ({"a.glb": broken_gltf()}, r"a.glb cannot be read"),
        ({"a.glb": broken_gltf()[:200]}, r"a.glb cannot be read"),
        ({"a.ply": b"ply\nformat ascii 1.0\nelement vertex 3\n"}, r"a.ply (cannot be read|has no triangles)"),
        ({"a.obj": b"v 0 0 0\nv 1 0 0\n"}, r"a.obj (cannot be read|has no triangles)"),
        ({"a.obj": OBJ.encode()}, r"a.obj names the materials a.mtl, which are not beside it"),
        ({"a.obj": OBJ.encode(), "a.mtl": b"newmtl m\nmap_Kd no.png\n"}, r"names the texture no.png, which is not"),
        ({"a.obj": OBJ.encode(), "a.mtl": b"newmtl m\nmap_Kd b.png\n", "b.png": b"nothing"}, r"texture b.png cannot"),
        ({"a.obj": b"v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"}, r"a.obj.* cannot be drawn: vertices\[0, 2\] is nan"),
        ({"a.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n"}, r"a.obj"),
    ],
)  # fmt: skip
def test_broken_files_are_refused_with_file_and_reason(tmp_path, files, message):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        render.load(tmp_path / next(iter(files), "a.glb"))
