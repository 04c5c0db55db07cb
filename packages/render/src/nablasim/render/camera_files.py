"""Cameras in files: what OpenCV, COLMAP and NeRF write, as matrices K, R and t for `Camera.opencv`.

Every reader says which file is broken, and where.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

Values = dict[str, Any]


# -- OpenCV
def read_opencv(path: str | Path) -> Values:
    """What a calibration says: K, and size, distortion, R and t where they are there."""
    path = Path(path)
    text = _text(path)
    try:
        entries = _entries(text)
    except (ValueError, KeyError, ElementTree.ParseError) as reason:
        raise ValueError(f"{path} cannot be read as a file of cv2.FileStorage: {reason}") from None

    def first(*names: str) -> Any:
        return next((entries[n] for n in names if n in entries), None)

    K = first("camera_matrix", "Camera_Matrix", "cameraMatrix", "K")
    if K is None:
        raise ValueError(f"{path} has no camera_matrix, only {', '.join(sorted(entries)) or 'nothing'}")
    found: Values = {"K": _shaped(path, "camera_matrix", K, (3, 3))}
    bend = first("distortion_coefficients", "Distortion_Coefficients", "dist_coeffs", "distCoeffs", "D")
    width, height = first("image_width", "image_Width"), first("image_height", "image_Height")
    if bend is not None:
        found["distortion"] = _trimmed(np.ravel(bend))
    if width is not None and height is not None:
        found["size"] = (int(width), int(height))[::-1]
    R, t = first("R", "rvec"), first("t", "T", "tvec")
    if R is not None:
        found["R"] = rotation(np.ravel(R)) if np.size(R) == 3 else _shaped(path, "R", R, (3, 3))
    if t is not None:
        found["t"] = _shaped(path, "t", np.ravel(t), (3,))
    return found


def _entries(text: str) -> Values:
    """The numbers and matrices of a file by name: JSON, XML, or OpenCV's YAML."""
    start = text.lstrip()
    if start.startswith("{"):
        return {name: _of_json(v) for name, v in json.loads(text).items() if not isinstance(v, str)}
    if start.startswith("<"):
        root = ElementTree.fromstring(text)
        return {e.tag: _of_xml(e) for e in root if e.find("data") is not None or _is_number(e.text)}
    matrices = re.finditer(
        r"^(\w+)\s*:\s*!!opencv-(?:nd-)?matrix\s*\n((?:\s*(?:rows|cols|sizes|dt)\s*:[^\n]*\n)+)\s*data\s*:\s*\[([^\]]*)\]",
        text, re.M,
    )  # fmt: skip
    found: Values = {m[1]: _grid(m[3], re.findall(r"(?:rows|cols|sizes)\s*:\s*\[?([\d ,]+)", m[2])) for m in matrices}
    lists = re.finditer(r"^(\w+)\s*:\s*\[([^\]]*)\]", text, re.M)
    found |= {m[1]: np.array(m[2].replace(",", " ").split(), float) for m in lists}
    numbers = re.finditer(r"^(\w+)\s*:\s*([-+.\deE]+)\s*$", text, re.M)
    return found | {m[1]: float(m[2]) for m in numbers if _is_number(m[2])}


def _of_json(value: Any) -> Any:
    if isinstance(value, dict) and "data" in value:
        shape = value["sizes"] if "sizes" in value else (value["rows"], value["cols"])
        return np.reshape(np.array(value["data"], float), [int(n) for n in np.ravel(shape)])
    return np.array(value, float) if isinstance(value, list) else value


def _of_xml(element: Any) -> Any:
    data = element.find("data")
    if data is None:
        return float(element.text)
    return _grid(data.text, [e.text for name in ("rows", "cols", "sizes") for e in element.findall(name)])


def _grid(numbers: str, sizes: list[str]) -> Any:
    """Numbers as an array of sizes that are written one by one, or in one text."""
    shape = [int(n) for n in " ".join(sizes).replace(",", " ").split()]
    found = np.array(numbers.replace(",", " ").split(), float)
    if found.size != np.prod(shape):
        raise ValueError(f"a matrix of {' × '.join(map(str, shape))} has {found.size} numbers")
    return found.reshape(shape)


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True


