"""Moving meshes to USD files (package usd-core, optional), for viewers and renderers: y up, metres, time samples."""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nablasim.physics.errors import MissingPackage
from nablasim.physics.geometry import TriMesh

ENDINGS = (".usd", ".usda", ".usdc")


@dataclass(frozen=True, eq=False)
class Moving:
    """A mesh that moves: as a rigid body by `pos` (t, 3) and `rot` (t, 4), or vertex by vertex by `points` (t, n, 3).

    What is not given stays as it is. `colour` is red, green, blue from 0 to 1.
    """

    mesh: TriMesh
    pos: ArrayLike | None = None
    rot: ArrayLike | None = None
    points: ArrayLike | None = None
    colour: tuple[float, float, float] = (0.7, 0.7, 0.7)


def save_usd(
    path: str | os.PathLike[str], things: Mapping[str, Moving | TriMesh], times: ArrayLike, *, fps: float = 24.0
) -> None:
    """Write things by name, sampled at `times` (s), to a .usd, .usda or .usdc file.

    Positions are written in single precision, as USD keeps them. The file is there whole or not at all.
    """
    if importlib.util.find_spec("pxr") is None:
        raise MissingPackage("usd-core", "writing USD", "usd")
    path, t = Path(path), np.asarray(times, dtype=float)
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path}: a USD file ends in {', '.join(ENDINGS)}")
    if t.ndim != 1 or len(t) == 0 or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise ValueError("times are a row of ascending numbers")
    parts = {name: _checked(name, thing, len(t)) for name, thing in things.items()}
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".saving-") as folder:
        aside = Path(folder, f"scene{path.suffix.lower()}")
        _write(aside, parts, t, fps)
        os.replace(aside, path)


def _checked(name: str, thing: Moving | TriMesh, count: int) -> Moving:
    thing = Moving(thing) if isinstance(thing, TriMesh) else thing
    arrays: dict[str, Any] = {}
    for key, shape in (("pos", (3,)), ("rot", (4,)), ("points", thing.mesh.vertices.shape)):
        value = getattr(thing, key)
        if value is None:
            arrays[key] = None
            continue
        array = np.asarray(value, dtype=float)
        if array.shape != (count, *shape):
            raise ValueError(f"{name}: {key} has shape {array.shape}; expected {(count, *shape)}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: {key} is not finite at sample {int(np.argwhere(~np.isfinite(array))[0, 0])}")
        arrays[key] = array
    return Moving(thing.mesh, colour=thing.colour, **arrays)


def _write(path: Path, things: Mapping[str, Moving], times: Any, fps: float) -> None:
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(fps)
    codes = [float(t) for t in times * fps]
    stage.SetStartTimeCode(codes[0])
    stage.SetEndTimeCode(codes[-1])
    world = UsdGeom.Xform.Define(stage, "/World")
    stage.SetDefaultPrim(world.GetPrim())
    for name, thing in things.items():
        spelled = re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)  # letters, digits and underscores
        _write_one(UsdGeom.Mesh.Define(stage, f"/World/{spelled}"), thing, codes)
    stage.GetRootLayer().Save()


def _write_one(prim: Any, thing: Moving, codes: list[float]) -> None:
    from pxr import Gf, Vt

    faces = thing.mesh.faces
    prim.CreateFaceVertexCountsAttr(Vt.IntArray([3] * len(faces)))
    prim.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.ascontiguousarray(faces.ravel())))
    prim.CreateSubdivisionSchemeAttr("none")
    prim.CreateDisplayColorAttr([Gf.Vec3f(*thing.colour)])
    points = prim.CreatePointsAttr()
    if thing.points is None:
        points.Set(_vectors(thing.mesh.vertices))
        prim.CreateExtentAttr(_extent(thing.mesh.vertices))
    else:
        extent = prim.CreateExtentAttr()
        for code, x in zip(codes, np.asarray(thing.points)):
            points.Set(_vectors(x), code)
            extent.Set(_extent(x), code)
    if thing.pos is not None:
        move = prim.AddTranslateOp()
        for code, p in zip(codes, np.asarray(thing.pos)):
            move.Set(Gf.Vec3d(*map(float, p)), code)
    if thing.rot is not None:
        turn = prim.AddOrientOp()
        for code, (x, y, z, w) in zip(codes, np.asarray(thing.rot, dtype=float).tolist()):
            turn.Set(Gf.Quatf(w, x, y, z), code)


def _vectors(x: Any) -> Any:
    from pxr import Vt

    return Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(x, dtype=np.float32))


def _extent(x: Any) -> Any:
    return _vectors(np.stack([np.min(x, axis=0), np.max(x, axis=0)]))
