"""Robots from URDF files, read by yourdfpy (an optional package) into a plain description of links and joints.

Poses are positions and quaternions (x, y, z, w); shapes are ours, which stand along y, turned so that they lie as URDF
means them, along z. Nothing is turned to y up: a URDF's world has z up, and where the base stands is the scene's.
"""

from __future__ import annotations

import importlib.util
import io
import math
import os
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import kernelc as kc
from nablasim.physics.errors import MissingPackage, RobotError
from nablasim.physics.geometry import Box, Capsule, Cylinder, Shape, Sphere, quat
from nablasim.physics.io.xml import parse

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
GEOMETRIES = ("box", "cylinder", "sphere", "capsule", "mesh")
# How many numbers an attribute holds: of the element, or of any element.
NUMBERS = {
    "xyz": 3, "rpy": 3, "size": 3, "radius": 1, "length": 1, "scale": (1, 3), "lower": 1, "upper": 1, "effort": 1,
    "velocity": 1, "damping": 1, "friction": 1, "ixx": 1, "ixy": 1, "ixz": 1, "iyy": 1, "iyz": 1, "izz": 1,
    "multiplier": 1, "offset": 1,
}  # fmt: skip
UPRIGHT = quat((1, 0, 0), math.pi / 2)
"""Turns y to z."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """A shape, or a mesh in a file, and where it stands in the frame of its link."""

    shape: Shape | Path
    pos: NDArray[np.float64]
    rot: NDArray[np.float64]
    scale: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid part: mass (kg), centre of mass (m) and inertia about it (kg m²) in its own frame; none if not given."""

    name: str
    mass: float | None
    com: NDArray[np.float64]
    inertia: NDArray[np.float64] | None
    visual: tuple[Geometry, ...]
    collision: tuple[Geometry, ...]


@dataclass(frozen=True, eq=False)
class Joint:
    """What joins `child` to `parent`: the child's frame stands at (pos, rot) in the parent's, and moves along `axis`.

    Limits are rad or m, infinite where there are none; `mimic` is (joint, multiplier, offset).
    """

    name: str
    kind: str
    parent: str
    child: str
    pos: NDArray[np.float64]
    rot: NDArray[np.float64]
    axis: NDArray[np.float64]
    lower: float
    upper: float
    effort: float
    velocity: float
    damping: float
    friction: float
    mimic: tuple[str, float, float] | None


@dataclass(frozen=True, eq=False)
class Robot:
    """A tree of links; every joint stands behind that of its parent, so that one pass forward meets parents first."""

    name: str
    base: str
    links: dict[str, Link]
    joints: tuple[Joint, ...]


def load_urdf(path: str | os.PathLike[str], *, within: str | os.PathLike[str] | None = None) -> Robot:
    """The description that a URDF file holds; `RobotError` with file and line where it is not one.

    within: the folder that its meshes are in, by default that of the file. A name that leaves it is refused: such a
        file would make you read whatever it likes. Robots whose meshes stand beside their folder, "../meshes/arm.stl",
        need the folder of both.
    """
    if importlib.util.find_spec("yourdfpy") is None:
        raise MissingPackage("yourdfpy", "reading URDF", "urdf")
    path = Path(path)
    inside = path.parent if within is None else Path(within)
    root = parse(path)
    lines = _check(root, path, inside)
    import yourdfpy

    try:
        parsed = yourdfpy.URDF.load(_for_parser(root), build_scene_graph=False, load_meshes=False).robot
    except Exception as error:  # What `_check` did not foresee.
        raise RobotError(f"this cannot be read as URDF ({type(error).__name__}: {error})", file=path) from error
    links = {}
    for link, element in zip(parsed.links, root.iterfind("link")):
        try:
            links[link.name] = _link(link, element, path, inside)
        except ValueError as error:
            raise RobotError(f"link {link.name}: {error}", file=path, line=lines[f"link {link.name}"]) from None
    joints, base = _in_order([_joint(joint) for joint in parsed.joints], links, path, lines)
    return Robot(parsed.name, base, links, joints)


# ------------------------------------------------------------------------------------------------- before the parser
def _for_parser(root: Any) -> io.BytesIO:
    """The file as yourdfpy takes it: a geometry holds one element, and a capsule is a cylinder until `_geometry`."""
    from lxml import etree

    plain = deepcopy(root)
    for geometry in plain.iter("geometry"):
        for part in geometry:
            if part.tag not in GEOMETRIES:
                geometry.remove(part)
            elif part.tag == "capsule":
                part.tag = "cylinder"
    return io.BytesIO(etree.tostring(plain))


