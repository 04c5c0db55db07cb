"""The kernels that the wheel brings as machine code: all of them. Read when the wheel is built (CMakeLists.txt)."""

from itertools import combinations
from typing import Any

from kernelc import aot
from nablasim.physics.geometry import mass_kernels as mass
from nablasim.physics.geometry import shapes_kernels as shapes
from nablasim.physics.laws import smoke_kernels as smoke
from nablasim.physics.laws.articulated import abreast_back_kernels as abreast_back
from nablasim.physics.laws.articulated import abreast_kernels as abreast
from nablasim.physics.laws.articulated import link_bodies_kernels as link_bodies
from nablasim.physics.laws.articulated import link_planes_kernels as link_planes
from nablasim.physics.laws.articulated import robots_kernels as robots
from nablasim.physics.laws.articulated import ties_kernels as ties
from nablasim.physics.laws.contact import body_contacts_kernels as body_contacts
from nablasim.physics.laws.contact import body_friction_kernels as body_friction
from nablasim.physics.laws.contact import body_planes_kernels as body_planes
from nablasim.physics.laws.contact import crossing_kernels as crossing
from nablasim.physics.laws.contact import edge_contact_kernels as edge_contact
from nablasim.physics.laws.contact import face_hits_kernels as face_hits
from nablasim.physics.laws.contact import hard_kernels as hard
from nablasim.physics.laws.contact import near_points_kernels as near_points
from nablasim.physics.laws.contact import neighbours_kernels as neighbours
from nablasim.physics.laws.contact import pairing_kernels as pairing
from nablasim.physics.laws.contact import passing_kernels as passing
from nablasim.physics.laws.contact import planes_kernels as planes
from nablasim.physics.laws.contact import point_contact_kernels as point_contact
from nablasim.physics.laws.contact import reports_kernels as reports
from nablasim.physics.laws.contact import rubbing_kernels as rubbing
from nablasim.physics.laws.contact import rubbing_pairs_kernels as rubbing_pairs
from nablasim.physics.laws.contact import self_contact_kernels as self_contact
from nablasim.physics.laws.contact import settling_kernels as settling
from nablasim.physics.laws.contact import touching_kernels as touching
from nablasim.physics.laws.deformable import air_kernels as air
from nablasim.physics.laws.deformable import bending_kernels as bending
from nablasim.physics.laws.deformable import loads_kernels as loads
from nablasim.physics.laws.deformable import membrane_kernels as membrane
from nablasim.physics.laws.deformable import particles_kernels as particles
from nablasim.physics.laws.deformable import springs_kernels as springs
from nablasim.physics.laws.deformable import tets_kernels as tets
from nablasim.physics.laws.rigid import bodies_kernels as bodies
from nablasim.physics.laws.rigid import body_loads_kernels as body_loads
from nablasim.physics.laws.rigid import implicit_bodies_kernels as implicit_bodies
from nablasim.physics.laws.rigid import magnets_kernels as magnets
from nablasim.physics.laws.rigid import surfaces_kernels as surfaces
from nablasim.physics.model import frames_kernels as frames
from nablasim.physics.standalone import bounces_kernels as bounces
from nablasim.physics.standalone import pendula_kernels as pendula
from nablasim.physics.time import study_kernels


def variants(*what: Any, may_lack: tuple[str, ...], lack: tuple[str, ...] = (), **options: Any) -> list[aot.Ahead]:
    """Kernels with and without each optional member that scenes may leave out, and without those that none gives."""
    left_out = [some for n in range(len(may_lack) + 1) for some in combinations(may_lack, n)]
    return [one for some in left_out for one in aot.kernels(*what, absent=(*some, *lack), **options)]