def rotation(vector: Any) -> Any:
    """The matrix of a rotation vector, as cv2.Rodrigues gives it."""
    angle = float(np.linalg.norm(vector))
    if angle == 0:
        return np.eye(3)
    x, y, z = np.asarray(vector, float) / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


# -- COLMAP
MODELS = {
    0: ("SIMPLE_PINHOLE", 3), 1: ("PINHOLE", 4), 2: ("SIMPLE_RADIAL", 4), 3: ("RADIAL", 5), 4: ("OPENCV", 8),
    5: ("OPENCV_FISHEYE", 8), 6: ("FULL_OPENCV", 12), 7: ("FOV", 5), 8: ("SIMPLE_RADIAL_FISHEYE", 4),
    9: ("RADIAL_FISHEYE", 5), 10: ("THIN_PRISM_FISHEYE", 12),
}  # fmt: skip
"""COLMAP's models by number, and how many parameters each has."""


def read_colmap(folder: str | Path) -> dict[str, Values]:
    """What COLMAP found, by the name of the picture, in the order of the file."""
    folder = Path(folder)
    kind = next((end for end in (".bin", ".txt") if (folder / f"cameras{end}").exists()), None)
    if kind is None:
        raise FileNotFoundError(f"{folder} has no cameras.txt or cameras.bin: it is the folder of a model, sparse/0")
    cameras, images = folder / f"cameras{kind}", folder / f"images{kind}"
    if not images.exists():
        raise FileNotFoundError(f"{images} is missing: it says where the cameras were")
    try:
        lenses = dict(_binary_cameras(cameras.read_bytes()) if kind == ".bin" else _text_cameras(_text(cameras)))
    except (ValueError, KeyError, IndexError, struct.error) as reason:
        raise ValueError(f"{cameras} cannot be read as a file of COLMAP: {reason}") from None
    try:
        poses = list(_binary_images(images.read_bytes()) if kind == ".bin" else _text_images(_text(images)))
    except (ValueError, IndexError, struct.error) as reason:
        raise ValueError(f"{images} cannot be read as a file of COLMAP: {reason}") from None
    found = {}
    for name, camera, q, t in poses:
        if camera not in lenses:
            raise ValueError(f"{images}: {name} is of camera {camera}, which {cameras.name} does not have")
        found[name] = {**_lens(cameras, *lenses[camera]), "R": _of_quaternion(q), "t": np.array(t)}
    return found


def _text_cameras(text: str) -> Iterator[tuple[int, Any]]:
    for line in text.splitlines():
        words = line.split()
        if words and not line.startswith("#"):
            yield int(words[0]), (words[1], int(words[2]), int(words[3]), [float(w) for w in words[4:]])


def _text_images(text: str) -> Iterator[tuple[str, int, Any, Any]]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    while lines and not lines[0].strip():
        lines.pop(0)
    for line in lines[::2]:  # Every second line has the points that were seen, and may be empty.
        if line.strip():
            words = line.split(maxsplit=9)
            numbers = [float(w) for w in words[1:8]]
            yield words[9], int(words[8]), numbers[:4], numbers[4:]


def _binary_cameras(data: bytes) -> Iterator[tuple[int, Any]]:
    (count,), at = struct.unpack_from("<Q", data), 8
    for _ in range(count):
        number, model, width, height = struct.unpack_from("<iiQQ", data, at)
        if model not in MODELS:
            raise ValueError(f"there is no camera model {model}")
        name, size = MODELS[model]
        yield number, (name, width, height, list(struct.unpack_from(f"<{size}d", data, at + 24)))
        at += 24 + 8 * size


def _binary_images(data: bytes) -> Iterator[tuple[str, int, Any, Any]]:
    (count,), at = struct.unpack_from("<Q", data), 8
    for _ in range(count):
        _, *numbers, camera = struct.unpack_from("<i7di", data, at)
        end = data.index(b"\0", at + 64)
        (points,) = struct.unpack_from("<Q", data, end + 1)
        yield data[at + 64 : end].decode(), camera, numbers[:4], numbers[4:]
        at = end + 9 + 24 * points