def _check(root: Any, path: Path, inside: Path) -> dict[str, int]:
    """Refuse what the parser would stumble over, or read as something else. Returns the line of each joint and link."""
    if root.tag != "robot":
        raise RobotError(f"the root is <{root.tag}>; expected <robot>", file=path, line=root.sourceline)
    lines: dict[str, int] = {"robot": root.sourceline}
    for element in root.iter():
        if isinstance(element.tag, str):
            _check_element(element, path)
            if element.tag == "mesh":
                _check_mesh(element, path, inside)
    for element in root.iterfind("*"):
        if element.tag in ("link", "joint"):
            key = f"{element.tag} {element.get('name')}"
            if key in lines:
                raise RobotError(
                    f"{key} is there twice; first in line {lines[key]}", file=path, line=element.sourceline
                )
            lines[key] = element.sourceline
    for joint in root.iterfind("joint"):
        for end in ("parent", "child"):
            name = joint.find(end).get("link")
            if f"link {name}" not in lines:
                raise RobotError(
                    f"joint {joint.get('name')} names the {end} {name!r}, and there is no such link",
                    file=path,
                    line=joint.find(end).sourceline,
                )
    return lines


def _check_element(element: Any, path: Path) -> None:
    def refuse(reason: str) -> None:
        raise RobotError(reason, file=path, line=element.sourceline)

    tag, parent = element.tag, element.getparent()
    inside = None if parent is None else parent.tag
    if (tag == "robot" or (tag in ("link", "joint") and inside == "robot")) and not element.get("name"):
        refuse(f"a <{tag}> has no name")
    if tag == "joint" and inside == "robot":
        if element.get("type") not in KINDS:
            refuse(f"joint {element.get('name')} has the type {element.get('type')!r}; known: {', '.join(KINDS)}")
        for end in ("parent", "child"):
            if element.find(end) is None or not element.find(end).get("link"):
                refuse(f"joint {element.get('name')} has no {end}")
    if tag == "geometry" and _form(element) is None:
        refuse(f"<geometry> holds exactly one of {', '.join(GEOMETRIES)}")
    for name, text in element.attrib.items():
        count = NUMBERS.get(name, 1 if (tag, name) == ("mass", "value") else None)
        if count is None:
            continue
        words = text.split()
        counts = count if isinstance(count, tuple) else (count,)
        if len(words) not in counts or not all(_is_finite(word) for word in words):
            wanted = " or ".join(map(str, counts))
            refuse(f"<{tag}> has {name}={text!r}; expected {wanted} number{'s' if counts[-1] > 1 else ''}")
    if tag == "mass" and float(element.get("value", "0")) < 0:
        refuse(f"a mass is {element.get('value')}")


def _form(geometry: Any) -> str | None:
    """What a geometry is; some files have its material inside, too."""
    tags = [part.tag for part in geometry if part.tag != "material"]
    return tags[0] if len(tags) == 1 and tags[0] in GEOMETRIES else None


def _check_mesh(element: Any, path: Path, inside: Path) -> None:
    name = element.get("filename")
    if not name:
        raise RobotError("a <mesh> has no filename", file=path, line=element.sourceline)
    try:
        mesh_file(name, path, inside)
    except ValueError as error:
        advice = "Put the mesh there, or load_urdf(..., within=) the folder that holds both"
        raise RobotError(f"the mesh {name!r} {error}", advice=advice, file=path, line=element.sourceline) from None


def mesh_file(name: str, path: Path, inside: Path) -> Path:
    """Where a mesh is. `package://name/rest` is in the folder above that is called so, or else beside the file."""
    scheme, _, rest = name.rpartition("://")
    folder = path.parent
    if scheme == "package":
        whole = rest.lstrip("/")
        package, _, rest = whole.partition("/")
        above = [p for p in Path(os.path.abspath(folder)).parents if p.name == package and _holds(inside, p)]
        if not above and (folder / whole).is_file():  # Some call a folder beside the file a package.
            rest = whole
        folder = above[0] if above else folder
    elif scheme not in ("", "file"):
        raise ValueError(f"is behind {scheme}://, and only files are read")
    found = folder / rest
    if not _holds(inside, found):
        raise ValueError(f"is outside of {os.path.abspath(inside)}")
    return found


def _holds(folder: Path, inner: Path) -> bool:
    """By their names: what links lead to is not looked at."""
    return Path(os.path.abspath(inner)).is_relative_to(os.path.abspath(folder))