DEFORMABLE = [
    *variants(particles.integrate_particles, may_lack=("contact_f",), boxed=("dt",)),
    *variants(springs.spring_forces, springs.spring_energies, may_lack=("springs.actuation",)),
    *variants(springs.spring_stiffness, may_lack=("springs.actuation",), adjoint=False),
    *variants(tets.convert_moduli, may_lack=("moduli.young",)),
    *variants(tets.tet_forces, may_lack=("tets.activation", "tets.damping")),
    *variants(tets.tet_energies, may_lack=("tets.activation",), lack=("tets.damping",)),
    *variants(tets.tet_stiffness, may_lack=("tets.damping",), lack=("tets.activation",), adjoint=False),
    *variants(membrane.membrane_forces, may_lack=("triangles.damping",)),
    *variants(membrane.membrane_stiffness, may_lack=("triangles.damping",), adjoint=False),
    *variants(bending.hinge_forces, may_lack=("hinges.damping",)),
    *variants(bending.hinge_stiffness, may_lack=("hinges.damping",), adjoint=False),
    *aot.kernels(membrane.membrane_energies, bending.hinge_energies, absent=("triangles.damping", "hinges.damping")),
    *aot.kernels(
        bending.rest_angles, membrane.cloth_areas, membrane.cloth_masses, membrane.rest_triangles,
        particles.copy_masses, particles.invert_masses, particles.kinetic_energies, particles.step_rates,
        tets.rest_tets, tets.tet_masses,
    ),
]  # fmt: skip

AHEAD = [
    *DEFORMABLE,
    # Recorded rollouts are run again with another step: it is an array.
    *aot.kernels(
        air, bodies, body_friction, body_loads, body_planes, edge_contact, face_hits, hard, implicit_bodies,
        loads, magnets, mass, pairing, planes, point_contact, self_contact, shapes, smoke,
        boxed=("dt",),
    ),
    # Bodies that touch no plane have no friction there.
    *aot.kernels(bodies.advance_bodies, implicit_bodies.lacking_momenta, boxed=("dt",), absent=("rub",)),
    *(one for family in body_contacts.FAMILIES.values() for one in aot.kernels(*vars(family).values(), boxed=("dt",))),
    *aot.kernels(link_bodies, link_planes, robots, ties, boxed=("dt",), absent=("now.push",)),
    *aot.kernels(link_bodies.wrenches, absent=("rub",)),
    # Robots side by side, with planes and bodies to touch and without; their way back is a kernel of its own.
    *(one for some in ((), ("c",), ("now.push",), ("c", "now.push"))
      for one in aot.kernels(abreast, adjoint=False, boxed=("dt",), absent=some)),
    *(one for some in ((), ("c", "out.planes"), ("now.push", "out.push"), ("c", "out.planes", "now.push", "out.push"))
      for one in aot.kernels(abreast_back, adjoint=False, boxed=("dt",), absent=some)),
    # Robots that touch no plane, and those that touch bodies or themselves.
    *(one for some in (("c", "touch", "now.push"), ("c", "touch"), ("now.push",), ())
      for one in aot.kernels(robots.predict, robots.correct, boxed=("dt",), absent=some)),
    *aot.kernels(*frames.COPIES_FIRST.values(), frames.corners, frames.corners_of_copies),
    *aot.kernels(study_kernels),
    *aot.kernels(rubbing.motion_ahead, rubbing.rub_planes, rubbing.resist, rubbing.force_of, rubbing.hard_presses,
                 boxed=("dt",)),
    *(one for family in rubbing_pairs.FAMILIES.values() for one in aot.kernels(family.rub_pairs, boxed=("dt",))),
    # What is solved for has no gradient of its own.
    *aot.kernels(settling, adjoint=False, boxed=("dt",)),
    *aot.kernels(rubbing.list_planes, adjoint=False, boxed=("dt",)),
    *(one for family in rubbing_pairs.FAMILIES.values()
      for one in aot.kernels(family.list_pairs, adjoint=False, boxed=("dt",))),
    # Nothing flows back from an alarm, but on a tape it is recorded like other reals.
    *aot.kernels(*passing.FAMILIES.values(), boxed=("dt",)),
    # What decides who meets whom, and how stiff a system is, has no gradient.
    *aot.kernels(
        crossing, near_points, surfaces, touching, air.air_damping, planes.plane_stiffness,
        self_contact.self_contact_stiffness, adjoint=False,
    ),
    *aot.kernels(neighbours, reports, adjoint=False, boxed=("dt",)),
    *(one for family in reports.FAMILIES.values() for one in aot.kernels(*vars(family).values(), adjoint=False)),
    # A thread is a whole rollout, and a launch has few: minutes of compiling would buy nothing.
    *aot.kernels(bounces, lanes=False),
    *aot.kernels(pendula, lanes=False),
]  # fmt: skip
