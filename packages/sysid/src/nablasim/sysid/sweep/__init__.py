"""Many problems at once, over cores or a cluster, saved as they are solved. The door of this room."""

from nablasim.sysid.sweep.content import digest
from nablasim.sysid.sweep.results import Mark
from nablasim.sysid.sweep.sweep import SweepFailed, sweep

__all__ = [
    "Mark",
    "SweepFailed",
    "digest",
    "sweep",
]
