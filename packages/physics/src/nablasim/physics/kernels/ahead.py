"""The kernels that the wheel brings as machine code: all of them. Read when the wheel is built (CMakeLists.txt)."""

from kernelc import aot
from nablasim.physics.kernels import (
    air,
    bending,
    bodies,
    body_contacts,
    body_friction,
    body_loads,
    body_planes,
    crossing,
    edge_contact,
    face_hits,
    frames,
    hard,
    implicit_bodies,
    loads,
    mass,
    membrane,
    near_points,
    pairing,
    particles,
    passing,
    pendula,
    planes,
    point_contact,
    self_contact,
    shapes,
    smoke,
    springs,
    surfaces,
    tets,
    touching,
)

AHEAD = [
    # Recorded rollouts are run again with another step: it is an array.
    *aot.kernels(
        air, bending, bodies, body_friction, body_loads, body_planes, edge_contact, face_hits, hard, implicit_bodies,
        loads, mass, membrane, pairing, particles, planes, point_contact, self_contact, shapes, smoke, springs, tets,
        boxed=("dt",),
    ),
    *(one for family in body_contacts.FAMILIES.values() for one in aot.kernels(*vars(family).values(), boxed=("dt",))),
    *aot.kernels(*frames.COPIES_FIRST.values(), frames.corners, frames.corners_of_copies),
    *aot.kernels(*passing.FAMILIES.values(), boxed=("dt",), adjoint=False),
    # What decides who meets whom, and how stiff a system is, has no gradient.
    *aot.kernels(
        crossing, near_points, surfaces, touching, air.air_damping, bending.hinge_stiffness,
        membrane.membrane_stiffness, planes.plane_stiffness, self_contact.self_contact_stiffness,
        springs.spring_stiffness, tets.tet_stiffness, adjoint=False,
    ),
    # A thread is a whole rollout, and a launch has few: minutes of compiling would buy nothing.
    *aot.kernels(pendula, lanes=False),
]  # fmt: skip
