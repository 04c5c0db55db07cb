"""Generated kernels and adjoints under the sanitizers: no access out of bounds, no undefined behaviour."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelc.toolchain import compiler

HERE = Path(__file__).parent


def runtime():
    """The library that watches memory; it must be loaded before Python's own memory is."""
    command = [str(word) for word in compiler().command]
    said = subprocess.run([*command, "-print-file-name=libasan.so"], capture_output=True, text=True, check=False).stdout
    if not os.path.isabs(said.strip()):
        pytest.skip("the compiler has no address sanitizer that can be loaded first")
    return said.strip()


def run(what, tmp_path):
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime(),
        # Python keeps memory until its end; numbers of ours come from malloc, not from Python's own pools.
        "ASAN_OPTIONS": "detect_leaks=0,exitcode=99,abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1,halt_on_error=1",
        "PYTHONMALLOC": "malloc",
        "KERNELC_CACHE_DIR": str(tmp_path / "cache"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, HERE / "sanitized.py", what], env=environment, check=False, capture_output=True, text=True,
        timeout=900,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", ["laws", "adjoints"])
def test_generated_kernels_are_clean(what, tmp_path):
    done = run(what, tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["clean"]), done.stdout + done.stderr[-6000:]


@pytest.mark.slow
def test_the_watch_is_awake(tmp_path):
    done = run("outside", tmp_path)
    assert done.returncode == 99, done.stdout + done.stderr[-3000:]
    assert "heap-buffer-overflow" in done.stderr
    assert "sanitized.py" in done.stderr  # and it names the Python line
