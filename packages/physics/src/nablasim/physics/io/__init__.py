"""Files in and out: surfaces and tetrahedra, filling a surface with tetrahedra, robots from URDF, moving meshes to USD.

A loader that meets a broken file says which file, which line or element, and what is wrong, and changes nothing.
Packages that only one format needs are imported when it is asked for.
"""

from nablasim.physics.io.meshes import load_surface, load_tets, save_surface, save_tets
from nablasim.physics.io.robots import load_robot
from nablasim.physics.io.tetrahedra import tetrahedralise
from nablasim.physics.io.urdf import Geometry, Joint, Link, Robot, load_urdf
from nablasim.physics.io.usd import Moving, save_usd

__all__ = [
    "Geometry",
    "Joint",
    "Link",
    "Moving",
    "Robot",
    "load_robot",
    "load_surface",
    "load_tets",
    "load_urdf",
    "save_surface",
    "save_tets",
    "save_usd",
    "tetrahedralise",
]
