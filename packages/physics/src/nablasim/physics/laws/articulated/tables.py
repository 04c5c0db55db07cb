"""The tables of robots: their columns and indices, and how kernels take them.

`robots`, `nodes` (see `bundles.py`), `coords` and `dofs` in the order of the user's joints, and `couplings`, the
entries of mass matrices that are not zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kernelc as kc
from nablasim.physics.laws.articulated.bundles import ELEMENTS, Drives, Masses, Now, Rig, Tree
from nablasim.physics.model import Column, Index

if TYPE_CHECKING:
    from nablasim.physics.model import Array, Arrays

BASE_X, BASE_ROT = Column("robots.base_x", kc.float3), Column("robots.base_rot", kc.quat)
GRAVITY = Column("robots.gravity", kc.float3)
POS, AXIS, ANCHOR = (Column(f"nodes.{q}", kc.float3) for q in ("pos", "axis", "anchor"))
ROT = Column("nodes.rot", kc.quat)
MASS, COM = Column("nodes.mass"), Column("nodes.com", kc.float3)
UNIT, GIVEN_INERTIA = Column("nodes.unit", kc.mat33), Column("nodes.given_inertia", kc.mat33)
INERTIA = Column("nodes.inertia", kc.mat33, role="derived")
TOL = Column("robots.tol", role="derived")
Q, QD = Column("coords.q", role="state"), Column("dofs.qd", role="state")
REF = Column("coords.ref")
DAMPING, STIFFNESS, REST, FRICTION, ARMATURE, KP, KD, LIMIT, STOP_KE, STOP_KD, APPARENT = (
    Column(f"dofs.{q}") for q in ("damping", "stiffness", "rest", "friction", "armature", "kp", "kd", "limit",
                                  "stop_ke", "stop_kd", "apparent"))  # fmt: skip
TARGET, TORQUE, MORE_TORQUE = (Column(f"dofs.{q}", per_step=True) for q in ("target", "torque", "more_torque"))
LIMITS = Column("dofs.limits", kc.float2)
RATIO, OFFSET, TIE = Column("dofs.ratio"), Column("dofs.offset"), Column("dofs.tie", role="derived")

FIRST, COUNT = Index("robots.first", to="nodes"), Index("robots.count")
DOF_FIRST, DOF_COUNT = Index("robots.dof_first", to="dofs", begins=True), Index("robots.dof_count")
KIND, PARENT = Index("nodes.kind"), Index("nodes.parent", to="nodes")
COORD, DOF = Index("nodes.coord", to="coords", begins=True), Index("nodes.dof", to="dofs", begins=True)
DOF_COORD, ABOVE = Index("dofs.dof_coord", to="coords"), Index("dofs.above", to="dofs")
DEPTH, ROW = Index("dofs.depth"), Index("dofs.row", to="couplings")
ORDER, LEADS, REACH = Index("dofs.order", to="dofs"), Index("dofs.leads", to="dofs"), Index("couplings.reach")
TREE = (FIRST, COUNT, DOF_FIRST, DOF_COUNT, KIND, PARENT, COORD, DOF, DOF_COORD, ABOVE, DEPTH, ROW, ORDER, LEADS, REACH)
DRIVES = (DAMPING, STIFFNESS, REST, FRICTION, KP, KD, LIMIT, TARGET, TORQUE, MORE_TORQUE, LIMITS, STOP_KE, STOP_KD,
           RATIO, OFFSET, TIE, APPARENT)  # fmt: skip


def tree(a: Arrays) -> Any:
    return a.bundle(Tree, *TREE)


def rig(a: Arrays) -> Any:
    return a.bundle(Rig, BASE_X, BASE_ROT, POS, ROT, AXIS, ANCHOR, REF)


def masses(a: Arrays) -> Any:
    return a.bundle(Masses, GRAVITY, MASS, COM, INERTIA, ARMATURE)


def drives(a: Arrays) -> Any:
    return a.bundle(Drives, *DRIVES)


def memory(a: Arrays, kind: Any) -> Any:
    """A bundle that is memory of one pass."""
    return kind(**{name: a.scratch(f"robots.{name}", a.rows(table), element)
                   for name, (table, element) in ELEMENTS[kind].items()})  # fmt: skip


def now(q: Array, qd: Array, push: Array | None = None) -> Any:
    """Coordinates and rates as kernels take them, and what contact does in joints, if there is any."""
    kind: Any = Now
    return kind(q=q, qd=qd, push=push)
