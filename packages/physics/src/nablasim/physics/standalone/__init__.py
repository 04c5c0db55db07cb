"""Models beside the scene, with the same rollout: bounces, pendula and smoke. The door of this room."""

from nablasim.physics.standalone.bounces import Bounce
from nablasim.physics.standalone.pendula import DoublePendulum, Pendulum
from nablasim.physics.standalone.smoke import Smoke

__all__ = [
    "Bounce",
    "DoublePendulum",
    "Pendulum",
    "Smoke",
]
