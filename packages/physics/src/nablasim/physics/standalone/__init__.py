"""Models beside the scene, with the same rollout: pendula and smoke. The door of this room."""

from nablasim.physics.standalone.pendula import DoublePendulum, Pendulum
from nablasim.physics.standalone.smoke import Smoke

__all__ = [
    "DoublePendulum",
    "Pendulum",
    "Smoke",
]
