"""The viewer in a real browser: what is drawn, played, compared and run again, without a network and without errors."""

import io
import re
import shutil
import time

import numpy as np
import pytest
from PIL import Image

from nablasim import physics as ph
from nablasim.sysid.view import CannotView, sliders, view

pytest.importorskip("viser")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")
SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

SCENE = """\
camera: {eye: [0, 1.2, 5], target: [0, 0.5, 0], fov: 45 deg}
objects:
  block:
    shape: {box: [1 m, 1 m, 1 m]}
    mass: 2 kg
    position: [0, 1.2, 0]
floor: {stiffness: 1 kN/m, damping: 20 N s/m, friction: 0.5}
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    file = tmp_path_factory.mktemp("view") / "scene.yaml"
    file.write_text(SCENE, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=SOFTWARE)
        yield found
        found.close()


@pytest.fixture
def tab(browser):
    """A page that may talk to this machine alone, and must have nothing to complain about."""
    page = browser.new_page(viewport={"width": 800, "height": 440})
    page.said, page.asked = [], []
    page.on("console", lambda m: page.said.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    page.close()
    assert not page.said
    assert all(re.match(r"(blob:|data:|file:|http://127\.0\.0\.1:)", url) for url in page.asked), page.asked


def wait_for(found, seconds=60.0):
    """What a function gives as soon as it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.2)
    raise AssertionError("it did not happen")


def orange(tab):
    """The middle (row, column) of what has the colour of the first thing; None before it is there.

    Left of it a bar of that colour warns of slow graphics, and right of it are the controls.
    """
    pixels = np.asarray(Image.open(io.BytesIO(tab.screenshot(timeout=120_000))).convert("RGB")).astype(int)[:, 60:470]
    found = np.argwhere((pixels[..., 0] > 1.4 * pixels[..., 1]) & (pixels[..., 1] > 1.2 * pixels[..., 2]))
    return tuple(found.mean(0)) if len(found) > 300 else None


@pytest.mark.slow
@needs_browser
def test_a_scene_plays_and_runs_again(scene, tab):
    with view(scene, seconds=0.8, fps=10, port=18110) as viewer:
        viewer.pause()
        viewer.goto(0)
        tab.goto(viewer.url)
        high = wait_for(lambda: orange(tab))
        viewer.goto(8)
        low = wait_for(lambda: (seen := orange(tab)) and seen[0] > high[0] + 15 and seen)
        assert abs(low[1] - high[1]) < 25, "it falls straight down"
        text = tab.inner_text("body")
        assert "block.density" in text and "floor.ke" in text and "0.800 s" in text
        # A heavier block on the same springs sinks deeper.
        before = viewer._first.motion.things["block"].pos[-1, 1]
        box = tab.get_by_text("floor.ke").locator("xpath=following::input[@type != 'hidden'][1]")
        box.fill("200")
        box.press("Enter")
        wait_for(lambda: viewer._first.motion.things["block"].pos[-1, 1] < before - 0.01)
        wait_for(lambda: "ran in" in tab.inner_text("body"))
        tab.get_by_role("button", name="Play").click()
        frame = viewer.frame
        wait_for(lambda: viewer.frame != frame)


@pytest.mark.nightly
@needs_browser
def test_a_page_that_was_saved_plays_by_itself(scene, tab, tmp_path):
    with view(scene, seconds=0.4, fps=10, port=18120) as viewer:
        page = viewer.save(tmp_path / "motion.html")
    tab.set_viewport_size({"width": 480, "height": 320})
    tab.goto(page.as_uri())
    wait_for(lambda: orange(tab))


def test_values_that_cannot_be_run_are_said_and_change_nothing(scene):
    with view(scene, seconds=0.4, fps=10, port=18130) as viewer:
        motion = viewer._first.motion
        viewer._values["floor.ke"].value = 1e9
        viewer._changed.set()
        wait_for(lambda: "StepTooLarge" in viewer._said.content)
        assert viewer._first.motion is motion


def test_motions_are_compared_and_put_side_by_side(tmp_path):
    scene = ph.Scene().add_rigid("ball", ph.Sphere(0.2), mass=1.0, pos=(0, 1, 0))
    model = scene.build(real="float64")
    ran = ph.rollout(model, dt=1e-2, steps=20, every=10)
    with ph.show(ran.save(tmp_path / "found.npz"), beside={"target": ran}, pictures=np.zeros((3, 8, 8)),
                 port=18140) as viewer:  # fmt: skip
        assert list(viewer._drawings) == ["motion", "target"] and viewer.frames == 3
        assert f'src="{viewer.url}"' in viewer._repr_html_()
        viewer.apart(1.0)
        assert viewer._drawings["target"]._root.position[0] == pytest.approx(1.1 * 0.4, rel=0.05)
        viewer.pause()
        viewer.goto(1)
        height = float(ran["ball"].x[1, 1])
        assert viewer._drawings["target"]._handles["ball"].position[1] == pytest.approx(height, rel=1e-5)
    with ph.show(ph.rollout(model.batched(3), dt=1e-2, steps=2), port=18150) as viewer:
        assert list(viewer._drawings) == ["0", "1", "2"]


def test_what_cannot_be_shown_is_said(tmp_path, scene):
    (tmp_path / "report.html").write_text("", encoding="utf-8")
    with pytest.raises(CannotView, match=r"no motion\.npz in"):
        view(tmp_path)
    with pytest.raises(CannotView, match="there is no"):
        view(tmp_path / "missing.yaml")
    with pytest.raises(CannotView, match="beside a scene file"):
        view(tmp_path / "report.html", video="clip.mp4")
    with pytest.raises(ValueError, match="belong together"):
        ph.show({}, sliders={"a": (0, 1, 0.5)})


def test_sliders_have_what_can_be_moved(scene):
    from nablasim.sysid.scenes import Stage, read_scene

    found = sliders(Stage(read_scene(scene)).model)
    assert {"block.density", "floor.ke", "floor.mu"} <= found.keys() and "block.a" not in found
    assert all(s.low < s.value < s.high for s in found.values())
