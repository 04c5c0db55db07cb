"""Lens distortion and cameras from files, beside OpenCV."""

import json
import struct

import numpy as np
import pytest
import torch
from test_gradients import SOFT, check, tensors, weights

from nablasim import render
from nablasim.render import Camera

SIZE = (48, 64)
K = np.array([[60.0, 0, 33.0], [0, 58.0, 23.0], [0, 0, 1]])
BENDS = {
    "barrel": (-0.31, 0.12, 0.001, -0.002, -0.02),
    "pincushion": (0.25, 0.05, -0.003, 0.001, 0.01),
    "radial": (-0.2,),
    "four": (-0.25, 0.08, 0.002, 0.001),
}


def pose(seed=0):
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(seed)
    return cv2.Rodrigues(0.3 * rng.normal(size=3))[0], np.array([0.1, -0.2, 3.0])


def points(n=200, seed=1):
    return np.random.default_rng(seed).uniform(-0.8, 0.8, (n, 3))


@pytest.mark.parametrize("name", BENDS)
def test_points_are_where_opencv_projects_them(name):
    cv2 = pytest.importorskip("cv2")
    R, t = pose()
    bend = np.array(BENDS[name])
    wanted = cv2.projectPoints(points(), R, t, K, np.pad(bend, (0, 5 - len(bend)))[[0, 1, 2, 3, 4]])[0][:, 0]
    camera = Camera.from_opencv(K, R, t, SIZE, bend)
    found, depth = camera.to_pixels(points(), SIZE)
    np.testing.assert_allclose(found[:, ::-1], wanted, atol=1e-10)
    np.testing.assert_allclose(depth, points() @ R[2] + t[2], atol=1e-12)
    assert np.abs(wanted - cv2.projectPoints(points(), R, t, K, None)[0][:, 0]).max() > 1  # it does bend


@pytest.mark.parametrize("mode", ["softras", "hard"])
def test_pictures_show_vertices_where_opencv_projects_them(mode):
    """Small triangles, each around a point: the picture has them at the pixels of projectPoints."""
    cv2 = pytest.importorskip("cv2")
    R, t = pose()
    centre = points(12, seed=3)
    wanted = cv2.projectPoints(centre, R, t, K, np.array(BENDS["barrel"]))[0][:, 0]
    small = 0.05 * np.array([[1, 0, 0], [-0.5, 0.87, 0], [-0.5, -0.87, 0]]) @ R  # in the plane of the picture
    for k, c in enumerate(centre):
        camera = Camera.from_opencv(K, R, t, SIZE, BENDS["barrel"])
        renderer = render.Renderer(camera, mode=mode, size=(8 * SIZE[0], 8 * SIZE[1]), sigma=1e-7)
        alpha = renderer(c + small, [[0, 1, 2]])[..., 3].numpy()
        i, j = (np.indices(alpha.shape) + 0.5) / 8 - 0.5
        found = [(alpha * j).sum() / alpha.sum(), (alpha * i).sum() / alpha.sum()]
        np.testing.assert_allclose(found, wanted[k], atol=0.1)


def test_what_is_far_outside_does_not_fold_into_the_picture():
    """A barrel polynomial turns back at some radius: there the camera goes on straight, OpenCV comes back."""
    cv2 = pytest.importorskip("cv2")
    bend = np.array([-0.3, 0.0, 0.0, 0.0, 0.0])
    camera = Camera.from_opencv(K, np.eye(3), np.zeros(3), SIZE, bend)
    x = np.stack([np.linspace(0, 6, 60), np.zeros(60), np.ones(60)], -1)
    found = camera.to_pixels(x, SIZE)[0][:, 1]
    wanted = cv2.projectPoints(x, np.eye(3), np.zeros(3), K, bend)[0][:, 0, 0]
    inside = x[:, 0] < 1 / np.sqrt(0.9)
    np.testing.assert_allclose(found[inside], wanted[inside], atol=1e-10)
    assert wanted[-1] < 0 and (np.diff(found) > 0).all()
    image = render.Renderer(camera, mode="hard", size=SIZE)(x[-3:] * [1, 1, 1] + np.eye(3) * 0.3, [[0, 1, 2]])
    assert image[..., 3].sum() == 0


