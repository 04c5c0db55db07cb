"""Motions in a browser: play, scrub, orbit, compare, and move parameters. The door of this room; needs viser."""

from nablasim.physics.view.show import show
from nablasim.physics.view.viewer import Slider, Viewer

__all__ = ["Slider", "Viewer", "show"]
