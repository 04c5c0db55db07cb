"""The camera against values computed by hand, and against its own laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nablasim.render import Camera, Renderer, ndc_to_pixels, pixels_to_ndc

coordinates = st.tuples(*[st.floats(-5, 5)] * 3)


def test_a_camera_at_the_origin_of_z_sees_x_to_the_right_and_y_up():
    # 90 degrees: half the height at depth 2 is 2.
    camera = Camera.look_at(eye=(0, 0, 2), target=(0, 0, 0), fov=90)
    ndc, depth = camera.project(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 2, 0], [1, 0, 1]]))
    np.testing.assert_allclose(depth, [2, 2, 2, 2, 1], atol=1e-15)
    np.testing.assert_allclose(ndc, [[0, 0], [0.5, 0], [0, 0.5], [1, 1], [1, 0]], atol=1e-15)


def test_fov_is_vertical():
    # fov 60: half the height at depth 3 is 3 tan 30° = sqrt 3; twice as wide as high.
    camera = Camera.look_at(eye=(0, 0, 3), target=(0, 0, 0), fov=60)
    ndc, _ = camera.project(np.array([np.sqrt(3), np.sqrt(3), 0]), aspect=2.0)
    np.testing.assert_allclose(ndc, [0.5, 1.0])


def test_looking_along_x_from_the_side():
    # From (5, 0, 0) to the origin, +z of the world is on the left and y is up.
    camera = Camera.look_at(eye=(5, 0, 0), target=(0, 0, 0), fov=90)
    ndc, depth = camera.project(np.array([[0.0, 0, 1], [0, 1, 0], [4, 0, 0]]))
    np.testing.assert_allclose(depth, [5, 5, 1])
    np.testing.assert_allclose(ndc, [[-0.2, 0], [0, 0.2], [0, 0]], atol=1e-15)


def test_orthographic_pictures_do_not_shrink_with_depth():
    camera = Camera.look_at(eye=(0, 0, 9), target=(0, 0, 0), scale=2.0)
    ndc, depth = camera.project(np.array([[1.0, 1, 0], [1, 1, -50]]), aspect=0.5)
    np.testing.assert_allclose(ndc, [[1.0, 0.5], [1.0, 0.5]])
    np.testing.assert_allclose(depth, [9, 59])


def test_the_corners_of_a_picture_in_pixels():
    # The picture reaches half a pixel beyond the outer pixel centres.
    corners = np.array([[-1.0, 1], [1, 1], [-1, -1], [1, -1], [0, 0]])
    expected = [[-0.5, -0.5], [-0.5, 5.5], [3.5, -0.5], [3.5, 5.5], [1.5, 2.5]]
    np.testing.assert_allclose(ndc_to_pixels(corners, (4, 6)), expected)


def test_pixel_centres_are_as_promised():
    H, W = 4, 6
    for i in range(H):
        for j in range(W):
            ndc = pixels_to_ndc(np.array([i, j]), (H, W))
            np.testing.assert_allclose(ndc, [(2 * j + 1 - W) / W, (H - 1 - 2 * i) / H])


def test_to_pixels_takes_the_aspect_from_the_size():
    camera = Camera.look_at(eye=(0, 0, 1), target=(0, 0, 0), fov=90)
    pixels, depth = camera.to_pixels(np.array([2.0, 1.0, 0.0]), size=(100, 200))
    np.testing.assert_allclose(pixels, [-0.5, 199.5])
    assert depth == pytest.approx(1.0)


def test_a_calibrated_camera_puts_a_point_where_opencv_does():
    # A turned and moved camera, and the formula of the books: u = K (R x + t) / z, with pixel (0, 0) over [0, 1).
    angle = np.radians(20)
    R = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]) @ np.diag(
        [1.0, -1, -1]
    )
    K, t = np.array([[400.0, 3.0, 330.0], [0, 420.0, 250.0], [0, 0, 1]]), np.array([0.1, 0.2, 4.0])
    camera = Camera.opencv(K, R, t, size=(480, 640))
    for point in np.random.default_rng(0).uniform(-1, 1, (20, 3)):
        x, y, z = R @ point + t
        u, v, _ = K @ [x / z, y / z, 1]
        pixel, depth = camera.to_pixels(point, (480, 640))
        np.testing.assert_allclose([*pixel, depth], [v - 0.5, u - 0.5, z], atol=1e-9)
        half, _ = camera.to_pixels(point, (240, 320))  # a picture half as large shows the same
        np.testing.assert_allclose(half, [v / 2 - 0.5, u / 2 - 0.5], atol=1e-9)


def test_a_square_over_a_pixel_of_a_calibrated_camera_covers_that_pixel():
    pytest.importorskip("torch")
    K, i, j = np.array([[8.0, 0, 5.0], [0, 8.0, 4.0], [0, 0, 1]]), 2, 7
    corners = np.array([[j, i], [j + 1, i], [j + 1, i + 1], [j, i + 1]])
    depth = 3.0
    vertices = np.c_[(corners - [5.0, 4.0]) / 8.0 * depth, np.full(4, depth)]
    camera = Camera.opencv(K, np.eye(3), np.zeros(3), size=(8, 10))
    image = Renderer(camera, mode="hard", size=(8, 10))(vertices, [[0, 1, 2], [0, 2, 3]])[..., 3].numpy()
    assert image[i, j] == 1 and image.sum() == 1


@given(eye=coordinates, target=coordinates, points=st.lists(coordinates, min_size=1, max_size=5))
def test_the_view_is_a_rigid_motion_that_puts_the_target_in_front(eye, target, points):
    eye, target, points = np.array(eye), np.array(target), np.array(points)
    distance = np.linalg.norm(target - eye)
    if np.linalg.norm(np.cross((target - eye) / max(distance, 1e-9), [0, 1, 0])) < 1e-3 or distance < 1e-3:
        return
    camera = Camera.look_at(eye, target)
    np.testing.assert_allclose(camera.rotation @ camera.rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(camera.rotation) == pytest.approx(1.0)
    np.testing.assert_allclose(camera.to_view(target), [0, 0, -distance], atol=1e-9)
    spread = np.linalg.norm(camera.to_view(points) - camera.to_view(target), axis=1)
    np.testing.assert_allclose(spread, np.linalg.norm(points - target, axis=1), atol=1e-9)


@given(st.tuples(st.floats(-50, 150), st.floats(-50, 150)), st.tuples(st.integers(1, 99), st.integers(1, 99)))
def test_pixels_and_ndc_are_inverse(pixel, size):
    np.testing.assert_allclose(ndc_to_pixels(pixels_to_ndc(np.array(pixel), size), size), pixel, atol=1e-9)


def test_precision_is_that_of_the_points():
    camera = Camera.look_at(eye=(0, 0, 2), target=(0, 0, 0))
    for dtype in (np.float32, np.float64):
        pixels, depth = camera.to_pixels(np.zeros((2, 3), dtype), (8, 8))
        assert pixels.dtype == depth.dtype == dtype
    assert camera.project([[0, 0, 0]])[0].dtype == np.float64


def test_torch_tensors_stay_torch_tensors_and_carry_gradients():
    torch = pytest.importorskip("torch")
    camera = Camera.look_at(eye=(1, 2, 5), target=(0, 0.5, 0), fov=40)
    points = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    pixels, depth = camera.to_pixels(points, (32, 48))
    expected, expected_depth = camera.to_pixels(points.detach().numpy(), (32, 48))
    np.testing.assert_allclose(pixels.detach().numpy(), expected)
    np.testing.assert_allclose(depth.detach().numpy(), expected_depth)
    assert torch.autograd.gradcheck(lambda p: camera.to_pixels(p, (32, 48)), points)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eye": (1, 1, 1), "target": (1, 1, 1)}, "same point"),
        ({"eye": (0, 5, 0), "target": (0, 0, 0)}, "up is parallel"),
        ({"eye": (0, 0), "target": (0, 0, 0)}, "eye is three finite numbers"),
        ({"eye": (0, 0, 1), "target": (0, float("nan"), 0)}, "target is three finite numbers"),
        ({"eye": (0, 0, 1), "target": (0, 0, 0), "fov": 180}, "between 0 and 180"),
        ({"eye": (0, 0, 1), "target": (0, 0, 0), "scale": 0}, "scale must be positive"),
        ({"eye": (0, 0, 1), "target": (0, 0, 0), "fov": 60, "scale": 1}, "not both"),
    ],
)
def test_cameras_that_cannot_be_say_why(arguments, message):
    with pytest.raises(ValueError, match=message):
        Camera.look_at(**arguments)
