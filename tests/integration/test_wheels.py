"""The wheels of the packages, built as for users, run in an environment that has no compiler. Takes two minutes: not in
`make test`, but in `make bare`, which .ci/run calls.
"""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.wheels
ROOT = Path(__file__).parents[2]
PACKAGES = ("kernelc", "physics", "render", "sysid")


def run(*command, **environment):
    done = subprocess.run(command, env=os.environ | environment, text=True, capture_output=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The built wheels. Only the level that every processor runs, unless KERNELC_AOT_LEVELS says otherwise."""
    folder = tmp_path_factory.mktemp("dist")
    levels = os.environ.get("KERNELC_AOT_LEVELS", "baseline")
    sources = [str(ROOT / "packages" / name) for name in PACKAGES]
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), *sources,
        SKBUILD_CMAKE_DEFINE=f"KERNELC_AOT_LEVELS={levels}")  # fmt: skip
    return sorted(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def bare(wheels, tmp_path_factory):
    """Python in an environment with the wheels, and what they need from the environment of the tests."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index",
        *map(str, wheels))  # fmt: skip
    (site,) = folder.glob("lib/python3*/site-packages")
    # Behind its own packages: NumPy, torch and the others. Links to editable installations are not followed from here.
    (site / "others.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
    return python


def test_a_wheel_brings_its_kernels_and_fits_every_python(wheels):
    by_name = {wheel.name.split("-")[0]: wheel for wheel in wheels}
    assert by_name["nablasim_sysid"].name.endswith("-py3-none-any.whl")
    for name in ("nablasim_physics", "nablasim_render"):
        assert "-py3-none-" in by_name[name].name and not by_name[name].name.endswith("any.whl")
        held = zipfile.ZipFile(by_name[name]).namelist()
        place = name.replace("_", "/") + "/_kernels/"
        assert {place + "index.json", place + "baseline.so"} <= set(held)


def test_scenes_of_every_kind_run_without_a_compiler(bare, tmp_path):
    script = str(ROOT / "tests" / "integration" / "bare.py")
    (tmp_path / "nothing").mkdir()
    hidden = {
        "PATH": str(tmp_path / "nothing"),
        "PYTHONPATH": "",
        "CXX": "",
        "KERNELC_CACHE_DIR": str(tmp_path / "none"),
    }
    found = json.loads(run(str(bare), script, **hidden))
    expected = json.loads(run(sys.executable, script))
    for path in found["where"].values():
        assert Path(path).is_relative_to(bare.parents[1])
    built = list((tmp_path / "none").glob("kernels/*"))
    assert not built
    # A kernel of one's own needs a compiler, and only that.
    for real in ("float32", "float64"):
        assert found["answers"].pop(f"of_mine {real}").startswith("NoCompiler: there is no C++ compiler")
        assert expected["answers"].pop(f"of_mine {real}") == [3.0, 6.0, 9.0]
    assert found["answers"] == expected["answers"]
