"""How things are described: `Scene` and what can be added to it. The door of this room."""

from nablasim.physics.scene.builder import Scene
from nablasim.physics.scene.deformables import spring_grid

__all__ = [
    "Scene",
    "spring_grid",
]
