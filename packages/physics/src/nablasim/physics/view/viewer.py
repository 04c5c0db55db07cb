"""The page: the scene, and beside it what plays, scrubs, compares and runs again."""

from __future__ import annotations

import io
import threading
import time
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nablasim.physics.time import Motion
from nablasim.physics.view.drawing import COLORS, Drawing, extent

if TYPE_CHECKING:
    import viser

FASTEST = 30.0
"""Pictures a second: faster ones are left out."""
SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")


@dataclass(frozen=True)
class Slider:
    """A number to move: from low to high, where it is at first, and its unit."""

    low: float
    high: float
    value: float
    unit: str = ""


class Viewer:
    """A page on this machine that shows motions; `url` is where. In a notebook it is shown below the cell.

    The first motion is run again where a slider moves: `run` gets all numbers by name, and gives a motion.
    """

    def __init__(self, motions: Mapping[str, Motion], *, title: str = "nablasim",
                 sliders: Mapping[str, Slider] | None = None,
                 run: Callable[[dict[str, float]], Motion] | None = None,
                 camera: tuple[Any, Any] | None = None, host: str = "127.0.0.1", port: int = 8080):  # fmt: skip
        """camera: where it is, and what it looks at."""
        import viser

        with _silence():
            self._server: viser.ViserServer = viser.ViserServer(host=host, port=port, label=title, verbose=False)
        self._lock = threading.RLock()
        self._drawings = self._draw(motions)
        self._run = run
        self._pictures = next((m.pictures for m in motions.values() if m.pictures is not None), None)
        self._changed, self._closed = threading.Event(), threading.Event()
        self._look_from(camera)
        self._planes()
        self._controls(sliders or {})
        self._threads = [threading.Thread(target=self._play, daemon=True)]
        if run is not None and sliders:
            self._threads.append(threading.Thread(target=self._run_again, daemon=True))
        for thread in self._threads:
            thread.start()

    @property
    def url(self) -> str:
        return f"http://{self._server.get_host()}:{self._server.get_port()}"

    @property
    def frames(self) -> int:
        """How many there are of the longest motion."""
        return max(len(d.motion) for d in self._drawings.values())

    # -- what is there
    def _draw(self, motions: Mapping[str, Motion]) -> dict[str, Drawing]:
        scene = self._server.scene
        scene.set_up_direction("+y")
        alone = len(motions) == 1
        return {
            name: Drawing(scene, name, motion, tint=None if alone else COLORS[(1 - k) % len(COLORS)],
                          opacity=None if k == 0 else 0.45)
            for k, (name, motion) in enumerate(motions.items())
        }  # fmt: skip

    @property
    def _first(self) -> Drawing:
        return next(iter(self._drawings.values()))

    def _look_from(self, camera: tuple[Any, Any] | None) -> None:
        middle, size = extent(self._first.motion)
        eye, target = camera or (middle + size * np.array([0.45, 0.35, 0.95]), middle)
        self._server.initial_camera.position = tuple(map(float, eye))
        self._server.initial_camera.look_at = tuple(map(float, target))
        self._server.initial_camera.fov = np.deg2rad(45.0)
        self._server.initial_camera.near, self._server.initial_camera.far = 1e-3 * size, 100 * size

    def _planes(self) -> None:
        """Planes of all motions, each once."""
        middle, size = extent(self._first.motion)
        cell = 0.5 * 10.0 ** np.floor(np.log10(size))
        planes = {tuple(p): name for d in self._drawings.values() for name, p in d.motion.planes.items()}
        for k, (plane, name) in enumerate(planes.items()):
            normal = np.array(plane[:3])
            at = middle - normal * (normal @ middle - plane[3])
            self._server.scene.add_grid(
                f"/planes/{k} {name}", 4 * size, 4 * size, plane="xz", position=at, wxyz=_upright(normal),
                cell_size=cell, section_size=10 * cell, plane_color=(238, 240, 243), plane_opacity=1.0,
                cell_color=(208, 212, 218), section_color=(178, 184, 192), shadow_opacity=0.35,
            )  # fmt: skip

    def _controls(self, sliders: Mapping[str, Slider]) -> None:
        gui = self._server.gui
        self._server.gui.configure_theme(control_width="medium", show_logo=False, show_share_button=False)
        self._frame = gui.add_slider("frame", 0, max(self.frames - 1, 1), 1, 0)
        self._button = gui.add_button("Pause")
        self._playing = True
        self._speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        self._clock = gui.add_markdown("")
        self._frame.on_update(lambda _: self._show())
        self._button.on_click(lambda _: self.pause() if self._playing else self.play())
        touching = gui.add_checkbox("contacts and their forces", True)
        touching.on_update(lambda event: self._set_forces(event.target.value))
        if len(self._drawings) > 1:
            with gui.add_folder("motions"):
                for name, drawing in self._drawings.items():
                    self._toggle(name, drawing)
                apart = gui.add_slider("side by side", 0.0, 1.0, 0.05, 0.0)
                apart.on_update(lambda event: self.apart(event.target.value))
        self._picture = None
        if self._pictures is not None:
            self._picture = gui.add_image(self._pictures[0], label="video", format="jpeg")
        self._values: dict[str, Any] = {}
        self._said: Any = None
        if sliders and self._run is not None:
            with gui.add_folder("run again with"):
                self._values = {name: _slider(gui, name, slider) for name, slider in sliders.items()}
                self._said = gui.add_markdown("")
            for handle in self._values.values():
                handle.on_update(lambda _: self._changed.set())
        self._show()

    def _toggle(self, name: str, drawing: Drawing) -> None:
        box = self._server.gui.add_checkbox(name, True)
        box.on_update(lambda event: setattr(drawing, "visible", event.target.value))

    def _set_forces(self, value: bool) -> None:
        for drawing in self._drawings.values():
            drawing.forces = value
        self._show()

    # -- what can be done
    @property
    def frame(self) -> int:
        return int(self._frame.value)

    def goto(self, frame: int) -> None:
        """Show a frame; others after it, if it plays."""
        self._frame.value = int(np.clip(frame, 0, self.frames - 1))
        self._show()

    def play(self) -> None:
        self._playing, self._button.label = True, "Pause"

    def pause(self) -> None:
        self._playing, self._button.label = False, "Play"

    def apart(self, how_far: float) -> None:
        """Put motions side by side: 0 is over each other, 1 with room between them."""
        width = max(_width(d.motion) for d in self._drawings.values())
        for k, drawing in enumerate(self._drawings.values()):
            drawing.move((1.1 * width * how_far * k, 0.0, 0.0))

    def save(self, path: str | Path) -> Path:
        """Write the motion as one page that plays without Python and without a network; without the controls."""
        path, times = Path(path), self._first.motion.times
        self.pause()
        with self._lock:
            self.goto(0)
            film = self._server.get_scene_serializer()
            for k in range(self.frames):
                self._show_frame(k)
                film.insert_sleep(float(times[k + 1] - times[k]) if k + 1 < len(times) else 0.5)
            path.write_text(film.as_html(), encoding="utf-8")
        return path

    def wait(self) -> None:
        """Until the page is closed by `close`, or Ctrl-C."""
        try:
            self._closed.wait()
        except KeyboardInterrupt:
            self.close()

    def open(self) -> None:
        """In the browser of this machine."""
        webbrowser.open(self.url)

    def close(self) -> None:
        self._closed.set()
        self._changed.set()
        for thread in self._threads:
            thread.join(timeout=10)
        with _silence():
            self._server.stop()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" width="100%" height="480" style="border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<Viewer of {', '.join(self._drawings)}: {self.url}>"

    # -- what goes on
    def _show(self) -> None:
        with self._lock:
            self._show_frame(self.frame)

    def _show_frame(self, frame: int) -> None:
        times = self._first.motion.times
        with self._server.atomic():
            for drawing in self._drawings.values():
                drawing.show(frame)
            self._clock.content = f"{times[min(frame, len(times) - 1)]:.3f} s"
            if self._picture is not None and self._pictures is not None:
                self._picture.image = self._pictures[min(frame, len(self._pictures) - 1)]

    def _play(self) -> None:
        """Turn pages while it plays; from the start again after the end."""
        shown = time.monotonic()
        while not self._closed.is_set():
            with self._lock:
                times, frame = self._first.motion.times, self.frame
                following = _after(times, frame, 1 / FASTEST * float(self._speed.value))
                pause = (times[following] - times[frame]) / float(self._speed.value) if following > frame else 0.6
            self._closed.wait(max(shown + pause - time.monotonic(), 0.005))
            shown = time.monotonic()
            if self._playing and self.frame == frame and not self._closed.is_set():
                self.goto(following)

    def _run_again(self) -> None:
        """The last values of the sliders, whenever they have changed."""
        assert self._run is not None
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._closed.is_set():
                return
            values = {name: float(handle.value) for name, handle in self._values.items()}
            self._said.content = "running …"
            began = time.monotonic()
            try:
                motion = self._run(values)
            except (ArithmeticError, ValueError) as error:  # These values do not work: the page stays as it was.
                self._said.content = f"**{type(error).__name__}**: {error}"
                continue
            self._exchange(motion)
            self._said.content = f"ran in {time.monotonic() - began:.2f} s"

    def _exchange(self, motion: Motion) -> None:
        """Another motion in the place of the first."""
        with self._lock, self._server.atomic():
            name, old = next(iter(self._drawings.items()))
            old.remove()
            made = Drawing(self._server.scene, name, motion, tint=old.tint)
            made.forces, made.visible = old.forces, old.visible
            self._drawings[name] = made
            self._frame.max = max(self.frames - 1, 1)
            self._show_frame(self.frame)


