"""Tosses of a cube: starts are found from frames, contact from tosses, and what is missing is said."""

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from nablasim.sysid.cli import app
from nablasim.sysid.experiments.cubes import MuJoCo, Ours, fitted, loss, restitution
from nablasim.sysid.experiments.toss_data import Flown, Started, Toss, flown, misses, read_tosses
from nablasim.sysid.experiments.tosses import friction_interval

TRUTH = {"friction": 0.2, "rate": 200.0, "ratio": 0.6, "stick": 50.0, "inertia": 1.2}
HALF, FPS, SHORT = 0.05, 148.0, 0.98


def thrown(count, frames=70, seed=0):
    """Starts by chance, above the floor."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(count):
        x = np.tile((*rng.uniform(-0.1, 0.1, 2), rng.uniform(0.16, 0.2)), (frames, 1))
        turned = np.tile(Rotation.random(random_state=int(rng.integers(1 << 30))).as_quat(), (frames, 1))
        made.append(Started(Toss(x, turned), np.array((*rng.uniform(-1, 1, 2), 0.2)), rng.uniform(-3, 3, 3)))
    return Flown(tuple(made), FPS, HALF, 1.0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Synthetic tosses of the form of the real ones: lengths two per cent short, the cube's size as it is."""
    of = thrown(6)
    x, q = Ours().predict(TRUTH, of.tosses, of)
    file = tmp_path_factory.mktemp("tosses") / "tosses.npz"
    x, q = x.reshape(-1, 3) * SHORT, q.reshape(-1, 4)[:, [3, 0, 1, 2]]
    np.savez(file, length=[70] * 6, position=x, quaternion_wxyz=q, fps=FPS, half_width=HALF)
    return file, of


def test_scale_floor_and_starts_come_from_the_flight(recorded):
    file, truth = recorded
    found = flown(read_tosses(file))
    assert found.scale == pytest.approx(SHORT, rel=2e-3)
    assert len(found.tosses) == 6
    for start, true in zip(found.tosses, truth.tosses):
        np.testing.assert_allclose(start.spin, true.spin, atol=0.02)
        np.testing.assert_allclose(start.velocity[:2], true.velocity[:2], atol=0.01)


def test_the_folder_of_tensors_is_the_same_as_the_file(recorded, tmp_path):
    one = read_tosses(recorded[0])
    for k, toss in enumerate(one.tosses):
        row = np.zeros((1, len(toss.position), 19))
        row[0, :, :3], row[0, :, 3:7] = toss.position / 0.0524, toss.turned[:, [3, 0, 1, 2]]
        torch.save(torch.from_numpy(row), tmp_path / f"{k}.pt")
    for a, b in zip(one.tosses, read_tosses(tmp_path).tosses):
        np.testing.assert_allclose(a.position, b.position, atol=1e-12)
        np.testing.assert_allclose(a.turned, b.turned, atol=1e-12)


def test_friction_is_found_again(recorded):
    found = flown(read_tosses(recorded[0]))
    values = fitted(Ours(), found.tosses, found, samples=8, steps=50)
    assert values["friction"] == pytest.approx(0.2, rel=0.15)
    assert loss(Ours(), values, found.tosses, found) < 0.2 * loss(Ours(), Ours().defaults, found.tosses, found)


@pytest.mark.parametrize("zeta", [0.1, 0.4])
def test_restitution_is_that_of_a_damped_spring_that_does_not_pull(zeta):
    """The closed form of a mass that leaves when the force is none; gravity is small beside it."""
    found = restitution(Ours(substeps=48), {**TRUTH, "rate": 100.0, "ratio": zeta / 2}, thrown(1), speed=2.0)
    root = np.sqrt(1 - zeta**2)  # of four corners: four springs and four dampers
    assert found == pytest.approx(np.exp(-2 * zeta / root * np.arctan(root / zeta)), rel=0.04)


def test_both_engines_fly_alike():
    """Before any touch the contact does not count: the same parabola and the same turn, by MuJoCo and here."""
    pytest.importorskip("mujoco")
    of = thrown(3, frames=12)
    (x, q), (y, r) = (e.predict(e.defaults, of.tosses, of) for e in (Ours(), MuJoCo()))
    np.testing.assert_allclose(x, y, atol=1e-3)  # a step of MuJoCo's is half as long again: its fall is that of Euler
    np.testing.assert_allclose(np.abs((q * r).sum(-1)), 1.0, atol=1e-6)


def test_mujoco_is_fitted_to_tosses_of_its_own():
    """The witness knows what it made: fitted by its own least squares it finds its friction again."""
    pytest.importorskip("mujoco")
    of, truth = thrown(4), {"friction": 0.25, "rate": 200.0, "ratio": 0.7, "inertia": 1.2}
    x, q = MuJoCo().predict(truth, of.tosses, of)
    seen = [Started(Toss(a, b), s.velocity, s.spin) for a, b, s in zip(x, q, of.tosses)]
    values = fitted(MuJoCo(own_tool=True), seen, of, samples=16, steps=60)
    assert values["friction"] == pytest.approx(0.25, rel=0.1)


def test_errors_are_in_widths_and_degrees():
    of = thrown(1, frames=2)
    turned = (Rotation.from_euler("x", 90, degrees=True) * Rotation.from_quat(of.tosses[0].toss.turned)).as_quat()
    (row,) = misses(of.tosses, of.tosses[0].toss.position[None] + (0.05, 0, 0), turned[None], HALF)
    np.testing.assert_allclose(row, (50.0, 90.0, 50.0, 90.0))


def test_one_piece_gives_no_interval():
    assert friction_interval([0.2]) == (0.2, float("-inf"), float("inf"))
    mean, low, high = friction_interval([0.19, 0.21])
    assert low < 0.19 < mean < 0.21 < high


def test_the_command_needs_the_recordings_and_makes_the_table(recorded, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path), "--backend", "serial"])

    missing = run("tosses", "--size", "ci")
    assert missing.exit_code == 2 and "--data" in missing.output
    gone = run("tosses", "--data", str(tmp_path / "none.npz"))
    assert gone.exit_code == 2 and "there is no" in " ".join(gone.output.split())
    refused = run("table1", "--data", str(recorded[0]))
    assert refused.exit_code == 2 and "takes no --data" in refused.output
    made = run("tosses", "--size", "ci", "--data", str(recorded[0]))
    assert made.exit_code in (0, 1), made.output
    text = (tmp_path / "ci" / "tosses.txt").read_text(encoding="utf-8")
    assert "Predictions of 3 unseen tosses" in text and "defaults" in text and "MuJoCo" in text
