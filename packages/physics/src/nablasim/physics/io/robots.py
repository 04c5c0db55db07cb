"""`load_robot`: robots from URDF and MJCF files, as descriptions that scenes take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from nablasim.physics.errors import RobotError
from nablasim.physics.geometry import Robot, Shape
from nablasim.physics.io.mjcf import read_mjcf
from nablasim.physics.io.robot_meshes import Meshes
from nablasim.physics.io.urdf import Joint, Link, load_urdf, mesh_file
from nablasim.physics.io.urdf import Robot as Description
from nablasim.physics.io.xml import parse


def load_robot(
    path: str | os.PathLike[str], *, free: bool = False, within: str | os.PathLike[str] | None = None,
    meshes: bool = True,
) -> Robot:  # fmt: skip
    """The robot of a URDF or MJCF file; `RobotError` with file and line where it holds none.

    free: the root of a URDF moves freely, by a joint "root" that comes first; otherwise it is welded to the world.
    within: the folder that holds the files which it names; see `ph.io.load_urdf`.
    meshes: whether meshes are read. Links touch by their convex hulls, of at most 40 corners, and are drawn as their
        visuals, in at most 4000 triangles each. Without them a robot moves the same, and touches by shapes only.

    Both formats have z up: use `Scene(gravity=(0, 0, -9.81))`, or turn the base by `add_robot(..., rot=)`.
    """
    path = Path(path)
    root = parse(path)
    if root.tag == "mujoco":
        if free:
            raise ValueError("free=True is for URDF: MJCF files say themselves which bodies move freely")
        return read_mjcf(path, root, within=None if within is None else Path(within), meshes=meshes)
    if root.tag != "robot":
        raise RobotError(f"the root is <{root.tag}>; expected <robot> (URDF) or <mujoco> (MJCF)", file=path,
                         line=root.sourceline)  # fmt: skip
    inside = _folder(path, root) if within is None else Path(within)
    found = load_urdf(path, within=inside)
    _check_meshes(path, root, inside)
    lines = {f"{e.tag} {e.get('name')}": e.sourceline for e in root.iterfind("*") if e.tag in ("link", "joint")}
    return _from_urdf(found, path, lines, free, Meshes(path) if meshes else None)


def _folder(path: Path, root: Any) -> Path:
    """The folder of the file, or that of the package which it is in and takes meshes from."""
    inside = path.parent
    for mesh in root.iter("mesh"):
        scheme, _, rest = (mesh.get("filename") or "").rpartition("://")
        for above in Path(os.path.abspath(path)).parents if scheme == "package" else ():
            if above.name == rest.lstrip("/").partition("/")[0] and not above.is_relative_to(os.path.abspath(inside)):
                inside = above
    return inside


def _check_meshes(path: Path, root: Any, inside: Path) -> None:
    for mesh in root.iter("mesh"):
        file = mesh_file(mesh.get("filename"), path, inside)
        if not file.is_file():
            reason = f"there is no mesh {mesh.get('filename')!r}"
            raise RobotError(reason, advice=f"It was looked for at {file}", file=path, line=mesh.sourceline)


def _from_urdf(found: Description, path: Path, lines: dict[str, int], free: bool, meshes: Meshes | None) -> Robot:
    robot = Robot(found.name)
    # A base that is called the world, and is welded to it, is the world.
    names = {link: link.replace(".", "_") for link in found.links}
    names |= {link: "world" if link == found.base and not free else "world_link" for link in names if link == "world"}
    for link in found.links.values():
        try:
            if names[link.name] != "world":
                _add_link(robot, names[link.name], link, meshes)
        except RobotError as error:
            raise RobotError(error.reason, advice=error.advice, file=path, line=lines[f"link {link.name}"]) from None
    if meshes is not None:
        meshes.tell()
    if names[found.base] != "world":
        taken = {joint.name for joint in found.joints}
        root = next(name for name in ("root" if free else "world_joint", "base_joint", "_root") if name not in taken)
        robot.add_joint(root, "free" if free else "fixed", child=names[found.base])
    below: dict[str, list[Joint]] = {}
    for joint in found.joints:
        below.setdefault(joint.parent, []).append(joint)
    waiting = below.get(found.base, [])[::-1]
    while waiting:  # Depth first, in the order of the file.
        joint = waiting.pop()
        try:
            _add_joint(robot, names, joint)
        except RobotError as error:
            raise RobotError(error.reason, advice=error.advice, file=path, line=lines[f"joint {joint.name}"]) from None
        waiting += below.get(joint.child, [])[::-1]
    _add_mimics(robot, found, path, lines)
    return robot


def _add_mimics(robot: Robot, found: Description, path: Path, lines: dict[str, int]) -> None:
    for joint in found.joints:
        if joint.mimic is not None:
            leader, ratio, offset = joint.mimic
            try:
                robot.add_mimic(_plain(joint.name), _plain(leader), ratio=ratio, offset=offset)
            except RobotError as error:
                raise RobotError(error.reason, advice=error.advice, file=path,
                                 line=lines[f"joint {joint.name}"]) from None  # fmt: skip
    if robot.mimics:
        said = ", ".join(f"{name} follows {mimic.leader}" for name, mimic in robot.mimics.items())
        warn(f"{path}: {said}: kept as constraints in steps, and left out of forward_dynamics", stacklevel=5)


def _plain(name: str) -> str:
    """Names of ours have no dots."""
    return name.replace(".", "_")


def _add_link(robot: Robot, name: str, link: Link, meshes: Meshes | None) -> None:
    inertia = np.zeros((3, 3)) if link.inertia is None else link.inertia
    robot.add_link(name, mass=link.mass or 0.0, com=link.com, inertia=inertia)
    for part in link.collision:
        if isinstance(part.shape, Shape):
            robot.add_shape(name, part.shape, pos=part.pos, rot=part.rot)
        elif meshes is not None and (hull := meshes.hull(part.shape, part.scale)) is not None:
            robot.add_shape(name, hull, pos=part.pos, rot=part.rot)
    if meshes is None:
        return
    for part in link.visual:
        if isinstance(part.shape, Shape):
            robot.add_visual(name, part.shape, pos=part.pos, rot=part.rot)
        elif (seen := meshes.drawn(part.shape, part.scale)) is not None:
            robot.add_visual(name, seen, pos=part.pos, rot=part.rot)


def _add_joint(robot: Robot, names: dict[str, str], joint: Joint) -> None:
    name = _plain(joint.name)
    kind = {"floating": "free"}.get(joint.kind, joint.kind)
    bounded = kind in ("revolute", "prismatic") and np.isfinite([joint.lower, joint.upper]).all()
    limits = (joint.lower, joint.upper) if bounded and (joint.lower or joint.upper) else None
    single = kind in ("revolute", "continuous", "prismatic")
    robot.add_joint(name, kind, parent=names[joint.parent], child=names[joint.child], pos=joint.pos,
                    rot=joint.rot, axis=joint.axis, limits=limits, damping=joint.damping,
                    friction=joint.friction if single else 0.0)  # fmt: skip
    if single and joint.effort > 0:
        robot.add_motor(name, limit=joint.effort)
