"""The demo end to end: the cube's physics is found from its pixels, and the report can be read in a browser."""

import re
import shutil

import pytest
from typer.testing import CliRunner

from nablasim import physics as ph
from nablasim.sysid import load_video
from nablasim.sysid.cli import app
from nablasim.sysid.demo import Bounce, run_demo

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "out"
    result = CliRunner().invoke(app, ["demo", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert "Found" in result.output and "cube.density" in result.output
    return folder


def test_the_command_writes_a_video_and_a_page_that_needs_nothing_else(out):
    assert sorted(p.name for p in out.iterdir()) == ["bounce.mp4", "film.mp4", "motion.npz", "report.html"]
    assert list(ph.load_motions(out / "motion.npz")) == ["found", "filmed", "first guess"]
    assert len(load_video(out / "bounce.mp4")) == 60
    film = load_video(out / "film.mp4")
    assert len(film) == 30 and film.size == (256, 320)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "floor.mu" in page and not re.search(r"<script|<link|https?://|src=\"(?!data:)", page)


def test_mass_elasticity_and_friction_are_found_and_certified():
    demo = run_demo(starts=4, seed=3)
    assert demo.found and max(demo.errors.values()) < 1e-3
    assert sum(e.certified for e in demo.fit) == 4


def test_what_cannot_be_found_is_said_and_fails(tmp_path, monkeypatch):
    # Three frames end before the cube touches the ground.
    monkeypatch.setattr("nablasim.sysid.demo.Bounce", lambda: Bounce(frames=3))
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--starts", "2"])
    assert result.exit_code == 1
    assert "Not found" in result.output and "cannot tell" in result.output


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_the_page(out, tmp_path, width):
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            tab = browser.new_page(viewport={"width": width, "height": 900})
            said = []
            tab.on("console", lambda message: said.append(message.text))
            tab.on("pageerror", lambda error: said.append(str(error)))
            tab.goto((out / "report.html").as_uri())
            images = tab.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 0)")
            assert len(images) == 13 and all(images)
            assert not said
            dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            tab.emulate_media(color_scheme="dark")
            assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != dark
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, "the page is wider than the screen"
            assert tab.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 14
            tab.screenshot(path=str(tmp_path / "page.png"), full_page=True)
        finally:
            browser.close()
