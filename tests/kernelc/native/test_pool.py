"""The pool: any number of threads, launches from several Python threads at once, forks, a quiet end of the process."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from kernelc import _native


def work(entry, block, total=20_000, steps=100):
    out = np.zeros(total, dtype=np.int64)
    assert _native.launch(entry("spin"), block(steps, out), total, True) is None
    return out


def run_python(text: str, *arguments: str, timeout: float = 60) -> str:
    command = [sys.executable, "-c", textwrap.dedent(text), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout


PRELUDE = """
    import struct, sys, threading, numpy as np
    from kernelc import _native
    handle = _native.open_library(sys.argv[1])
    out = np.zeros(100_000, dtype=np.int64)
    block = struct.pack("2q", 100, out.ctypes.data)
    def launch(): return _native.launch(_native.symbol(handle, "spin"), block, len(out), True)
    _native.set_threads(4)
"""


def test_the_number_of_threads_is_a_setting():
    assert _native.get_threads() == len(os.sched_getaffinity(0))
    _native.set_threads(3)
    assert _native.get_threads() == 3
    _native.set_threads(0)
    assert _native.get_threads() == len(os.sched_getaffinity(0))


def test_results_do_not_depend_on_the_number_of_threads(entry, block):
    results = []
    for threads in (1, 2, 3, 16, 2, 1, 0):
        _native.set_threads(threads)
        results.append(work(entry, block))
    assert all(np.array_equal(result, results[0]) for result in results)


def workers(entry, block, total, steps):
    owners = np.zeros(total, dtype=np.int64)
    _native.launch(entry("worker_of"), block(steps, owners), total, True)
    return len(set(owners.tolist()))


def test_work_is_shared_where_it_pays(entry, block):
    _native.set_threads(2)
    # Other programs may have the second core for a while: the helper then comes too late now and then.
    assert any(workers(entry, block, 10_000, 2000) == 2 for _ in range(100))
    assert any(workers(entry, block, 256, 20_000) == 2 for _ in range(100)), "two chunks only"


def test_little_work_stays_with_the_caller(entry, block):
    _native.set_threads(2)
    workers(entry, block, 1000, 0)  # what it costs is known from when it last ran
    assert sum(workers(entry, block, 1000, 0) == 1 for _ in range(100)) > 90
    _native.set_threads(1)
    assert workers(entry, block, 10_000, 2000) == 1


def test_python_threads_may_launch_at_once(entry, block):
    _native.set_threads(3)
    expected = work(entry, block)
    wrong = []

    def loop():
        for _ in range(50):
            if not np.array_equal(work(entry, block), expected):
                wrong.append(1)
            bad = np.zeros(1, dtype=np.int64)
            _native.launch(entry("push_pop"), block(10, bad), 2000, True)
            wrong.extend([1] * int(bad[0]))

    threads = [threading.Thread(target=loop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(100):
        _native.set_threads(1 + i % 4)
        time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_long_launch_of_one_thread_gives_up_the_gil(entry, block):
    out = np.zeros(1, dtype=np.int64)

    def ticks_while(steps):
        count, done = 0, threading.Event()

        def run():
            _native.launch(entry("spin"), block(steps, out), 1, False)
            done.set()

        runner = threading.Thread(target=run)
        runner.start()
        while not done.is_set():
            count += 1
        runner.join()
        return count

    ticks_while(10_000_000)  # the first launch of an entry is not known to be long
    assert ticks_while(100_000_000) > 1000


def test_a_forked_child_launches(entry, block):
    _native.set_threads(3)
    expected = work(entry, block)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        same = all(np.array_equal(work(entry, block), expected) for _ in range(5))
        os.write(write, b"1" if same else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1) == b"1"
    os.close(read), os.close(write)
    assert np.array_equal(work(entry, block), expected)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
def test_forks_while_another_thread_launches(library):
    """The child must not wait for locks of threads that it does not have."""
    text = f"""{PRELUDE}
    import os
    stop = False
    def loop():
        while not stop: launch()
    thread = threading.Thread(target=loop)
    thread.start()
    codes = []
    for _ in range(30):
        child = os.fork()
        if child == 0:
            launch()
            os._exit(7 if out.all() else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    stop = True
    thread.join()
    print(set(codes))
    """
    assert run_python(text, str(library)).strip() == "{7}"


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(0)",
        "import atexit; atexit.register(launch)",
        "import weakref; keep = lambda: 0; weakref.finalize(keep, launch)",
        "threading.Thread(target=lambda: [launch() for _ in range(10**9)], daemon=True).start()",
    ],
)
def test_the_process_ends_quietly(library, ending):
    assert run_python(f"{PRELUDE}\n    launch()\n    {ending}", str(library)) == ""


def test_importing_starts_no_thread():
    if not os.path.exists("/proc/self/task"):
        pytest.skip("no /proc")
    # NumPy's linear algebra may have threads of its own.
    count = "len(os.listdir('/proc/self/task'))"
    text = f"import os, numpy; before = {count}; import kernelc, kernelc._native; print({count} - before)"
    assert run_python(text).strip() == "0"


def test_helpers_sleep_when_there_is_nothing_to_do(entry, block):
    _native.set_threads(4)
    work(entry, block)
    time.sleep(0.05)
    begin = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - begin < 0.05