@pytest.mark.parametrize("mode", ["softras", "hard"])
def test_by_distortion_and_vertices(mode):
    vertices, faces = tensors("sphere")
    R, t = np.diag([1.0, -1, -1]), np.array([0.1, 0.2, 2.7])
    style = SOFT if mode == "softras" else {}
    paint, w = torch.rand(len(vertices), 3, dtype=torch.float64, generator=torch.manual_seed(0)), weights(14, 18, 4)

    def loss(bend, x):
        matrix = np.array([[15.0, 0, 9], [0, 14.0, 7], [0, 0, 1]])
        camera = Camera.opencv(torch.tensor(matrix), torch.tensor(R), torch.tensor(t), (14, 18), bend)
        return (render.Renderer(camera, mode=mode, size=(14, 18), **style)(x, faces, colors=paint) * w).sum()

    check(loss, torch.tensor(BENDS["barrel"]).double(), vertices, step=1e-7, rtol=1e-4)


def test_flow_and_batches_of_bent_lenses():
    vertices, faces = (np.asarray(v) for v in tensors("sphere"))
    bends = np.array([BENDS["barrel"], BENDS["pincushion"]])
    many = Camera.opencv(K, np.diag([1.0, -1, -1]), np.array([0.0, 0, 3]), SIZE, bends)
    assert many.count == 2
    renderer = render.Renderer(many, mode="hard", size=SIZE)
    moved = vertices + [0.05, 0.02, 0.0]
    together = renderer(vertices, faces, output="flow", moved=moved).numpy()
    for k in range(2):
        one = Camera.opencv(K, np.diag([1.0, -1, -1]), np.array([0.0, 0, 3]), SIZE, bends[k])
        np.testing.assert_array_equal(together[k], renderer(vertices, faces, output="flow", moved=moved, camera=one))
        ahead = one.to_pixels(np.array([0.0, 0, 1]) * 0.8, SIZE)[0]
        i, j = np.rint(ahead).astype(int)
        assert np.abs(together[k, i, j]).max() > 0.5


# -- files
def calibration(R, t):
    cv2 = pytest.importorskip("cv2")
    return {"image_width": SIZE[1], "image_height": SIZE[0], "camera_matrix": K,
            "distortion_coefficients": np.array([BENDS["barrel"]]), "rvec": cv2.Rodrigues(R)[0], "tvec": t}  # fmt: skip


@pytest.mark.parametrize("kind", ["yml", "xml", "json"])
def test_files_of_opencv(tmp_path, kind):
    cv2 = pytest.importorskip("cv2")
    R, t = pose()
    path = tmp_path / f"camera.{kind}"
    file = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    for name, value in calibration(R, t).items():
        file.write(name, value)
    file.release()
    camera, wanted = Camera.from_opencv(path), Camera.from_opencv(K, R, t, SIZE, BENDS["barrel"])
    np.testing.assert_allclose(camera.to_pixels(points(), SIZE)[0], wanted.to_pixels(points(), SIZE)[0], atol=1e-9)


def colmap(folder, binary):
    """Two pictures of one camera; COLMAP's pixels cover [j, j + 1), as ours."""
    R, t = pose()
    trace = np.trace(R)
    w = np.sqrt(1 + trace) / 2
    q = [w, *(np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w))]
    lens = [60.0, 58.0, 33.5, 23.5, -0.31, 0.12, 0.001, -0.002]
    poses = {"a b.png": (q, t), "second.png": ([1.0, 0, 0, 0], [0.0, 0, 4.0])}
    if binary:
        data = struct.pack("<Q", 1) + struct.pack("<iiQQ", 3, 4, SIZE[1], SIZE[0]) + struct.pack("<8d", *lens)
        (folder / "cameras.bin").write_bytes(data)
        data = struct.pack("<Q", 2)
        for k, (name, (q, t)) in enumerate(poses.items()):
            data += struct.pack("<i7di", k, *q, *t, 3) + name.encode() + b"\0" + struct.pack("<Q", k)
            data += struct.pack("<ddq", 1.0, 2.0, -1) * k
        (folder / "images.bin").write_bytes(data)
    else:
        (folder / "cameras.txt").write_text(f"# list\n3 OPENCV {SIZE[1]} {SIZE[0]} {' '.join(map(str, lens))}\n")
        rows = [f"{k} {' '.join(map(str, [*q, *t]))} 3 {name}\n\n" for k, (name, (q, t)) in enumerate(poses.items())]
        (folder / "images.txt").write_text("# list\n" + "".join(rows))
    return R, np.asarray(poses["a b.png"][1])


