"""Builds what would be uploaded, and checks it: sdists and wheels of the four packages, their metadata and contents.
Then it uses them in a new environment. `make release-check` runs it.

    python tools/release_check.py OUT [--levels baseline]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {"kernelc": "kernelc", "physics": "nablasim-physics", "render": "nablasim-render", "sysid": "nablasim-sysid"}
TOOLS = ("build>=1.2", "check-wheel-contents>=0.6", "twine>=6")
WANTED = ("Author", "License-Expression", "License-File", "Summary", "Requires-Python", "Project-URL", "Classifier")

SMOKE = """
import importlib, importlib.metadata as metadata
import numpy as np
for name, distribution in {modules}.items():
    module = importlib.import_module(name)
    assert module.__version__ == metadata.version(distribution), name
from nablasim import physics as ph, render
scene = ph.Scene().add_rigid("ball", ph.Sphere(0.1), mass=1.0, pos=(0.0, 1.0, 0.0))
state = ph.rollout(scene.build(real="float64"), dt=1e-3, steps=100, every=100)["ball"].x
assert abs(float(state[-1, ..., 1].reshape(-1)[0]) - (1 - 9.81 * 0.1**2 / 2)) < 1e-2, state
image = render.Renderer(render.Camera.look_at((0, 0, 3), (0, 0, 0)), size=(32, 32))(render.Mesh.sphere(1))
assert float(image[16, 16, 3]) > 0.99 and float(image[0, 0, 3]) < 0.01
print("a ball fell and a sphere was drawn")
"""


def run(*command: object, **environment: str) -> str:
    done = subprocess.run([str(c) for c in command], env=os.environ | environment, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(map(str, command))}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def environment(folder: Path) -> Path:
    """Python of a new environment."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def build(python: Path, dist: Path, levels: str) -> None:
    """sdists and wheels, with kernels for these levels of the processor; empty: for all."""
    shutil.rmtree(dist, ignore_errors=True)
    define = {"SKBUILD_CMAKE_DEFINE": f"KERNELC_AOT_LEVELS={levels}"} if levels else {}
    for folder in PACKAGES:
        print(f"building {folder}", flush=True)
        run(python, "-m", "build", "--sdist", "--wheel", "--outdir", dist, ROOT / "packages" / folder, **define)


def held(path: Path) -> tuple[list[str], str]:
    """The names of an archive's files, and its metadata."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            return names, wheel.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode()
    with tarfile.open(path) as sdist:
        names = sdist.getnames()
        info = sdist.extractfile(next(n for n in names if n.count("/") == 1 and n.endswith("/PKG-INFO")))
        assert info is not None
        return names, info.read().decode()


def complaints(path: Path) -> list[str]:
    """What a file lacks that is to be uploaded."""
    names, text = held(path)
    metadata = Parser().parsestr(text)
    found = [f"{path.name}: no {field} in the metadata" for field in WANTED if not metadata.get_all(field)]
    if not (metadata.get_payload() or metadata.get("Description")):
        found.append(f"{path.name}: no readme in the metadata")
    for wanted in ("LICENSE", "py.typed"):
        if not any(name.rsplit("/", 1)[-1] == wanted for name in names):
            found.append(f"{path.name}: no {wanted}")
    return found


def smoke(python: Path, dist: Path) -> str:
    """Install from these files, and from the index what they depend on; then use all four."""
    run(python, "-m", "pip", "install", "--quiet", "--find-links", dist, "-c", ROOT / "constraints.txt",
        *(f"{name} @ {next(dist.glob(name.replace('-', '_') + '-*.whl')).resolve().as_uri()}"
          for name in PACKAGES.values()))  # fmt: skip
    run(python, "-m", "pip", "check")
    modules = {"kernelc" if folder == "kernelc" else f"nablasim.{folder}": name for folder, name in PACKAGES.items()}
    said = run(python, "-c", SMOKE.format(modules=modules), PYTHONPATH="")
    return said + run(python.with_name("nablasim"), "--version")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--levels", default="", help="levels of the processor that wheels have kernels for; all")
    parser.add_argument("--no-build", action="store_true", help="check what OUT/dist holds already")
    given = parser.parse_args()
    dist, tools = given.out / "dist", environment(given.out / "tools")
    run(tools, "-m", "pip", "install", "--quiet", *TOOLS)
    if not given.no_build:
        build(tools, dist, given.levels)
    files = sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")])
    if len(files) != 2 * len(PACKAGES):
        sys.exit(f"expected an sdist and a wheel of each package in {dist}, found {[f.name for f in files]}")
    if wrong := [line for path in files for line in complaints(path)]:
        sys.exit("\n".join(wrong))
    print(run(tools, "-m", "twine", "check", "--strict", *files), end="")
    print(run(tools.with_name("check-wheel-contents"), *dist.glob("*.whl")), end="")
    print(smoke(environment(given.out / "fresh"), dist), end="")
    print(f"{dist} can be uploaded: " + ", ".join(path.name for path in files))


if __name__ == "__main__":
    main()
