"""KERNELC_CMAKE=1: the project that is written is a real one."""

from __future__ import annotations

import json
import subprocess

import pytest

from kernelc.toolchain import build, build_many
from kernelc.toolchain.probe import program


@pytest.mark.parametrize("name", ["scale", "test", "mod.scale<float>"])
def test_the_project_configures_and_builds(root, text, answer, monkeypatch, tmp_path, name):
    monkeypatch.setenv("KERNELC_CMAKE", "1")
    library = build(text(4, "return N + (int64_t)sqrt(4.0);"), name=name, extra_flags=["-DN=2"])
    (folder,) = (root / "cmake").iterdir()
    cmake = [program("cmake"), "-S", str(folder), "-B", str(tmp_path / "b"), "-G", "Ninja"]
    subprocess.run([*cmake, f"-DCMAKE_MAKE_PROGRAM={program('ninja')}"], check=True)
    subprocess.run([program("cmake"), "--build", str(tmp_path / "b")], check=True)
    (made,) = (tmp_path / "b").glob("*.so")
    assert answer(made) == answer(library) == 4
    (command,) = json.loads((tmp_path / "b" / "compile_commands.json").read_text())
    assert command["file"] == str(folder / "kernel.cpp")
    assert "-march=native" in command["command"] and "-DN=2" in command["command"]


def test_it_is_written_also_for_a_cached_kernel_and_only_when_asked(root, text, monkeypatch):
    build_many({"a": text(1), "b": text(2)})
    assert not (root / "cmake").exists()
    monkeypatch.setenv("KERNELC_CMAKE", "1")
    build_many({"a": text(1), "b": text(2)})
    assert sorted(path.name for path in (root / "cmake").iterdir()) == ["a", "b"]


def test_a_compiler_of_several_words_reaches_the_project(root, text, answer, counting, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", f"{counting.path} -DN=3")
    monkeypatch.setenv("KERNELC_CMAKE", "1")
    build(text(0, "return N;"), name="k")
    cmake = [program("cmake"), "-S", str(root / "cmake" / "k"), "-B", str(tmp_path / "b"), "-G", "Ninja"]
    subprocess.run([*cmake, f"-DCMAKE_MAKE_PROGRAM={program('ninja')}"], check=True)
    subprocess.run([program("cmake"), "--build", str(tmp_path / "b")], check=True)
    (made,) = (tmp_path / "b").glob("*.so")
    assert answer(made) == 3