@pytest.mark.parametrize("binary", [True, False])
def test_files_of_colmap(tmp_path, binary):
    R, t = colmap(tmp_path, binary)
    cameras = Camera.from_colmap(tmp_path)
    assert list(cameras) == ["a b.png", "second.png"]
    wanted = Camera.from_opencv(K, R, t, SIZE, (-0.31, 0.12, 0.001, -0.002))
    found = cameras["a b.png"].to_pixels(points(), SIZE)[0] - wanted.to_pixels(points(), SIZE)[0]
    np.testing.assert_allclose(found, 0, atol=1e-9)
    assert np.allclose(cameras["second.png"].eye, [0, 0, -4])


def test_files_of_nerf(tmp_path):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = render.Camera.orbit(3.0, 20.0, 50.0).rotation.T, [2.0, 1.0, 1.5]
    frames = [{"file_path": "./train/r_0", "transform_matrix": matrix.tolist()}]
    path = tmp_path / "transforms.json"
    path.write_text(json.dumps({"camera_angle_x": 0.7, "frames": frames}))
    camera = Camera.from_nerf(path, size=(80, 100))["./train/r_0"]
    fov = 2 * np.degrees(np.arctan(np.tan(0.35) * 80 / 100))
    wanted = Camera(matrix[:3, :3].T, matrix[:3, 3], np.tan(np.radians(fov) / 2))
    x = matrix[:3, 3] - matrix[:3, 2] * 2 + 0.3 * points(50)
    np.testing.assert_allclose(camera.to_pixels(x, (80, 100))[0], wanted.to_pixels(x, (80, 100))[0], atol=1e-9)
    numbers = {"fl_x": 60.0, "fl_y": 58.0, "cx": 33.5, "cy": 23.5, "w": 64, "h": 48, "k1": -0.31, "k2": 0.12,
               "p1": 0.001, "p2": -0.002}  # fmt: skip
    path.write_text(json.dumps({**numbers, "camera_model": "OPENCV", "frames": frames}))
    camera = Camera.from_nerf(path)["./train/r_0"]
    flip = np.diag([1.0, -1, -1])
    R = flip @ matrix[:3, :3].T
    wanted = Camera.from_opencv(K, R, -R @ matrix[:3, 3], SIZE, (-0.31, 0.12, 0.001, -0.002))
    np.testing.assert_allclose(camera.to_pixels(x, SIZE)[0], wanted.to_pixels(x, SIZE)[0], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "text", "read", "message"),
    [
        ("a.json", "{", Camera.from_opencv, "a.json cannot be read as a file of cv2.FileStorage"),
        ("a.yml", "%YAML:1.0\nfps: 3.\n", Camera.from_opencv, "has no camera_matrix, only fps"),
        ("a.json", '{"camera_matrix": [[1, 2], [3, 4]]}', Camera.from_opencv, r"camera_matrix has shape \(2, 2\)"),
        ("a.json", json.dumps({"camera_matrix": K.tolist()}), Camera.from_opencv, "the size of the picture is missing"),
        ("t.json", "[1", Camera.from_nerf, "is no transforms.json of NeRF"),
        ("t.json", '{"frames": [{"transform_matrix": [1]}]}', Camera.from_nerf, "transform_matrix of frame 0"),
        ("cameras.txt", "1 FOV 4 4 1 1 1 1 1\n", lambda p: Camera.from_colmap(p.parent), "images.txt is missing"),
        ("cameras.bin", "1", lambda p: Camera.from_colmap(p.parent), "images.bin is missing"),
        ("other", "", lambda p: Camera.from_colmap(p.parent), r"has no cameras.txt or cameras.bin"),
    ],
)
def test_files_that_cannot_be_read_say_which_and_why(tmp_path, name, text, read, message):
    (tmp_path / name).write_text(text)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read(tmp_path / name)


def test_models_of_lenses_that_are_others(tmp_path):
    (tmp_path / "cameras.txt").write_text("1 FOV 4 4 1 1 1 1 1\n")
    (tmp_path / "images.txt").write_text("1 1 0 0 0 0 0 0 1 a.png\n\n")
    with pytest.raises(ValueError, match="the camera model FOV is not one of ours"):
        Camera.from_colmap(tmp_path)
    with pytest.raises(ValueError, match="rational"):
        Camera.opencv(K, np.eye(3), np.zeros(3), SIZE, np.ones(8))
    with pytest.raises(ValueError, match="an orthographic camera has no lens distortion"):
        Camera(np.eye(3), np.zeros(3), perspective=False, distortion=(0.1,))
