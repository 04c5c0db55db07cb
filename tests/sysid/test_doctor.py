"""The doctor says what is missing, and its exit code says whether it matters."""

import importlib.metadata
import os
import subprocess
import sys

import imageio_ffmpeg
import pytest
from typer.testing import CliRunner

from nablasim.sysid import doctor
from nablasim.sysid.cli import app


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda: CliRunner().invoke(app, ["doctor"])


def test_a_machine_that_can_compile_is_well(run):
    result = run()
    assert result.exit_code == 0, result.output
    assert "A kernel runs" in result.output


def test_a_missing_compiler_is_essential(run, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    result = run()
    assert result.exit_code == 2
    assert "apt-get install g++" in result.output


def test_with_the_machine_code_of_wheels_a_compiler_is_for_kernels_of_ones_own(tmp_path):
    """In a process of its own, with an empty cache: kernels that are compiled already run without a compiler."""
    script = """
from nablasim.sysid import doctor
doctor.aot.brings = lambda package: package.startswith("nablasim.")
found = doctor.check_compiler(), doctor.check_kernel()
assert not any(check.ok or check.essential for check in found), found
assert "for kernels of your own only" in found[0].advice, found
simulation = doctor.check_simulation()
assert not simulation.ok and simulation.essential, simulation  # in truth none was brought here
"""
    env = os.environ | {"PATH": "", "CXX": "no-such-compiler", "KERNELC_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_compiler_can_be_named(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    monkeypatch.setenv("PATH", "")
    assert not doctor.check_compiler().ok
    monkeypatch.undo()
    assert doctor.check_compiler().ok


def test_a_cache_below_a_file_is_essential(run, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(doctor.kc.config, "cache_dir", tmp_path / "file" / "cache")
    assert not doctor.check_cache().ok
    result = run()
    assert result.exit_code == 2
    assert "KERNELC_CACHE_DIR" in result.output


def test_the_ffmpeg_that_reads_is_the_one_that_counts(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")  # none of the system
    assert doctor.check_ffmpeg().ok and imageio_ffmpeg.get_ffmpeg_exe() in doctor.check_ffmpeg().found
    broken = tmp_path / "ffmpeg"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(broken))
    assert not doctor.check_ffmpeg().ok


def test_torch_and_ffmpeg_are_not_essential(run, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", missing)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nowhere/ffmpeg")
    result = run()
    assert result.exit_code == 0, result.output
    assert "pip install torch" in result.output
    assert "imageio-ffmpeg" in result.output
