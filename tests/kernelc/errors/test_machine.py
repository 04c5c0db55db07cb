"""What a machine can lack, met by a launch: a compiler, a folder to write to, a GPU. And a compiler that refuses."""

import dataclasses
import itertools
import os
import shutil
import traceback
from pathlib import Path

import pytest

import kernelc as kc
from kernelc import _native
from kernelc.builtins import TABLE

_numbers = itertools.count(1)


def fresh_kernel():
    """A kernel that no cache holds."""
    number = float(next(_numbers)) + 0.125

    @kc.kernel
    def scaled(x: kc.Array[float]):
        i = kc.tid()
        x[i] = kc.cosh(x[i]) * number  # here

    return scaled


@pytest.fixture
def empty_cache(tmp_path):
    before = kc.config.cache_dir
    kc.config.cache_dir = tmp_path / "cache"
    yield tmp_path
    kc.config.cache_dir = before


def error_of(kind):
    with pytest.raises(kc.KernelError) as caught:
        kc.launch(fresh_kernel(), 2, [kc.ones(2)])
    assert type(caught.value) is kind
    frames = [f.name for f in traceback.extract_tb(caught.value.__traceback__) if "kernelc/src" in f.filename]
    assert frames == []
    return caught.value


def test_no_compiler(empty_cache, monkeypatch):
    monkeypatch.setenv("CXX", str(empty_cache / "nowhere" / "g++"))
    error = error_of(kc.NoCompiler)
    assert "nowhere/g++" in error.message
    assert "set CXX" in error.advice or "CXX" in error.advice


def test_a_compiler_that_refuses_is_shown_at_the_python_line(empty_cache, monkeypatch):
    row = TABLE.scalar("cosh")
    monkeypatch.setitem(TABLE.rows, "cosh", dataclasses.replace(row, cpp="no_such_function({0})"))
    error = error_of(kc.CompilerFailed)
    assert error.filename == __file__
    assert error.text.rstrip().endswith("# here")
    assert "no_such_function" in error.message
    assert "no_such_function" in error.output
    assert error.source.exists()
    assert "mistake of kernelc" in error.advice
    assert f"{__file__}:{error.lineno}" in str(error)


def test_a_cache_that_cannot_be_written(empty_cache):
    file = empty_cache / "file"
    file.write_text("no folder")
    kc.config.cache_dir = file / "cache"
    error = error_of(kc.CacheNotWritable)
    assert str(file) in error.message
    assert "KERNELC_CACHE_DIR" in error.advice


def test_a_cache_below_a_folder_that_is_gone(empty_cache, monkeypatch):
    (empty_cache / "gone").mkdir()
    monkeypatch.chdir(empty_cache / "gone")
    (empty_cache / "gone").rmdir()
    kc.config.cache_dir = Path("cache")
    assert "below a working folder that is gone" in error_of(kc.CacheNotWritable).message


def test_machine_code_that_the_system_does_not_open(empty_cache, monkeypatch):
    """As on a file system that is mounted with noexec."""

    def refuses(path):
        raise OSError(f"{os.fsdecode(path)}: failed to map segment from shared object")

    monkeypatch.setattr(_native, "open_library", refuses)
    error = error_of(kc.ToolchainError)
    assert "machine code of scaled cannot be opened" in error.message and "failed to map segment" in error.message
    assert "noexec" in error.advice and "KERNELC_CACHE_DIR" in error.advice


def test_a_compiler_with_a_space_in_its_path(empty_cache, monkeypatch):
    path = empty_cache / "my tools" / "g++"
    path.parent.mkdir()
    path.symlink_to(shutil.which("g++") or shutil.which("c++"))
    monkeypatch.setenv("CXX", str(path))
    error = error_of(kc.NoCompiler)
    assert f"only '{path.parent.parent}/my' is taken for the program" in error.message
    assert error.advice == f"put quotes around the path in CXX: '{path}'"
    monkeypatch.setenv("CXX", f"'{path}'")
    kc.launch(fresh_kernel(), 2, [kc.ones(2)])


def test_no_cuda():
    with pytest.raises(kc.NoCuda) as caught:
        kc.launch(fresh_kernel(), 2, [kc.ones(2)], device="cuda")
    assert caught.value.advice == 'launch on the CPU: device="cpu"'
