"""What a build gives, when it builds again, and what it says when the compiler refuses."""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from kernelc import _native
from kernelc.errors import CompilerFailed, KernelError
from kernelc.toolchain import build, build_many, cache, compiler

build_module = sys.modules["kernelc.toolchain.build"]  # the package exports the function under this name


def test_a_library_computes_what_its_text_says(root, text, answer):
    assert answer(build(text(42), name="k")) == 42


def test_a_batch_gives_each_name_its_own_library(root, text, answer, counting):
    sources = {f"k{i}": text(i) for i in range(5)} | {"twin": text(3)}
    libraries = build_many(sources)
    assert {name: answer(path) for name, path in libraries.items()} == {f"k{i}": i for i in range(5)} | {"twin": 3}
    assert libraries["twin"] == libraries["k3"]
    assert len(counting.kernels) == 5
    assert build_many({}) == {}


def test_what_is_built_is_not_built_again(root, text, counting):
    first = build_many({"a": text(1), "b": text(2)})
    again = build_many({"b": text(2), "c": text(3), "a": text(1)})
    assert {"a": again["a"], "b": again["b"]} == first
    assert len(counting.kernels) == len(set(counting.kernels)) == 3


def test_one_ninja_run_builds_the_batch(root, text, monkeypatch):
    compiler()
    runs = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: (runs.append(a[0]), run(*a, **k))[1])
    build_many({str(i): text(i) for i in range(4)})
    assert len(runs) == 1 and runs[0][0].endswith("ninja")


def test_flags_are_part_of_the_key(root, answer):
    source = 'extern "C" __attribute__((visibility("default"))) long answer() { return N; }\n'
    one, two = (build(source, name="k", extra_flags=[f"-DN={n}"]) for n in (1, 2))
    assert (answer(one), answer(two)) == (1, 2)


def test_flags_reach_the_compiler_unharmed(root, text, answer):
    """Through Ninja and the shell, which both have a meaning for some of these letters."""
    said = "$in a:b'c\"d;e #f"
    body = (
        'const char* s = SAID; const char* t = R"~(' + said + ')~"; while (*s && *s == *t) ++s, ++t; return *s == *t;'
    )
    escaped = said.replace('"', '\\"')
    assert answer(build(text(0, body), name="k", extra_flags=[f'-DSAID="{escaped}"'])) == 1


def test_headers_processor_and_compiler_are_part_of_the_key(root, text, monkeypatch, tmp_path, make_counting):
    """Whatever the library depends on changes its key; a header that is only touched does not."""
    counting = make_counting()
    include = tmp_path / "include" / "kernelc"
    include.mkdir(parents=True)
    header = include / "context.h"
    monkeypatch.setattr(build_module, "compiler", lambda: dataclasses.replace(compiler(), include=include.parent))
    seen = []

    def key() -> str:
        seen.append(build(text(1), name="k").parent.name)
        return seen[-1]

    header.write_text("// one")
    first = key()
    header.touch()
    assert key() == first
    header.write_text("// two")
    assert key() != first
    (include / "more.h").write_text("")
    key()
    monkeypatch.setattr(build_module, "cpu", lambda: "another processor")
    key()
    monkeypatch.setattr(build_module, "FORMAT", 99)
    key()
    counting.path.write_text(counting.path.read_text() + "# upgraded\n")
    key()
    assert len(set(seen)) == 6


def test_an_entry_can_be_checked_by_hand(root, text):
    folder = build(text(5), name="k").parent
    assert sorted(p.name for p in folder.iterdir()) == ["SHA256SUMS", "kernel.cpp", "kernel.so"]
    assert (folder / "kernel.cpp").read_text() == text(5)
    digest = hashlib.sha256((folder / "kernel.so").read_bytes()).hexdigest()
    assert (folder / "SHA256SUMS").read_text() == f"# {folder.name}\n{digest}  kernel.so\n"
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True)


def test_importing_is_light():
    script = "import sys; old = set(sys.modules); import kernelc.toolchain; print(*set(sys.modules) - old)"
    env = {"PYTHONPATH": str(Path(build_module.__file__).parents[2])}
    loaded = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True).stdout
    assert not {"subprocess", "filelock", "platformdirs", "tempfile", "cmake", "ninja"} & set(loaded.split())


USER = """\
import kernelc as kc

@kc.kernel
def scale(x):
    y = x * missing
"""


@pytest.mark.parametrize("name", ["user.py", "with space.py", "naïve.py", "a:7:b.py"])
def test_a_compiler_error_points_at_the_python_line(root, tmp_path, name):
    user = tmp_path / name
    user.write_text(USER)
    source = f'#include <math.h>\n#line 5 "{user}"\nextern "C" double scale(double x) {{ return x * missing; }}\n'
    with pytest.raises(CompilerFailed) as caught:
        build(source, name="scale/double")
    error = caught.value
    assert (error.filename, error.lineno, error.text) == (str(user), 5, "    y = x * missing\n")
    assert (error.offset, error.end_offset) == (5, 20)
    assert "missing" in str(error) and f"{user}:5" in str(error)
    assert "error:" in error.output
    assert error.source.read_text() == source
    assert str(error.source) in str(error)
    assert isinstance(error, (KernelError, SyntaxError))


def test_an_error_outside_of_user_code_points_at_the_kept_source(root):
    with pytest.raises(CompilerFailed) as caught:
        build("int x;\nint y = z;\n", name="k")
    assert (caught.value.filename, caught.value.lineno, caught.value.text) == (
        str(caught.value.source),
        2,
        "int y = z;\n",
    )


def test_a_function_that_is_nowhere_defined_is_an_error_where_the_library_is_opened(root, text):
    """And not where it is called: there, it would end the process."""
    library = build('extern "C" int nowhere();\n' + text(0, "return nowhere();"), name="k")
    with pytest.raises(OSError, match="nowhere"):
        _native.open_library(str(library))


def test_the_rest_of_a_failed_batch_is_kept(root, text, counting):
    with pytest.raises(CompilerFailed):
        build_many({"a": text(1), "bad": "int x = y;", "b": text(2)})
    before = len(counting.kernels)
    build_many({"a": text(1), "b": text(2)})
    assert len(counting.kernels) == before == 3


def test_a_compiler_that_is_killed_leaves_no_library(root, text, make_counting):
    """Its output may look finished: what counts is how it ended."""
    half = 'for word in "$@"; do case $word in *.so) echo half > $word;; esac; done; kill -9 $$'
    counting = make_counting(f'case "$*" in *flags.cpp*|*CMake*) ;; *) {half};; esac')
    with pytest.raises(CompilerFailed):
        build(text(1), name="k")
    assert counting.kernels
    assert not (root / "kernels").exists()
    assert list((root / "aside").iterdir()) == []


@pytest.mark.parametrize("name", ["../../etc", "a/b c", "", ".", "λ" * 300])
def test_any_name_will_do(root, text, answer, name, monkeypatch):
    monkeypatch.setenv("KERNELC_CMAKE", "1")
    assert answer(build(text(9), name=name)) == 9
    with pytest.raises(CompilerFailed) as caught:
        build("!", name=name)
    assert caught.value.source.parent == root / "failed"
    assert cache.cache_root() == root
