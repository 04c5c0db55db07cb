"""Random robots, the same for nablasim and for Pinocchio, and how their rates belong together."""

import numpy as np
import pinocchio as pin

from nablasim import physics as ph
from nablasim.physics.laws.articulated.nodes import across

KINDS = ("revolute", "prismatic", "spherical", "universal", "planar", "free", "fixed", "continuous")


def random_tree(rng, kinds=KINDS, links=8):
    """A tree of links, as a robot and as a model of Pinocchio, with the same order of coordinates."""
    robot, model = ph.Robot(), pin.Model()
    model.gravity.linear[:] = [0.0, -9.81, 0.0]
    at = {"world": (0, pin.SE3.Identity())}
    branch = ["world"]
    for i in range(links):
        # Branch by branch: Pinocchio takes the joints of a subtree to follow each other.
        branch = branch[: 1 + int(rng.integers(max(len(branch) - 3, 0), len(branch)))]
        parent = branch[-1]
        branch.append(f"l{i}")
        kind = kinds[int(rng.integers(len(kinds)))]
        B, axes = rng.normal(size=(3, 3)), rng.normal(size=(2, 3))
        body = pin.Inertia(rng.uniform(0.5, 2), rng.uniform(-0.2, 0.2, 3), 0.01 * (B @ B.T + 2 * np.eye(3)))
        pos, rot = rng.uniform(-0.5, 0.5, 3), rng.normal(size=4)
        robot.add_link(f"l{i}", mass=body.mass, com=body.lever, inertia=body.inertia)
        robot.add_joint(
            f"j{i}", kind, parent=parent, child=f"l{i}", pos=pos, rot=rot, axis=axes if kind == "universal" else axes[0]
        )
        joint, place = at[parent]
        place = place * pin.SE3(pin.Quaternion(rot / np.linalg.norm(rot)).matrix(), pos)
        for k, part in enumerate(parts(robot.joint(f"j{i}"))):
            joint = model.addJoint(joint, part, place, f"j{i}_{k}")
            place = pin.SE3.Identity()
        model.appendBodyToJoint(joint, body, place)
        model.addFrame(pin.Frame(f"l{i}", joint, 0, place, pin.FrameType.BODY))
        at[f"l{i}"] = (joint, place)
    return robot, model


def parts(joint):
    a = joint.axis
    if joint.kind == "universal":
        return [pin.JointModelRevoluteUnaligned(axis) for axis in a]
    if joint.kind == "planar":
        return [*(pin.JointModelPrismaticUnaligned(axis) for axis in across(a)), pin.JointModelRevoluteUnaligned(a)]
    if joint.kind == "prismatic":
        return [pin.JointModelPrismaticUnaligned(a)]
    made = {"spherical": pin.JointModelSpherical, "free": pin.JointModelFreeFlyer}
    if joint.kind in made:
        return [made[joint.kind]()]
    return [] if joint.kind == "fixed" else [pin.JointModelRevoluteUnaligned(a)]


def random_coords(rng, robot):
    """q of any kind, with unit quaternions."""
    found = []
    for name in robot.joints:
        kind, n = robot.joint(name).kind, robot.joint(name).coords
        one = rng.normal(size=n)
        if kind in ("spherical", "free"):
            one[-4:] /= np.linalg.norm(one[-4:])
        found.append(one)
    return np.concatenate([np.zeros(0), *found])


def rates(robot, q, v):
    """(T, T' v): rates of ours are T times those of Pinocchio, which are those of the body's own frame."""
    T, bent = np.eye(robot.dofs), np.zeros(robot.dofs)
    c = d = 0
    for name in robot.joints:
        joint = robot.joint(name)
        if joint.kind in ("spherical", "free"):
            R = pin.Quaternion(q[c : c + joint.coords][-4:]).matrix()
            if joint.kind == "free" and joint.parent == "world":
                R = pin.Quaternion(joint.rot).matrix() @ R
            for k in range(d, d + joint.dofs, 3):
                T[k : k + 3, k : k + 3] = R
            if joint.kind == "free":
                bent[d : d + 3] = R @ np.cross(v[d + 3 : d + 6], v[d : d + 3])
        c, d = c + joint.coords, d + joint.dofs
    return T, bent
