"""The wheels of the packages, built as for users, run in an environment that has no compiler. Takes two minutes: not in
`make test`, but in `make bare` and in `make nightly`.
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
LEVELS = os.environ.get("KERNELC_AOT_LEVELS", "baseline")
"""For which the wheels have code: by default only that which every processor runs."""


def run(*command, **environment):
    done = subprocess.run(command, env=os.environ | environment, text=True, capture_output=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def build(folder, *sources, **environment):
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), *map(str, sources),
        SKBUILD_CMAKE_DEFINE=f"KERNELC_AOT_LEVELS={LEVELS}", **environment)  # fmt: skip
    return sorted(folder.glob("*.whl"))


def install(python, wheels):
    run(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index",
        *map(str, wheels))  # fmt: skip


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheels of all packages."""
    return build(tmp_path_factory.mktemp("dist"), *(ROOT / "packages" / name for name in PACKAGES))


@pytest.fixture(scope="module")
def bare(wheels, tmp_path_factory):
    """Python in an environment with the wheels, and what they need from the environment of the tests."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install(python, wheels)
    (site,) = folder.glob("lib/python3*/site-packages")
    # Behind its own packages: NumPy, torch and the others. Links to editable installations are not followed from here.
    (site / "others.pth").write_text(f"{Path(np.__file__).parents[1]}\n")
    return python


@pytest.fixture
def hidden(tmp_path):
    """An environment in which no compiler is found, and no kernel that was compiled before."""
    (tmp_path / "nothing").mkdir()
    none = {"PATH": str(tmp_path / "nothing"), "PYTHONPATH": "", "CXX": ""}
    return none | {"KERNELC_CACHE_DIR": str(tmp_path / "none")}


def test_a_wheel_brings_its_kernels_and_fits_every_python(wheels):
    by_name = {wheel.name.split("-")[0]: wheel for wheel in wheels}
    assert by_name["nablasim_sysid"].name.endswith("-py3-none-any.whl")
    for name in ("nablasim_physics", "nablasim_render"):
        assert "-py3-none-" in by_name[name].name and not by_name[name].name.endswith("any.whl")
        held = zipfile.ZipFile(by_name[name]).namelist()
        place = name.replace("_", "/") + "/_kernels/"
        assert {place + "index.json", place + "baseline.so"} <= set(held)


def test_scenes_of_every_kind_run_without_a_compiler(bare, hidden, tmp_path):
    script = str(ROOT / "tests" / "integration" / "bare.py")
    said = json.loads(run(str(bare), script, str(tmp_path / "found.npz"), **hidden))
    # Wheels without code in lanes run thread by thread: other sums, and sines of another library.
    thread_by_thread = {"KERNELC_LANES": "0"} if LEVELS == "baseline" else {}
    expected = json.loads(run(sys.executable, script, str(tmp_path / "expected.npz"), **thread_by_thread))
    for path in said["where"].values():
        assert Path(path).is_relative_to(bare.parents[1])
    built = list((tmp_path / "none").glob("kernels/*"))
    assert not built
    # A kernel of one's own needs a compiler, and only that.
    assert said["of_mine"].startswith("NoCompiler: there is no C++ compiler")
    assert expected["of_mine"] == [3.0, 6.0, 9.0]
    assert said["doctor"] == expected["doctor"]
    run(sys.executable, script, str(tmp_path / "for_all.npz"), "adjoints-for-all", **thread_by_thread)
    compare(*(np.load(tmp_path / f"{name}.npz") for name in ("found", "expected", "for_all")))


def compare(found, expected, for_all):
    """The same bits as those of a compiler.

    Without one, gradients of pictures come from the adjoint for all arrays. It adds to some that all pixels share, so
    its pixels are added up in strips: these are the bits of that adjoint, and the gradient that a compiler gives for
    vertices and camera alone is the same to rounding.
    """
    assert found.files == expected.files
    for name in found.files:
        if name.startswith("pictures") and "gradient" in name:
            assert found[name].tobytes() == for_all[name].tobytes(), name
            scale = np.abs(expected[name]).max()
            np.testing.assert_allclose(found[name], expected[name], rtol=0, err_msg=name,
                                       atol=scale * (1e-6 if "float32" in name else 1e-15))  # fmt: skip
        else:
            assert found[name].tobytes() == expected[name].tobytes(), name


def test_the_example_of_a_package_with_kernels(wheels, bare, hidden, tmp_path):
    """As people with a package of their own build it: kernelc is a requirement of the build, and brings the rest."""
    install(bare, build(tmp_path / "dist", ROOT / "examples" / "wheel", PIP_FIND_LINKS=str(wheels[0].parent)))
    script = """
import hanging, numpy as np
x = np.stack([np.linspace(0, 1, 9), np.linspace(0, 0.1, 9) ** 2], 1)
rest = np.full(8, 0.15)
gradient = hanging.energy(x, rest)[1]
way = np.random.default_rng(0).normal(size=x.shape)
two = [hanging.energy(x + h * way, rest)[0] for h in (1e-6, -1e-6)]
assert np.isclose((gradient * way).sum(), (two[0] - two[1]) / 2e-6, rtol=1e-7)
hung = hanging.settle(x, rest)
assert hung[4, 1] < -0.3 and np.abs(hanging.energy(hung, rest)[1][1:-1]).max() < 0.05
"""
    run(str(bare), "-c", script, **hidden)
    assert not list((tmp_path / "none").glob("kernels/*"))