def _lens(path: Path, model: str, width: int, height: int, p: list[float]) -> Values:
    """K and distortion of one of COLMAP's models, whose pixels cover [j, j + 1) as ours."""
    wanted = dict(MODELS.values()).get(model)
    if wanted is None or len(p) != wanted:
        raise ValueError(f"{path}: {model} with {len(p)} parameters is no camera model of COLMAP")
    if model in ("SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL"):
        p = [p[0], *p]  # one focal length for both directions
    elif model not in ("PINHOLE", "OPENCV"):
        raise ValueError(f"{path}: the camera model {model} is not one of ours, which are those of k1, k2, p1, p2: "
                         "undistort the pictures, colmap image_undistorter")  # fmt: skip
    fx, fy, cx, cy, *bend = p
    found: Values = {"K": np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]), "size": (height, width)}
    return found | ({"distortion": np.array(bend)} if bend else {})


def _of_quaternion(q: Any) -> Any:
    w, x, y, z = np.asarray(q, float) / np.linalg.norm(q)
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


# -- NeRF
def read_nerf(path: str | Path, size: tuple[int, int] | None) -> dict[str, Values]:
    """What a transforms.json says, by the path of the picture: its cameras look along -z with y up, as ours."""
    path = Path(path)
    try:
        data = json.loads(_text(path))
        frames = data["frames"]
    except (ValueError, KeyError, TypeError) as reason:
        raise ValueError(f"{path} is no transforms.json of NeRF: {reason!r}") from None
    found = {}
    for k, frame in enumerate(frames):
        merged = {**data, **frame}
        if merged.get("camera_model") not in (None, "OPENCV", "PINHOLE", "SIMPLE_PINHOLE", "PERSPECTIVE"):
            raise ValueError(f"{path}: frame {k} has the camera model {merged['camera_model']!r}, which is not ours")
        pose = _shaped(path, f"transform_matrix of frame {k}", frame.get("transform_matrix", ()), (4, 4))
        height, width = size or (merged.get("h", 0), merged.get("w", 0))
        if not height or not width:
            raise ValueError(f"{path} does not say how large its pictures are: Camera.from_nerf(path, size=(800, 800))")
        R = np.diag([1.0, -1, -1]) @ pose[:3, :3].T
        lens = _nerf_lens(path, merged, int(height), int(width))
        found[str(frame.get("file_path", k))] = {**lens, "R": R, "t": -R @ pose[:3, 3]}
    return found


def _nerf_lens(path: Path, data: Values, height: int, width: int) -> Values:
    sx, sy = (width / data["w"], height / data["h"]) if "w" in data and "h" in data else (1.0, 1.0)
    if "fl_x" in data:
        fx = float(data["fl_x"]) * sx
        fy = float(data["fl_y"] if "fl_y" in data else data["fl_x"]) * sy
    elif "camera_angle_x" in data:
        fx = width / 2 / np.tan(data["camera_angle_x"] / 2)
        fy = height / 2 / np.tan(data["camera_angle_y"] / 2) if "camera_angle_y" in data else fx
    else:
        raise ValueError(f"{path} has neither fl_x nor camera_angle_x: the focal length is missing")
    cx = data["cx"] * sx if "cx" in data else width / 2
    cy = data["cy"] * sy if "cy" in data else height / 2
    found: Values = {"K": np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]), "size": (height, width)}
    bend = [float(data.get(name, 0.0)) for name in ("k1", "k2", "p1", "p2", "k3")]
    return found | ({"distortion": np.array(bend)} if any(bend) else {})


# -- all of them
def _text(path: Path) -> str:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text") from None


def _shaped(path: Path, name: str, value: Any, shape: tuple[int, ...]) -> Any:
    try:
        found = np.array(value, float)
    except (TypeError, ValueError):
        raise ValueError(f"{path}: {name} is not made of numbers") from None
    if found.shape != shape:
        raise ValueError(f"{path}: {name} has shape {found.shape}, but must have {shape}")
    return found


def _trimmed(numbers: Any) -> Any:
    """Without zeros beyond the fifth: OpenCV writes up to fourteen."""
    return numbers[:5] if not numbers[5:].any() else numbers
