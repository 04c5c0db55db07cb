"""Robots from MJCF, the format of MuJoCo: bodies, joints, inertia of geoms, defaults and classes, includes, actuators.

Frames stay as they are, z up; quaternions become (x, y, z, w). A body is a link, and has the coordinates that MuJoCo
gives it, in its order. What is not modelled is named in a warning; what would make another robot is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.errors import RobotError
from nablasim.physics.geometry import Placed, Robot, joined_masses, rotation_matrix
from nablasim.physics.io.mjcf_geoms import Geom, geom_of, orientation
from nablasim.physics.io.mjcf_meshes import Assets, read_assets
from nablasim.physics.io.xml import numbers, parse, refuse

Floats = NDArray[np.float64]
KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "free"}
SILENT = ("asset", "visual", "statistic", "size", "custom", "sensor", "keyframe", "compiler", "default", "option",
          "worldbody", "actuator", "contact")  # fmt: skip
"""Sections that are read, or say nothing about how the robot moves."""


@dataclass(eq=False)
class _File:
    """A file while it is read."""

    path: Path
    robot: Robot
    degrees: bool = True
    sequence: str = "xyz"
    from_geoms: str = "auto"
    limited: bool = True
    least_mass: float = 0.0
    least_inertia: float = 0.0
    total_mass: float = -1.0
    classes: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    """By class and kind of element the attributes that are not given."""
    names: set[str] = field(default_factory=set)
    joints: dict[str, str] = field(default_factory=dict)
    """The names of joints in the file, and here."""
    within: Path = Path(".")
    """The folder that its meshes are in."""
    meshes: Assets = field(init=False)

    def angle(self, number: float) -> float:
        return math.radians(number) if self.degrees else number

    def values(self, element: Any, name: str, text: str | None, counts: tuple[int, ...], default: Any) -> Floats:
        return np.asarray(default, float) if text is None else numbers(element, name, text, self.path, counts)

    def new(self, name: str | None, kind: str) -> str:
        """A name that no other thing of its kind has."""
        wanted, k = (name or kind).replace(".", "_"), 0
        made = wanted if name else f"{kind}0"
        while (kind + " " + made) in self.names or made == "world":
            k += 1
            made = f"{wanted}{k}"
        self.names.add(kind + " " + made)
        return made


def read_mjcf(path: Path, root: Any, *, within: Path | None = None, meshes: bool = True) -> Robot:
    """The robot of a file whose root element this is."""
    _include(root, path, path, [path.resolve()])
    robot = Robot(root.get("model", path.stem))
    file = _File(path, robot, within=path.parent if within is None else within)
    for compiler in root.iterfind("compiler"):
        _read_compiler(file, compiler)
    file.classes["main"] = {}
    for default in root.iterfind("default"):
        _read_defaults(file, default, {}, top=True)
    file.meshes = read_assets(file, root, _with_defaults, meshes=meshes)
    _name_the_rest(file, root)
    for world in root.iterfind("worldbody"):
        for body in world.iterfind("body"):
            _read_body(file, body, "world", "main")
        for geom in world.iterfind("geom"):
            stands = geom_of(file, geom, _with_defaults(file, geom, "main"), weigh=False)
            if stands.placed is not None and stands.touches:
                robot.surroundings[file.new(geom.get("name"), "geom")] = stands.placed
    if not robot.links:
        raise RobotError("there is no <body> in the <worldbody>", file=path)
    if file.total_mass > 0:
        _scale(robot, file.total_mass)
    file.meshes.tell()
    for section in root.iterfind("actuator"):
        for actuator in section:
            if isinstance(actuator.tag, str):
                _read_actuator(file, actuator)
    for e in root.iterfind("equality/joint"):
        _read_mimic(file, e)
    for pair in root.iterfind("contact/exclude"):
        robot.exclude(*((pair.get(k) or "").replace(".", "_") for k in ("body1", "body2")))
    return robot


# -- what stands around bodies
def _include(root: Any, path: Path, here: Path, stack: list[Path]) -> None:
    """Put what included files hold in the place of <include>."""
    for element in list(root.iter("include")):
        name = element.get("file")
        if not name:
            refuse(element, here, "an <include> has no file")
        file = path.parent / name
        if file.resolve() in stack:
            refuse(element, here, f"{name!r} includes itself")
        if not file.resolve().is_relative_to(path.parent.resolve()):
            refuse(element, here, f"the file {name!r} is outside of {path.parent.resolve()}")
        if not file.is_file():
            refuse(element, here, f"there is no file {name!r} to include")
        inner = parse(file)
        for part in inner.iter():
            if isinstance(part.tag, str):
                part.set("_file", str(file))
        _include(inner, path, file, [*stack, file.resolve()])
        parent = element.getparent()
        at = parent.index(element)
        parent.remove(element)
        for k, child in enumerate(list(inner)):
            parent.insert(at + k, child)


def _read_compiler(file: _File, e: Any) -> None:
    if e.get("coordinate", "local") != "local":
        refuse(e, file.path, 'coordinate="global" is no longer part of MJCF', "Convert the file with an older MuJoCo")
    file.degrees = e.get("angle", "degree" if file.degrees else "radian") == "degree"
    file.sequence = e.get("eulerseq", file.sequence)
    file.from_geoms = e.get("inertiafromgeom", file.from_geoms)
    file.limited = e.get("autolimits", "true" if file.limited else "false") == "true"
    for name, key in (("least_mass", "boundmass"), ("least_inertia", "boundinertia"), ("total_mass", "settotalmass")):
        if e.get(key) is not None:
            setattr(file, name, float(numbers(e, key, e.get(key), file.path, (1,))[0]))


def _read_defaults(file: _File, e: Any, above: dict[str, dict[str, str]], *, top: bool = False) -> None:
    name = e.get("class", "main" if top else None)
    if name is None:
        refuse(e, file.path, "a <default> inside of another has no class")
    mine = {tag: dict(attributes) for tag, attributes in {**above, **file.classes.get(name, {})}.items()}
    for child in e:
        if isinstance(child.tag, str) and child.tag != "default":
            known = {k: v for k, v in child.attrib.items() if k != "_file"}
            mine[child.tag] = {**mine.get(child.tag, {}), **known}
    file.classes[name] = mine
    for child in e.iterfind("default"):
        _read_defaults(file, child, mine)


def _with_defaults(file: _File, e: Any, childclass: str, tag: str | None = None) -> dict[str, str]:
    name = e.get("class", childclass)
    if name not in file.classes:
        refuse(e, file.path, f"there is no default class {name!r}")
    return {**file.classes[name].get(tag or e.tag, {}), **dict(e.attrib)}


def _name_the_rest(file: _File, root: Any) -> None:
    """Say what is not modelled, and refuse what closes loops."""
    for constraint in root.iterfind("equality/*"):
        if _acts(file, constraint) and constraint.tag != "joint":
            reason = f"<equality> {constraint.tag} {constraint.get('name', '')!r} closes a loop or couples joints"
            refuse(constraint, file.path, reason, 'Closed loops are not supported: remove it, or set active="false"')
    left = sorted({e.tag for e in root if isinstance(e.tag, str) and e.tag not in SILENT and e.tag != "equality"})
    for option in root.iterfind("option"):
        left += [f"option {k}" for k in ("density", "viscosity", "wind", "magnetic")
                 if any(float(word) for word in option.get(k, "0").split())]  # fmt: skip
    if left:
        warn(f"{file.path}: {', '.join(left)} not modelled", stacklevel=5)


def _acts(file: _File, constraint: Any) -> bool:
    if not isinstance(constraint.tag, str):
        return False
    return _with_defaults(file, constraint, "main", "equality").get("active", "true") == "true"


def _read_mimic(file: _File, e: Any) -> None:
    """<equality><joint>: one joint as a polynomial of another, from where both are drawn."""
    if not _acts(file, e):
        return
    names = [e.get(key) for key in ("joint1", "joint2")]
    for name in names:
        if name is not None and name not in file.joints:
            refuse(e, file.path, f"an <equality> names the joint {name!r}, and there is no such joint")
    c = numbers(e, "polycoef", e.get("polycoef", "0 1 0 0 0"), file.path, (1, 2, 3, 4, 5))
    c = np.pad(c, (0, 5 - len(c)))
    if None in names or c[2:].any():
        refuse(e, file.path, "an <equality> holds a joint still, or by a polynomial of higher degree than 1",
               "Only a joint that follows another in proportion is modelled")  # fmt: skip
    mine, leader = (file.joints[name] for name in names)
    try:
        rest = file.robot.joint(mine).ref - c[1] * file.robot.joint(leader).ref
        file.robot.add_mimic(mine, leader, ratio=float(c[1]), offset=float(c[0] + rest))
    except RobotError as error:
        refuse(e, file.path, error.reason, error.advice)


# -- bodies
def _read_body(file: _File, e: Any, parent: str, childclass: str) -> None:
    childclass = e.get("childclass", childclass)
    for odd in ("frame", "replicate", "composite", "flexcomp", "attach"):
        for found in e.iterfind(odd):
            refuse(found, file.path, f"<{odd}> is not read", "Save the model with MuJoCo, which writes plain bodies")
    name = file.new(e.get("name"), "body")
    pos = file.values(e, "pos", e.get("pos"), (3,), (0, 0, 0))
    rot = orientation(file, e, dict(e.attrib))
    weigh = file.from_geoms == "true" or (file.from_geoms == "auto" and e.find("inertial") is None)
    geoms = [geom_of(file, g, _with_defaults(file, g, childclass), weigh=weigh) for g in e.iterfind("geom")]
    mass, com, inertia = _inertia(file, e, geoms)
    try:
        file.robot.add_link(name, mass=mass, com=com, inertia=inertia)
    except RobotError as error:
        refuse(e, file.path, error.reason, error.advice)
    for geom in geoms:
        if geom.placed is not None and geom.touches:
            _add_shape(file.robot, name, geom.placed)
    if any(geom.seen is not None and not (geom.touches and geom.placed is geom.seen) for geom in geoms):
        for part in (geom.seen for geom in geoms if geom.seen is not None):
            file.robot.add_visual(name, part.shape, pos=part.pos, rot=part.rot)
    _read_joints(file, e, name, parent, pos, rot, childclass)
    for child in e.iterfind("body"):
        _read_body(file, child, name, childclass)


def _add_shape(robot: Robot, name: str, placed: Placed) -> None:
    robot.add_shape(name, placed.shape, pos=placed.pos, rot=placed.rot, bits=placed.bits)


def _inertia(file: _File, e: Any, geoms: list[Geom]) -> tuple[float, Floats, Floats]:
    given = e.find("inertial")
    if given is not None and file.from_geoms != "true":
        attributes = dict(given.attrib)
        com = file.values(given, "pos", given.get("pos"), (3,), (0, 0, 0))
        R = rotation_matrix(orientation(file, given, attributes))
        mass = float(file.values(given, "mass", given.get("mass"), (1,), [0.0])[0])
        if "fullinertia" in attributes:
            a, b, c, d, f, g = numbers(given, "fullinertia", attributes["fullinertia"], file.path, (6,))
            I = np.array([[a, d, f], [d, b, g], [f, g, c]])
        else:
            I = np.diag(file.values(given, "diaginertia", given.get("diaginertia"), (3,), (0, 0, 0)))
        inertia = R @ I @ R.T
        if np.linalg.eigvalsh(inertia)[0] < 0 or mass < 0:
            refuse(given, file.path, "the mass or the inertia is negative")
    elif file.from_geoms == "false":
        return 0.0, np.zeros(3), np.zeros((3, 3))
    else:
        mass, com, inertia = joined_masses([(g.mass, g.com, g.inertia) for g in geoms])
    if mass or file.least_mass:
        mass = max(mass, file.least_mass)
        values, vectors = np.linalg.eigh(inertia)
        inertia = vectors @ np.diag(np.maximum(values, file.least_inertia)) @ vectors.T
    return float(mass), com, inertia


def _read_joints(file: _File, e: Any, name: str, parent: str, pos: Floats, rot: Floats, childclass: str) -> None:
    joints = [j for j in e if isinstance(j.tag, str) and j.tag in ("joint", "freejoint")]
    still, unturned = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
    if not joints:
        file.robot.add_joint(file.new(f"{name}_fixed", "joint"), "fixed", parent=parent, child=name, pos=pos, rot=rot)
    for k, j in enumerate(joints):
        if j.tag == "freejoint" or _with_defaults(file, j, childclass).get("type") == "free":
            if parent != "world" or len(joints) > 1:
                refuse(j, file.path, "a free joint belongs to a body of the world, and stands alone")
            made = file.new(j.get("name"), "joint")
            file.robot.add_joint(made, "free", child=name)
            file.robot.initial[made] = np.concatenate([pos, rot])
            file.joints[j.get("name", made)] = made
            continue
        _read_joint(file, j, _with_defaults(file, j, childclass), name, parent,
                    *((pos, rot) if k == 0 else (still, unturned)))  # fmt: skip


def _read_joint(file: _File, e: Any, a: dict[str, str], child: str, parent: str, pos: Floats, rot: Floats) -> None:
    kind = a.get("type", "hinge")
    if kind not in KINDS:
        refuse(e, file.path, f"a joint has the type {kind!r}; known: {', '.join(KINDS)}")
    get = {key: float(file.values(e, key, a.get(key), (1,), [0.0])[0])
           for key in ("stiffness", "damping", "armature", "frictionloss", "ref", "springref")}  # fmt: skip
    turn = file.angle if kind == "hinge" else float
    anchor = file.values(e, "pos", a.get("pos"), (3,), (0, 0, 0))
    bounded = a.get("limited", "auto") == "true" or (a.get("limited", "auto") == "auto" and file.limited)
    limits = None
    if bounded and "range" in a and kind != "ball":
        low, high = numbers(e, "range", a["range"], file.path, (2,))
        limits = (turn(low), turn(high))
    left = [key for key in ("stiffness", "frictionloss") if kind == "ball" and get[key]]
    left += ["range"] if kind == "ball" and bounded and "range" in a else []
    if left:
        warn(f"{file.path}:{e.sourceline}: {', '.join(left)} of a ball joint not modelled", stacklevel=7)
    name = file.new(e.get("name"), "joint")
    try:
        file.robot.add_joint(
            name, KINDS[kind], parent=parent, child=child, pos=pos + rotation_matrix(rot) @ anchor, rot=rot,
            axis=file.values(e, "axis", a.get("axis"), (3,), (0, 0, 1)), limits=limits, damping=get["damping"],
            armature=get["armature"], friction=0.0 if kind == "ball" else get["frictionloss"],
            stiffness=0.0 if kind == "ball" else get["stiffness"], rest=turn(get["springref"]), anchor=anchor,
            ref=turn(get["ref"]),
        )  # fmt: skip
    except RobotError as error:
        refuse(e, file.path, error.reason, error.advice)
    if kind != "ball":
        file.robot.initial[name] = np.array([turn(get["ref"])])  # As drawn, even outside of its limits.
    file.joints[e.get("name", name)] = name


def _scale(robot: Robot, total: float) -> None:
    """settotalmass: all masses and inertias by one factor."""
    factor = total / sum(robot.link(name).mass for name in robot.links)
    for name in robot.links:
        robot.scale_mass(name, factor)


# -- actuators
def _read_actuator(file: _File, e: Any) -> None:
    a = _with_defaults(file, e, "main")
    if e.tag == "motor" or (e.tag == "general" and "biastype" not in a and "gainprm" not in a):
        a = {**file.classes["main"].get("general", {}), **a}
    joint = file.joints.get(a.get("joint", ""))
    if e.tag not in ("motor", "position", "velocity") or joint is None:
        if a.get("joint") and joint is None:
            refuse(e, file.path, f"an actuator names the joint {a['joint']!r}, and there is no such joint")
        warn(f"{file.path}:{e.sourceline}: the actuator <{e.tag}> is not modelled", stacklevel=5)
        return
    gear = float(file.values(e, "gear", a.get("gear"), (1, 2, 3, 4, 5, 6), [1.0])[0])
    limit = math.inf
    if "ctrlrange" in a and e.tag == "motor" and a.get("ctrllimited", "auto") != "false":
        limit = abs(gear) * float(np.abs(numbers(e, "ctrlrange", a["ctrlrange"], file.path, (2,))).max())
    if "forcerange" in a and a.get("forcelimited", "auto") != "false":
        limit = min(limit, abs(gear) * float(np.abs(numbers(e, "forcerange", a["forcerange"], file.path, (2,))).max()))
    gain = {key: float(file.values(e, key, a.get(key), (1,), [default])[0])
            for key, default in (("kp", 1.0), ("kv", 1.0 if e.tag == "velocity" else 0.0))}  # fmt: skip
    kp = gain["kp"] * gear**2 if e.tag == "position" else 0.0
    kd = 0.0 if e.tag == "motor" else gain["kv"] * gear**2
    try:
        file.robot.add_motor(joint, kp=kp, kd=kd, limit=limit)
    except RobotError as error:
        refuse(e, file.path, error.reason, error.advice)
