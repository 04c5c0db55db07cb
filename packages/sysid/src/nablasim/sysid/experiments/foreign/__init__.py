"""Clips of engines that nobody here wrote: made, filmed, asked, and judged by what is true of them."""

from nablasim.sysid.experiments.foreign.chapter import FOREIGN, Foreign
from nablasim.sysid.experiments.foreign.shots import Shot, Told

__all__ = ["FOREIGN", "Foreign", "Shot", "Told"]
