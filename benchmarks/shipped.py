"""How fast machine code is that came with a package, beside what is compiled here for this very processor.

    python -m benchmarks.shipped [FOLDER]       the folder keeps what was built, for the next time

Copies of physics and render get machine code for each level of the processor, of the kernels that are measured, by the
same CMake function as their wheels. Then each level runs in a process that finds no compiler, and one process compiles.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kernelc.toolchain.probe import program
from kernelc.toolchain.simd import own_levels

from .cases import fem, silhouette

ROOT = Path(__file__).parents[1]
USED = {"physics": ("loads", "mass", "particles", "tets"), "render": ("bands", "bins", "coverage", "triangles")}
"""The modules of kernels that the measured scenes launch."""
DECLARATION = """from nablasim.{package}.kernels import ahead
AHEAD = [one for one in ahead.AHEAD if one.kernel.source.function.__module__.rpartition(".")[2] in {used!r}]
"""
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(shipped LANGUAGES CXX)
find_package(Python REQUIRED COMPONENTS Interpreter)
include(KernelcAot)
kernelc_add_kernels(nablasim.{package} DECLARATION nablasim.{package}.kernels.measured SOURCE_DIR src)
"""
TETRAHEDRA, PIXELS, SECONDS = 1000, 128, 2.0


def build(folder: Path, package: str) -> Path:
    """A copy of a package with machine code; returns what goes on the path."""
    project, site = folder / package, folder / package / "src"
    if not (site / "nablasim" / package / "_kernels").exists():
        shutil.copytree(ROOT / "packages" / package / "src", site, dirs_exist_ok=True)
        declaration = DECLARATION.format(package=package, used=USED[package])
        (site / "nablasim" / package / "kernels" / "measured.py").write_text(declaration)
        (project / "CMakeLists.txt").write_text(PROJECT.format(package=package))
        values = {"CMAKE_BUILD_TYPE": "Release", "CMAKE_INSTALL_PREFIX": site, "CMAKE_MODULE_PATH": ROOT / "cmake",
                  "Python_EXECUTABLE": sys.executable, "CMAKE_MAKE_PROGRAM": program("ninja")}  # fmt: skip
        cmake, made = program("cmake"), project / "build"
        defined = [f"-D{name}={value}" for name, value in values.items()]
        for command in ([cmake, "-G", "Ninja", "-S", project, "-B", made, *defined],
                        [cmake, "--build", made], [cmake, "--install", made]):  # fmt: skip
            subprocess.run(command, check=True, stdout=sys.stderr)
    return site


def measure(sites: list[Path], folder: Path, level: str) -> dict[str, float]:
    """Milliseconds by measure, with the machine code of one level; of none: compiled here."""
    (folder / "nothing").mkdir(exist_ok=True)
    hidden = {"PATH": str(folder / "nothing"), "CXX": "", "KERNELC_CPU": level}
    cache = {"KERNELC_CACHE_DIR": str(folder / (f"none-{level}" if level else "cache"))}
    path = [*(sites if level else []), *os.environ.get("PYTHONPATH", "").split(os.pathsep), ROOT]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))} | cache | (hidden if level else {})
    command = [sys.executable, "-c", "from benchmarks import shipped; shipped.report()"]
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    compiled = list(Path(cache["KERNELC_CACHE_DIR"]).glob("kernels/*"))
    if bool(compiled) == bool(level):
        raise SystemExit(f"{level or 'compiled here'}: {len(compiled)} kernels were compiled")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def report() -> None:
    """In a process of its own: the best time of each scene, in milliseconds."""
    from .cases.fem.physics import entrants as blocks
    from .cases.silhouette.kernelc import entrants as pictures

    entrants = {
        f"{TETRAHEDRA} tetrahedra": blocks(fem.CASE.make(TETRAHEDRA))["physics, tape"],
        f"silhouette of {PIXELS}²": pictures(silhouette.CASE.make(PIXELS))["kernelc"],
    }
    times = {f"{name}, {measure}": best(run) for name, entrant in entrants.items()
             for measure, run in entrant.runs.items()}  # fmt: skip
    print(json.dumps(times))


def best(run: object) -> float:
    assert callable(run)
    run()
    end, found = time.perf_counter() + SECONDS, float("inf")
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        found = min(found, time.perf_counter() - begin)
    return 1e3 * found


def main(folder: Path) -> None:
    sites = [build(folder, package) for package in USED]
    ways = ["", *(level.name for level in reversed(own_levels()))]
    found = {way: measure(sites, folder, way) for way in ways}
    print(f"| milliseconds | {' | '.join(way or 'compiled here' for way in ways)} |")
    print("|---|" + "---|" * len(ways))
    for name, here in found[""].items():
        cells = [f"{found[way][name]:.2f}" + (f" ({found[way][name] / here:.2f})" if way else "") for way in ways]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
