"""System identification: finds the parameters of a simulation from what was seen of it.

Today: gradient descent through a recorded rollout (`descend`), a loss on tracked points, and the command `nablasim`.
"""

from nablasim.sysid.fit import Fit, descend
from nablasim.sysid.losses import add_squared_distance

__all__ = ["Fit", "add_squared_distance", "descend"]