def _silence() -> redirect_stdout[io.StringIO]:
    """viser prints where it is; who shows something says so himself."""
    return redirect_stdout(io.StringIO())


def _after(times: NDArray[Any], frame: int, pause: float) -> int:
    """The first frame that is at least so much later; the first of all after the last one."""
    if frame >= len(times) - 1:
        return 0
    return min(max(int(np.searchsorted(times, times[frame] + 0.999 * pause)), frame + 1), len(times) - 1)


def _slider(gui: Any, name: str, slider: Slider) -> Any:
    label = f"{name} ({slider.unit})" if slider.unit not in ("", "1") else name
    return gui.add_slider(label, slider.low, slider.high, (slider.high - slider.low) / 200, slider.value)


def _width(motion: Motion) -> float:
    picked = np.unique(np.linspace(0, len(motion) - 1, 12).round().astype(int))
    x = np.concatenate([thing.corners(k)[:, 0] for thing in motion.things.values() for k in picked])
    return float(np.ptp(x))


def _upright(normal: Any) -> Any:
    """The rotation (w, x, y, z) that turns y to a direction."""
    axis, w = np.cross([0.0, 1.0, 0.0], normal), 1.0 + normal[1]
    if w < 1e-9:
        return np.array([0.0, 1.0, 0.0, 0.0])
    q = np.array([w, *axis])
    return q / np.linalg.norm(q)
