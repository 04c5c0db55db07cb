"""What can be wrong with what people give, one sentence each: what was found, what is wanted, what to do."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from nablasim.render.either import below, is_tensor, plain


# -- settings
def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name} cannot be {value!r}: choose one of {', '.join(map(repr, choices))}")


def check_size(size: Any) -> tuple[int, int]:
    """(height, width) as whole numbers."""
    if type(size) is tuple and len(size) == 2 and all(type(n) is int and n > 0 for n in size):
        return size  # what nearly everybody gives, in every call
    found = np.asarray(size)
    if found.shape != (2,) or found.dtype.kind not in "iuf" or not all(n == int(n) and n > 0 for n in found.tolist()):
        raise ValueError(f"size is (height, width) in whole pixels, both above zero, not {size!r}")
    return int(found[0]), int(found[1])


def check_number(name: str, value: Any, *, positive: bool = False) -> float:
    """A finite number."""
    is_number = isinstance(value, numbers.Real) or (np.ndim(value) == 0 and hasattr(value, "item"))
    if not is_number or not np.isfinite(float(value)) or (positive and not value > 0):
        wanted = "a finite number above zero" if positive else "a finite number"
        raise ValueError(f"{name} must be {wanted}, not {value!r}")
    return float(value)


# -- arrays
def check_finite(name: str, value: Any) -> None:
    found = plain(below(value, whole=True) if is_tensor(value) else value)
    if found.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers, not {value!r}")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(found))[0])
        raise ValueError(
            f"{name}{list(where) if where else ''} is {found[where]}: every number must be finite. Look at the step "
            "that made it; kc.config.debug = True stops at the first NaN of a kernel"
        )


def check_shape(
    name: str, value: Any, wanted: tuple[int | None, ...], *, why: str = "", batch: bool = False
) -> tuple[int, ...]:
    """The shape of a value, if it is the wanted one; None stands for any size. Values must be finite."""
    shape = tuple(np.shape(value))
    core = shape[1:] if batch and len(shape) == len(wanted) + 1 else shape
    if len(core) != len(wanted) or any(w not in (None, n) for n, w in zip(core, wanted)):
        said = "(" + ", ".join("n" if w is None else str(w) for w in wanted) + ("," if len(wanted) == 1 else "") + ")"
        more = f", or with a batch in front, (B, {said[1:].replace(',)', ')')}" if batch else ""
        raise ValueError(f"{name} has shape {shape}, but must have {said}{more}{': ' + why if why else ''}")
    check_finite(name, value)
    return shape


def check_paint(name: str, value: Any) -> None:
    """Colours are real numbers: bytes would be 255 times too bright."""
    if str(getattr(value, "dtype", "")).endswith("uint8"):
        raise ValueError(f"{name} are bytes: colours are in [0, 1], give {name} / 255")


def check_faces(name: str, faces: Any, count: int, of: str) -> int:
    """The number of faces, if all their indices are there."""
    found = plain(faces)
    if found.ndim != 2 or found.shape[1] != 3 or found.dtype.kind not in "iu":
        raise ValueError(f"{name} is (m, 3) whole numbers, not {found.dtype} of shape {found.shape}")
    if found.size and (found.min() < 0 or found.max() >= count):
        bad = np.argwhere((found < 0) | (found >= count))[0]
        raise ValueError(
            f"{name}[{bad[0]}, {bad[1]}] is {found[tuple(bad)]}, but there are {count} {of}, from 0 to {count - 1}"
        )
    return len(found)


def check_objects(objects: Any, faces: int) -> None:
    check_shape("objects", objects, (faces,), why="one number per face")
    if plain(objects).dtype.kind not in "iu" and faces:
        raise ValueError(f"objects are whole numbers, not {plain(objects).dtype}")


def is_several(texture: Any) -> bool:
    """Whether a list of textures is given, and not one."""
    return isinstance(texture, (list, tuple)) and any(len(np.shape(t)) >= 3 for t in texture)


def check_texture(texture: Any) -> None:
    """One texture, or several."""
    for one in texture if is_several(texture) else [texture]:
        shape = tuple(np.shape(one))
        if len(shape) not in (3, 4) or shape[-1] not in (3, 4) or min(shape) < 1:
            raise ValueError(
                f"a texture is (height, width, 3), or 4 with opacity, at least one texel, not of shape {shape}. With "
                "one for each frame of a batch it is (B, height, width, 3)"
            )
        check_paint("texture", one)
        check_shape("texture", one, shape)


def check_which(name: str, index: Any, faces: int, count: int) -> None:
    """Numbers of things for each face, -1 for none."""
    check_shape(name, index, (faces,), why="one number per face")
    found = plain(index)
    if found.dtype.kind not in "iu" and faces:
        raise ValueError(f"{name} are whole numbers, not {found.dtype}")
    if found.size and (found.min() < -1 or found.max() >= count):
        bad = int(np.flatnonzero((found < -1) | (found >= count))[0])
        raise ValueError(f"{name}[{bad}] is {found[bad]}, but there are {count}, from 0 to {count - 1}; -1 is none")


def check_uvs(uvs: Any, uv_faces: Any, count: int, faces: int, *, batch: bool = False) -> tuple[int, ...]:
    """The shape of the uvs, if there is one for each vertex, or for each index of uv_faces."""
    shape = check_shape("uvs", uvs, (None, 2), batch=batch)
    if uv_faces is not None:
        if check_faces("uv_faces", uv_faces, shape[-2], "uvs") != faces:
            raise ValueError(f"uv_faces has {len(uv_faces)} faces, but faces has {faces}")
    elif shape[-2] != count:
        raise ValueError(
            f"there are {shape[-2]} uvs for {count} vertices: give one per vertex, or uv_faces, which say which uv "
            "each corner of a face has"
        )
    return shape


NO_UVS = "a texture needs uvs, which say where on the texture each vertex lies: give uvs=(k, 2)"


# -- lights
def shaped(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """A value as an array of real numbers of this shape."""
    if not is_tensor(value):
        if np.asarray(value).dtype.kind not in "biuf":
            raise ValueError(f"{name} must be numbers, not {value!r}")
        value = np.asarray(value, float)
    if shape == () and tuple(value.shape) == (1,):
        value = value.reshape(())
    if tuple(value.shape) != shape:
        wanted = f"have shape {shape}" if shape else "be one number"
        raise ValueError(f"{name} must {wanted}, not {tuple(value.shape)}")
    check_finite(name, value)
    return value


def shaped_rows(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """(1, ...) for a value of this shape, or (n, ...) for one with the frames of a batch in front."""
    many = len(np.shape(value)) == len(shape) + 1 and np.shape(value)[0] > 0
    found = shaped(name, value, (np.shape(value)[0], *shape) if many else shape)
    return found if many else found.reshape(1, *shape)


def colours(name: str, value: Any) -> Any:
    """(1, 3), or (n, 3) for a colour of each frame."""
    return shaped_rows(name, value, (3,)) if len(np.shape(value)) == 2 else colour(name, value).reshape(1, 3)


def backdrop(value: Any, size: tuple[int, int]) -> Any:
    """A background as (n, height, width, 3): a colour is a picture of one pixel."""
    name, dimensions = "background", len(np.shape(value))
    if dimensions < 3:
        return colours(name, value).reshape(-1, 1, 1, 3)
    check_paint(name, value)
    shape = tuple(np.shape(value))
    if dimensions > 4 or shape[-3:] != (*size, 3):
        raise ValueError(
            f"background has shape {shape}: a picture behind one of {size[0]} × {size[1]} pixels is "
            f"{(*size, 3)}, with frames in front for one each. Scale it: render.read_video(path, size={size}).frames[0]"
        )
    return shaped(name, value, shape).reshape(-1, *shape[-3:])


def colour(name: str, value: Any) -> Any:
    """Three numbers: one stands for grey."""
    if np.shape(value) in ((), (1,)):
        grey = shaped(name, value, ())
        return grey.reshape(1).expand(3) if is_tensor(grey) else np.full(3, float(grey))
    return shaped(name, value, (3,))
