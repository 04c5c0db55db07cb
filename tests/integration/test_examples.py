"""Every script of examples/ runs, in a small size, and writes what it says. A new one needs its line in SMALL."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "beams": ["--seconds", "0.1"],
    "cloth": ["--seconds", "0.1"],
    "crawler": ["--iterations", "1"],
    "cube": ["--seconds", "0.2"],
    "double_pendulum": ["--seconds", "0.2"],
    "dropped": ["--seconds", "0.2"],
    "find_pose": ["--rounds", "3"],
    "find_texture": ["--rounds", "2", "--views", "2"],
    "silhouettes_meet": ["--rounds", "3"],
    "slopes": ["--seconds", "0.2"],
    "smoke_pattern": ["--cells", "12", "--rounds", "3"],
    "soft_gear": ["--seconds", "0.1"],
    "sphere_to_shape": ["--rounds", "2", "--views", "2"],
}
HELPERS = {"scenery"}


@pytest.mark.parametrize(
    "path", [p for p in sorted(EXAMPLES.glob("*.py")) if p.stem not in HELPERS], ids=lambda p: p.stem
)
def test_the_example_runs_and_writes_its_film(path, tmp_path):
    command = [sys.executable, path, "--out", tmp_path, *SMALL[path.stem]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    films = [p for p in tmp_path.iterdir() if p.suffix in (".mp4", ".gif")]
    assert len(films) == 1 and films[0].stat().st_size > 1000
    assert films[0].name in done.stdout
