"""`nablasim doctor`: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import platformdirs

import kernelc as kc
from kernelc import aot
from nablasim import physics as ph
from nablasim import render
from nablasim.sysid.kernels import double


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `advice` says what to do when it is missing."""

    name: str
    ok: bool
    found: str
    advice: str = ""
    essential: bool = True


def examine() -> list[Check]:
    """Every check, in the order in which things depend on each other."""
    return [
        check_python(), check_compiler(), check_cache(), check_kernel(), check_simulation(), check_torch(),
        check_ffmpeg(),
    ]  # fmt: skip


def needs_compiler() -> bool:
    """Whether simulations and pictures need one: wheels bring machine code, an editable installation does not."""
    return not all(aot.brings(package.__name__) for package in (ph, render))


def check_python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check("Python", sys.version_info >= (3, 10), found, "install Python 3.10 or newer")


def check_compiler() -> Check:
    """The C++ compiler that turns kernels into machine code: without it, there are those that wheels bring."""
    essential = needs_compiler()
    why = "" if essential else "for kernels of your own only; "
    advice = f"{why}Debian: apt-get install g++; Fedora: dnf install gcc-c++; macOS: xcode-select --install; or set CXX"
    for command in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return Check("C++ compiler", True, _first_line([*words, "--version"]))
    return Check("C++ compiler", False, "none on the PATH", advice, essential)


def check_cache() -> Check:
    """The folder where compiled kernels are kept."""
    folder = Path(kc.config.cache_dir or platformdirs.user_cache_path("kernelc")).expanduser().absolute()
    # It is made on first use: until then its nearest parent has to let us.
    parent = next(p for p in (folder, *folder.parents) if p.exists())
    ok = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    advice = "set KERNELC_CACHE_DIR to a folder of your own that can be written"
    return Check("Kernel cache", ok, str(folder), advice, needs_compiler())


def check_kernel() -> Check:
    """Compiles and runs a new kernel: the proof of all of the above."""
    x, y = kc.array([1.0, 2.0, 3.0]), kc.zeros(3, dtype=float)
    try:
        kc.launch(double, dim=3, inputs=[x], outputs=[y], device="cpu")
    except kc.KernelError as error:
        advice = getattr(error, "advice", "") or "see the lines above"
        return Check("A kernel runs", False, str(error), advice, needs_compiler())
    right = y.numpy().tolist() == [2.0, 4.0, 6.0]
    return Check("A kernel runs", right, "yes" if right else f"wrong result: {y.numpy()}", "please report this")


def check_simulation() -> Check:
    """Runs a kernel of the physics."""
    scene = ph.Scene().add_particles("stone", [[0.0, 1.0, 0.0]], mass=1.0)
    try:
        fallen = ph.rollout(scene.build("float64"), dt=0.01, steps=10)["stone"].x[-1][0]
    except kc.KernelError as error:
        return Check("A simulation runs", False, str(error), getattr(error, "advice", "") or "see the lines above")
    return Check("A simulation runs", bool(fallen[1] < 1.0), f"a stone falls to {float(fallen[1]):.3f} m",
                 "please report this")  # fmt: skip


def check_torch() -> Check:
    try:
        return Check("torch", True, version("torch"), essential=False)
    except PackageNotFoundError:
        return Check("torch", False, "not installed", "for kernelc.torch only: pip install torch", essential=False)


def check_ffmpeg() -> Check:
    """The one that reads and writes videos: it comes with imageio-ffmpeg, and none of the system is needed."""
    from imageio_ffmpeg import get_ffmpeg_exe

    advice = "for video files only: pip install --force-reinstall imageio-ffmpeg, or set IMAGEIO_FFMPEG_EXE"
    try:
        command = get_ffmpeg_exe()
        said = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        return Check("ffmpeg", False, str(error), advice, essential=False)
    words = said.split()
    return Check("ffmpeg", True, f"{words[2] if len(words) > 2 else 'of no version'} ({command})", essential=False)


def _first_line(command: list[str]) -> str:
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"{command[0]} ({error})"
    return (output.splitlines() or [command[0]])[0]
