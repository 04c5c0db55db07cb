"""Which compiler is found, which flags it takes, when it is asked again, and what is said when there is none."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import kernelc
from kernelc.errors import NoCompiler
from kernelc.toolchain import build, build_many, compiler, probe
from kernelc.toolchain.simd import own_levels

INCLUDE = Path(kernelc.__file__).with_name("include")


@pytest.fixture
def runs(monkeypatch):
    """The commands that this process starts."""
    seen, run = [], subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: (seen.append(a[0]), run(*a, **k))[1])
    return seen


@pytest.fixture
def native(monkeypatch):
    """As if the build of the native core had written down this compiler."""

    def pretend(path, identity="Cray", **changes):
        file = Path(path)
        found = probe.Compiler(path=file, identity=identity, version="0.1", flags=probe.FLAGS, include=INCLUDE,
                               command=(str(path),), libraries=probe.LIBRARIES, stamp="")  # fmt: skip
        state = file.stat() if file.exists() else os.stat(os.devnull)
        record = probe._Native(found, state.st_size, int(state.st_mtime))
        monkeypatch.setattr(probe, "_native_build", lambda: replace(record, **changes))

    return pretend


def test_the_compiler_is_described(root):
    found = compiler()
    assert found.path.exists() and found.path.is_absolute()
    assert found.identity in ("GNU", "Clang", "AppleClang")
    assert re.fullmatch(r"\d+(\.\d+)+", found.version)
    assert {"-std=c++17", "-shared", "-fPIC"} <= set(found.flags)
    assert found.include.name == "include"


def test_it_is_asked_once_per_machine(root, make_counting, runs):
    counting = make_counting()
    first = compiler()
    assert [command for command in runs if "-S" in command]
    runs.clear()
    probe._probed.cache_clear()  # as in another process
    assert compiler() == first
    assert runs == [] and counting.probes == 1


def test_an_upgraded_compiler_is_asked_again(root, text, make_counting):
    counting = make_counting()
    before = build(text(1), name="k")
    counting.path.write_text(counting.path.read_text() + "# version 2\n")
    assert build(text(1), name="k") != before
    assert counting.probes == 2


def test_a_record_in_the_place_of_another_is_not_believed(root, tmp_path, make_counting):
    """That of a compiler which takes fewer flags, for instance."""
    records = [set((root / "probe").glob("*.json"))]
    (tmp_path / "other").mkdir()
    for folder in (tmp_path / "other", tmp_path):
        make_counting(folder=folder)
        assert compiler().path.parent == folder
        records.append(set((root / "probe").glob("*.json")))
    (one,), (two,) = records[1] - records[0], records[2] - records[1]
    two.write_text(one.read_text())
    probe._probed.cache_clear()
    assert compiler().path.parent == tmp_path


def test_a_compiler_that_vanished_is_said(root, text, make_counting):
    counting = make_counting()
    build(text(1), name="k")
    counting.path.unlink()
    with pytest.raises(NoCompiler, match="counting-c\\+\\+") as caught:
        build(text(2), name="k")
    assert "apt-get install g++" in caught.value.advice


def test_what_it_has_built_is_still_served(root, text, answer, make_counting, monkeypatch):
    counting = make_counting()
    build_many({"a": text(1), "b": text(2)})
    counting.path.unlink()
    assert [answer(path) for path in build_many({"b": text(2), "a": text(1)}).values()] == [2, 1]
    with pytest.raises(NoCompiler):  # one of them is missing
        build_many({"b": text(2), "c": text(3)})
    monkeypatch.setenv("CXX", f"{counting.path} -DN=3")  # something else
    with pytest.raises(NoCompiler):
        build(text(1), name="a")


@pytest.mark.parametrize("level", ["", "baseline"])
def test_a_filled_cache_needs_no_compiler(root, text, answer, monkeypatch, tmp_path, level):
    monkeypatch.setenv("KERNELC_CPU", level)
    own_levels.cache_clear()
    try:
        build(text(1), name="k")
        monkeypatch.setenv("PATH", str(tmp_path))
        assert answer(build(text(1), name="k")) == 1
        with pytest.raises(NoCompiler, match="there is no C\\+\\+ compiler on this machine"):
            build(text(2), name="k")
        for record in (root / "compilers").iterdir():
            record.write_text("{")
        with pytest.raises(NoCompiler):
            build(text(1), name="k")
    finally:
        own_levels.cache_clear()


def test_cxx_may_have_several_words(root, text, answer, monkeypatch):
    monkeypatch.setenv("CXX", f"{shutil.which('env')} LC_ALL=C {shutil.which('c++')} -DN=3")
    assert answer(build(text(0, "return N;"), name="k")) == 3
    assert compiler().command[2:] == (shutil.which("c++"), "-DN=3")


def test_a_flag_that_is_refused_is_dropped(root, text, answer, make_counting):
    make_counting(
        'for w in "$@"; do case $w in -fwrapv|-nostdinc++|-nodefaultlibs) echo "no $w" >&2; exit 1;; esac; done'
    )
    found = compiler()
    assert not {"-fwrapv", "-nostdinc++"} & set(found.flags)
    assert {"-O2", "-march=native", "-ffp-contract=off"} <= set(found.flags)
    assert len(found.flags) == len(set(found.flags))
    assert found.libraries == ("-lm",)
    assert answer(build(text(1, "static double x = 2; return (int64_t)sqrt(x);"), name="k")) == 1


@pytest.mark.parametrize("cxx", ["no-such-compiler", "/no/such/compiler -O2", "g++ 'open"])
def test_a_compiler_that_is_not_there_is_said(root, monkeypatch, cxx):
    monkeypatch.setenv("CXX", cxx)
    with pytest.raises(NoCompiler, match=re.escape(cxx.split()[0])):
        compiler()


def test_no_compiler_at_all_is_said(root, monkeypatch, tmp_path):
    monkeypatch.setattr(probe, "_native_build", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match="there is no C\\+\\+ compiler on this machine") as caught:
        compiler()
    assert "set CXX" in caught.value.advice


def test_a_compiler_that_was_taken_off_the_path_is_not_used(root, native, monkeypatch, tmp_path):
    native(shutil.which("c++"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match="there is no C\\+\\+ compiler on this machine"):
        compiler()


def test_where_there_is_none_cmake_is_asked_once(root, native, monkeypatch, tmp_path, runs):
    native("/no/such/c++")
    monkeypatch.setenv("PATH", str(tmp_path))
    for _ in range(2):
        with pytest.raises(NoCompiler, match="there is no C\\+\\+ compiler on this machine"):
            compiler()
    assert len(runs) <= 1  # CMake itself may be on that PATH


@pytest.mark.parametrize("first", ["exit 1", "echo 'int main' ; exit 0", 'case "$*" in *c++17*) exit 1;; esac'])
def test_a_compiler_that_does_not_work_is_said(root, make_counting, first):
    make_counting(first)
    with pytest.raises(NoCompiler, match="cannot compile"):
        compiler()


def test_the_compiler_of_the_native_core_is_not_asked_again(root, native, runs, text, answer, on_path):
    counting = on_path
    native(counting.path)
    found = compiler()
    assert (found.path, found.identity, found.version) == (counting.path, "Cray", "0.1")
    assert runs == []
    assert answer(build(text(1), name="k")) == 1
    assert len(counting.kernels) == 1


@pytest.fixture
def on_path(make_counting, monkeypatch):
    """A compiler that PATH leads to, and CXX does not name."""
    counting = make_counting()
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{counting.path.parent}")
    return counting


@pytest.mark.parametrize("change", ["size", "seconds", "gone", "CXX"])
def test_unless_it_changed(root, native, on_path, monkeypatch, tmp_path, change):
    if change == "gone":
        native(tmp_path / "gone")
    elif change == "CXX":
        native(shutil.which("c++"))
        monkeypatch.setenv("CXX", str(on_path.path))
    else:
        native(on_path.path, **{change: 1})
    found = compiler()
    assert found.identity in ("GNU", "Clang", "AppleClang")
    assert found.path == on_path.path or change == "gone"


RECORD = {"command": ["/c++"], "id": "GNU", "version": "12.2.0", "flags": ["-O2"], "libraries": ["-lm"],
          "asked": [*probe.FLAGS, *probe.LIBRARIES], "size": 5, "seconds": 7}  # fmt: skip


def test_the_record_of_the_native_build_is_read(note):
    found = note(json.dumps(RECORD))
    assert (found.compiler.command, found.compiler.flags, found.size, found.seconds) == (("/c++",), ("-O2",), 5, 7)


@pytest.mark.parametrize("content", [json.dumps(RECORD | {"asked": ["-O9"]}), '{"path": "/c++"}', "[]", ""])
def test_one_that_says_nothing_or_asked_for_other_flags_is_not(note, content):
    assert note(content) is None


@pytest.fixture
def note(tmp_path, monkeypatch):
    """What is read where the build of the native core left a record."""

    def read(content):
        (tmp_path / "_probe.json").write_text(content)
        monkeypatch.setattr(kernelc, "__path__", [str(tmp_path / "sources"), str(tmp_path)])
        return probe._native_build.__wrapped__()

    return read


def test_the_build_of_the_native_core_left_one(root, runs, monkeypatch):
    """Here, as in every installation: the compiler that built it serves without being asked."""
    native = probe._native_build.__wrapped__()
    monkeypatch.setenv("PATH", os.path.dirname(native.compiler.command[0]))
    assert compiler().command == native.compiler.command
    assert runs == []


def test_the_processor_is_described():
    assert len(probe.cpu()) > 20