def _is_finite(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False


# -------------------------------------------------------------------------------------------------- behind the parser
def _link(link: Any, element: Any, path: Path, inside: Path) -> Link:
    given = link.inertial
    pos, R = _pose(None if given is None else given.origin)
    inertia = None if given is None or given.inertia is None else R @ np.asarray(given.inertia, dtype=float) @ R.T
    mass = None if given is None or given.mass is None else float(given.mass)
    visual, collision = (
        tuple(_geometry(part, _form(e.find("geometry")), path, inside) for part, e in zip(parts, element.iterfind(tag)))
        for tag, parts in (("visual", link.visuals), ("collision", link.collisions))
    )
    return Link(link.name, mass, pos, inertia, visual, collision)


def _geometry(part: Any, kind: str | None, path: Path, inside: Path) -> Geometry:
    pos, R = _pose(part.origin)
    rot, scale, form = _as_quat(R), np.ones(3), part.geometry
    shape: Shape | Path
    if form.box is not None:
        shape = Box(*map(float, form.box.size))
    elif form.sphere is not None:
        shape = Sphere(float(form.sphere.radius))
    elif form.cylinder is not None:
        shape = (Capsule if kind == "capsule" else Cylinder)(float(form.cylinder.radius), float(form.cylinder.length))
        rot = _as_quat(R @ np.asarray(kc.quat_to_matrix(UPRIGHT)))
    else:
        shape = mesh_file(form.mesh.filename, path, inside)
        scale = np.ones(3) if form.mesh.scale is None else np.broadcast_to(np.asarray(form.mesh.scale, float), 3)
    return Geometry(shape, pos, rot, scale)


def _joint(joint: Any) -> Joint:
    pos, R = _pose(joint.origin)
    axis = np.array([1.0, 0, 0]) if joint.axis is None else np.asarray(joint.axis, dtype=float)
    limit, dynamics = joint.limit, joint.dynamics
    # A joint that is fixed follows nobody: files whose joints were locked keep what they said of them before.
    mimic = None if joint.type == "fixed" else joint.mimic
    turns = joint.type == "continuous"
    return Joint(
        name=joint.name,
        kind=joint.type,
        parent=joint.parent,
        child=joint.child,
        pos=pos,
        rot=_as_quat(R),
        axis=axis / (np.linalg.norm(axis) or 1.0),
        lower=-math.inf if turns else _or(limit, "lower", -math.inf if limit is None else 0.0),
        upper=math.inf if turns else _or(limit, "upper", math.inf if limit is None else 0.0),
        effort=_or(limit, "effort", math.inf),
        velocity=_or(limit, "velocity", math.inf),
        damping=_or(dynamics, "damping", 0.0),
        friction=_or(dynamics, "friction", 0.0),
        mimic=None if mimic is None else (mimic.joint, _or(mimic, "multiplier", 1.0), _or(mimic, "offset", 0.0)),
    )


def _in_order(
    joints: list[Joint], links: dict[str, Link], path: Path, lines: dict[str, int]
) -> tuple[tuple[Joint, ...], str]:
    """Parents first; raises unless the joints make one tree of all links."""
    if not links:
        raise RobotError("there are no links", file=path, line=lines["robot"])
    above: dict[str, Joint] = {}
    for joint in joints:
        if joint.child in above:
            first = above[joint.child].name
            reason = f"link {joint.child} hangs on two joints, {first} and {joint.name}"
            advice = "Closed chains cannot be said in URDF"
            raise RobotError(reason, advice=advice, file=path, line=lines[f"joint {joint.name}"])
        above[joint.child] = joint
    roots = [name for name in links if name not in above]
    if len(roots) != 1:
        reason = f"{len(roots)} links hang on no joint: {', '.join(roots)}" if roots else "the joints run in a circle"
        line = lines[f"link {roots[1]}" if roots else f"joint {joints[0].name}"]
        raise RobotError(reason, advice="The links of a robot make one tree", file=path, line=line)
    placed = {roots[0]}
    order: list[Joint] = []
    while len(order) < len(joints):
        ready = [joint for joint in joints if joint.parent in placed and joint.child not in placed]
        if not ready:
            ring = next(joint for joint in joints if joint.child not in placed)
            raise RobotError(f"joint {ring.name} is part of a circle", file=path, line=lines[f"joint {ring.name}"])
        placed.update(joint.child for joint in ready)
        order += ready
    return tuple(order), roots[0]


def _pose(matrix: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    M = np.eye(4) if matrix is None else np.asarray(matrix, dtype=float)
    return M[:3, 3].copy(), M[:3, :3].copy()


def _as_quat(R: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(kc.quat_from_matrix(R))


def _or(part: Any, name: str, otherwise: float) -> float:
    value = None if part is None else getattr(part, name)
    return otherwise if value is None else float(value)
