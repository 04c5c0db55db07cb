"""How the answer is looked for: least squares on growing windows, or descent by gradients. The door of this room."""

from nablasim.sysid.search.gradients import descend
from nablasim.sysid.search.windows import Start, follow

__all__ = [
    "Start",
    "descend",
    "follow",
]
