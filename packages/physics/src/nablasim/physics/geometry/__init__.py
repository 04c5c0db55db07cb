"""What things are: meshes, shapes, solids, signed distances, materials and mass. The door of this room."""

from nablasim.physics.geometry.distance import Heightfield, SignedDistance
from nablasim.physics.geometry.features import EDGE, Supports, crowd, crowd_across, held, rates, supports
from nablasim.physics.geometry.mass import (
    Bodies,
    MassProperties,
    mass_properties,
    solid_mass_properties,
    vertex_masses,
)
from nablasim.physics.geometry.mass_kernels import face_moments
from nablasim.physics.geometry.materials import NeoHookean
from nablasim.physics.geometry.mesh import TetMesh, TriMesh
from nablasim.physics.geometry.mesh_checks import join_vertices
from nablasim.physics.geometry.robot_parts import WORLD, Joint, Link, Motor, Placed, joined_masses
from nablasim.physics.geometry.robots import Robot
from nablasim.physics.geometry.rotation import quat, rotation_matrix, turned
from nablasim.physics.geometry.shapes import Box, Capsule, Cone, Cylinder, Shape, Sphere
from nablasim.physics.geometry.shapes_kernels import (
    BOX,
    CAPSULE,
    CONE,
    CYLINDER,
    FIELD,
    GRID,
    MESH,
    SPHERE,
    shape_contact,
    shape_distance,
    shape_moments,
)
from nablasim.physics.geometry.solids import GROUP, Geometry, Solid, solid

__all__ = [
    "BOX",
    "CAPSULE",
    "CONE",
    "CYLINDER",
    "EDGE",
    "FIELD",
    "GRID",
    "GROUP",
    "MESH",
    "SPHERE",
    "WORLD",
    "Bodies",
    "Box",
    "Capsule",
    "Cone",
    "Cylinder",
    "Geometry",
    "Heightfield",
    "Joint",
    "Link",
    "MassProperties",
    "Motor",
    "NeoHookean",
    "Placed",
    "Robot",
    "Shape",
    "SignedDistance",
    "Solid",
    "Sphere",
    "Supports",
    "TetMesh",
    "TriMesh",
    "crowd",
    "crowd_across",
    "face_moments",
    "held",
    "join_vertices",
    "joined_masses",
    "mass_properties",
    "quat",
    "rates",
    "rotation_matrix",
    "shape_contact",
    "shape_distance",
    "shape_moments",
    "solid",
    "solid_mass_properties",
    "supports",
    "turned",
    "vertex_masses",
]
