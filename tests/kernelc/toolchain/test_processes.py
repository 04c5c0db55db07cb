"""Many processes and threads on one cache, and processes that die in the middle of it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import pytest

from kernelc.toolchain import build_many, cache, compiler
from kernelc.toolchain.build import _about, _keys

WORKER = """
import ctypes, json, os, sys, time
from kernelc.toolchain import build_many
numbers, go = json.loads(sys.argv[1]), sys.argv[2]
text = 'extern "C" __attribute__((visibility("default"))) long answer() { return %d; }\\n'
print("ready", flush=True)
while go and not os.path.exists(go):
    time.sleep(0.001)
libraries = build_many({str(n): text % n for n in numbers})
assert all(ctypes.CDLL(str(libraries[str(n)])).answer() == n for n in numbers)
print("done", flush=True)
"""
TEXT = 'extern "C" __attribute__((visibility("default"))) long answer() { return %d; }\n'


def key_of(text: str) -> str:
    return _keys({"k": text}, _about(compiler(), ()))["k"]


def test_ten_processes_on_an_empty_cache_build_once(root, make_counting, process, tmp_path):
    """Each wants other kernels, in another order, all of them wanted by several; the probe runs once, too."""
    counting = make_counting()
    go = tmp_path / "go"
    chance = random.Random(2)
    workers = [process(WORKER, repr(chance.sample(range(8), k=4)), str(go)) for _ in range(10)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    go.touch()
    said = [worker.communicate(timeout=120)[0] for worker in workers]
    assert said == ["done\n"] * 10
    assert [worker.returncode for worker in workers] == [0] * 10
    assert len(counting.kernels) == len(set(counting.kernels)) <= 8
    assert counting.probes == 1
    assert list((root / "aside").iterdir()) == []


def test_threads_build_once(root, counting, answer):
    chance, wrong = random.Random(3), []

    def work(numbers):
        libraries = build_many({str(n): TEXT % n for n in numbers})
        wrong.extend(n for n in numbers if answer(libraries[str(n)]) != n)

    threads = [threading.Thread(target=work, args=(chance.sample(range(6), k=3),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(counting.kernels) == len(set(counting.kernels))


@pytest.mark.parametrize("whole_group", [True, False], ids=["with its compilers", "alone"])
def test_a_build_killed_at_any_moment_does_no_harm(root, process, answer, whole_group):
    """Alone: its compilers go on, and write to a folder that is nobody's any more."""
    chance = random.Random(4)
    stages = set()
    for turn in range(12):
        numbers = [100 * turn + i for i in range(3)]
        worker = process(WORKER, repr(numbers), "")
        assert worker.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.35))
        before = len(list((root / "kernels").glob("*")))
        (os.killpg if whole_group else os.kill)(worker.pid, signal.SIGKILL)
        worker.communicate() if whole_group else worker.wait()
        stages.add(worker.returncode)
        libraries = build_many({str(n): TEXT % n for n in numbers})
        assert [answer(libraries[str(n)]) for n in numbers] == numbers
        assert len(list((root / "kernels").glob("*"))) >= before
        if not whole_group:
            worker.stdout.close()
    assert -signal.SIGKILL in stages
    # What was killed may hold its lock a moment longer, on a busy machine: a build never waits for the locks of others.
    end = time.monotonic() + 20
    while True:
        with cache.workplace(["000"]) as folder:
            left = list((root / "aside").iterdir())
        if left == [folder] or time.monotonic() > end:
            break
        time.sleep(0.1)
    assert left == [folder]
    assert list(root.rglob("*.draft")) == []


def test_the_next_build_removes_what_killed_ones_left(root, process):
    """Whatever it builds; but nothing of a build that is under way."""
    holder = process(
        "import time\nfrom kernelc.toolchain import cache\n"
        "with cache.workplace(['333']) as folder:\n    print(folder, flush=True)\n    time.sleep(600)\n"
    )
    try:
        busy = holder.stdout.readline().strip()
        for stripe in ("000", "222", "fff", "probe"):
            (root / "aside" / f"{stripe}-left").mkdir()
            (root / "aside" / f"{stripe}-left" / "kernel.so").touch()
        (root / "aside" / "somebody's notes").mkdir()
        with cache.workplace(["000"]) as folder:
            left = {p.name for p in (root / "aside").iterdir()}
            assert left == {folder.name, os.path.basename(busy), "somebody's notes"}
    finally:
        holder.kill()
        holder.communicate()
    with cache.workplace(["000"]) as folder:
        assert {p.name for p in (root / "aside").iterdir()} == {folder.name, "somebody's notes"}


def test_the_lock_of_a_dead_process_does_not_block(root, process, answer):
    stripe = key_of(TEXT % 1)[:3]
    holder = process(
        "import time\nfrom kernelc.toolchain import cache\n"
        f"with cache.workplace(['{stripe}']):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    assert holder.stdout.readline() == "held\n"
    # Whoever builds something else does not wait.
    other = next(n for n in range(2, 100) if key_of(TEXT % n)[0] == stripe[0] and key_of(TEXT % n)[:3] != stripe)
    assert answer(build_many({"other": TEXT % other})["other"]) == other
    built = []
    waiting = threading.Thread(target=lambda: built.append(build_many({"k": TEXT % 1})["k"]))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive(), "the lock was not honoured"
    holder.kill()
    waiting.join(20)
    holder.communicate()
    assert answer(built[0]) == 1


def test_a_forked_child_does_not_keep_the_lock(root, process, answer):
    """The parent dies while it holds the lock, its child lives on."""
    holder = process(
        "import os, time\nfrom kernelc.toolchain import cache\n"
        f"with cache.workplace(['{key_of(TEXT % 1)[:3]}']):\n    child = os.fork()\n    if child:\n"
        "        print(child, flush=True)\n        os._exit(0)\n    time.sleep(600)\n"
    )
    child = int(holder.stdout.readline())
    try:
        built = []
        waiting = threading.Thread(target=lambda: built.append(build_many({"k": TEXT % 1})["k"]), daemon=True)
        waiting.start()
        waiting.join(20)
        assert built and answer(built[0]) == 1
    finally:
        os.kill(child, signal.SIGKILL)
        holder.communicate()
