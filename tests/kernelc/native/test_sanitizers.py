"""The native core under the sanitizers: no access out of bounds, no leak, no undefined behaviour, no data race."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[2] / "packages" / "kernelc" / "native"
NAMES = ("interrupt", "launch", "pool", "prints", "program", "record", "window", "worker")
SOURCES = [NATIVE / f"{name}.cpp" for name in NAMES]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sanitizers", "argument"),
    # The thread sanitizer does not follow a fork of a process with threads.
    [("address,undefined", "fork"), ("thread", "")],
)
def test_the_native_core_is_clean(compile_cpp, tmp_path, sanitizers, argument):
    flags = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-g", "-O1", f"-I{NATIVE}", "-pthread"]
    empty = tmp_path / "empty.cpp"
    empty.write_text("int main() {}\n")
    if compile_cpp(*flags, empty, "-o", tmp_path / "empty", check=False).returncode != 0:
        pytest.skip(f"the compiler has no -fsanitize={sanitizers}")
    program = tmp_path / "driver"
    compile_cpp(*flags, HERE / "driver.cpp", *SOURCES, "-x", "c++", HERE / "entries.c", "-o", program)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1", "TSAN_OPTIONS": "halt_on_error=1"}
    done = subprocess.run(
        [program, argument], env=environment, check=False, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, "clean\n"), done.stderr
