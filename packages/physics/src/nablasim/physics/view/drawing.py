"""One motion in the scene of viser: made once, and then moved from frame to frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nablasim.physics.time import Motion

if TYPE_CHECKING:
    import viser

COLORS = ((230, 120, 60), (70, 130, 210), (95, 170, 90), (170, 110, 190), (205, 165, 60), (80, 170, 175))
"""Of things, in turn."""
FORCE, TOUCH = (210, 40, 50), (250, 210, 40)
THIN = 0.012
"""Of points and arrows, by the size of the scene."""
HIGH = 0.35
"""Length of the largest arrow, by the size of the scene."""


class Drawing:
    """A motion under a name. `tint` is the colour of all its things; `opacity` lets others be seen through it."""

    def __init__(self, scene: viser.SceneApi, name: str, motion: Motion, *, tint: tuple[int, int, int] | None = None,
                 opacity: float | None = None):  # fmt: skip
        self._scene, self._root = scene, scene.add_frame(f"/{name}", show_axes=False)
        self._handles: dict[str, Any] = {}
        self.motion, self.tint = motion, tint
        size = extent(motion)[1]
        for k, (thing, what) in enumerate(motion.things.items()):
            place, color = f"/{name}/{thing}", tint or COLORS[k % len(COLORS)]
            x = what.x if what.pos is not None else what.x[0]
            if what.faces is not None:
                self._handles[thing] = scene.add_mesh_simple(place, x, what.faces, color=color, opacity=opacity,
                                                             flat_shading=True, side="double")  # fmt: skip
            else:
                self._handles[thing] = scene.add_point_cloud(place, x, color, point_size=THIN * size,
                                                             point_shape="circle")  # fmt: skip
            if what.edges is not None:
                lines = x[what.edges]
                self._handles[f"{thing}/lines"] = scene.add_line_segments(f"{place}/lines", lines, color)
        most = max((float(np.linalg.norm(c.forces, axis=1).max(initial=0.0)) for c in motion.contacts), default=0.0)
        self._length = HIGH * size / most if most else 0.0
        thin = THIN * size
        none = np.zeros((1, 2, 3), np.float32)
        self._arrows = scene.add_arrows(f"/{name}/forces", none, FORCE, shaft_radius=0.35 * thin, head_radius=thin,
                                        head_length=2 * thin, visible=False)  # fmt: skip
        self._dots = scene.add_point_cloud(f"/{name}/contacts", none[:, 0], TOUCH, point_size=1.5 * thin,
                                           point_shape="circle", visible=False)  # fmt: skip
        self.forces = True
        self.show(0)

    @property
    def visible(self) -> bool:
        return bool(self._root.visible)

    @visible.setter
    def visible(self, value: bool) -> None:
        self._root.visible = value

    def move(self, away: tuple[float, float, float]) -> None:
        """Put all of it beside where it was."""
        self._root.position = away

    def show(self, frame: int) -> None:
        """Go to a frame, or to the last one."""
        frame = min(frame, len(self.motion) - 1)
        for name, thing in self.motion.things.items():
            handle = self._handles[name]
            if thing.pos is not None and thing.rot is not None:
                handle.position, handle.wxyz = thing.pos[frame], thing.rot[frame][[3, 0, 1, 2]]
            elif thing.faces is not None:
                handle.vertices = thing.x[frame]
            else:
                handle.points = thing.x[frame]
            if thing.edges is not None:
                self._handles[f"{name}/lines"].points = thing.x[frame][thing.edges]
        self._touch(frame)

    def _touch(self, frame: int) -> None:
        touched = self.motion.contacts[frame] if self.motion.contacts else ()
        seen = self.forces and len(touched) > 0
        if seen:
            at, force = touched.points, self._length * touched.forces  # type: ignore[union-attr]
            self._arrows.points = np.stack([at, at + force], 1).astype(np.float32)
            self._dots.points = at.astype(np.float32)
        self._arrows.visible = self._dots.visible = seen

    def remove(self) -> None:
        self._root.remove()


def extent(motion: Motion) -> tuple[Any, float]:
    """The middle of all that is seen in a motion, and how large it is (m)."""
    picked = np.unique(np.linspace(0, len(motion) - 1, 12).round().astype(int))
    ends = [(x.min(0), x.max(0)) for thing in motion.things.values() for x in map(thing.corners, picked)]
    low, high = np.min([low for low, _ in ends], 0), np.max([high for _, high in ends], 0)
    return (low + high) / 2, max(float(np.linalg.norm(high - low)), 1e-6)
