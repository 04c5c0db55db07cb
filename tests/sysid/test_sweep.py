"""Sweeps: the same numbers by every backend, and nothing lost by a kill."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from functools import partial
from operator import truediv

import numpy as np
import pytest
from small_scenes import pendulum_problem

from nablasim import sysid


@pytest.fixture(scope="module")
def problems():
    return [pendulum_problem(0.01, seed, frames=20) for seed in range(3)]


@pytest.fixture(scope="module")
def alone(problems):
    return sysid.sweep(problems, backend="serial", starts=1)


def same(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert a["values"] == b["values"]


def test_results_are_those_of_a_fit_in_the_order_of_the_items(problems, alone):
    for problem, result in zip(problems, alone):
        fit = problem.fit(starts=1)
        assert result["values"] == {e.name: e.value for e in fit.estimates} and result["loss"] == fit.loss
    assert len({r["values"]["length"] for r in alone}) == 3


def test_loky_gives_the_same_numbers(problems, alone):
    same(sysid.sweep(problems, backend="loky", workers=2, starts=1), alone)


def test_dask_gives_the_same_numbers(problems, alone):
    distributed = pytest.importorskip("distributed")
    with pytest.raises(RuntimeError, match="a cluster that exists"):
        sysid.sweep(problems, backend="dask", starts=1)
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        same(sysid.sweep(problems, backend="dask", address=client, starts=1), alone)
        same(sysid.sweep(problems[:1], backend="dask", address=cluster.scheduler_address, starts=1), alone[:1])
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        only_the_deadly_one_fails("dask")


def test_ray_gives_the_same_numbers(problems, alone):
    ray = pytest.importorskip("ray")
    with pytest.raises(RuntimeError, match="a cluster that exists"):
        sysid.sweep(problems, backend="ray", starts=1)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        same(sysid.sweep(problems, backend="ray", starts=1), alone)
        only_the_deadly_one_fails("ray")
    finally:
        ray.shutdown()


def only_the_deadly_one_fails(backend, **settings):
    def run(k):
        """As if there were too little memory for item 1. Workers of a cluster cannot import this file."""
        if k == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return 10 * k

    with pytest.raises(sysid.SweepFailed, match="1 of 4 items failed; item 1: its worker died") as failed:
        sysid.sweep(range(4), run, backend=backend, **settings)
    assert failed.value.results == [0, None, 20, 30] and list(failed.value.errors) == [1]
    return failed.value


def test_a_dead_worker_fails_its_own_item():
    failed = only_the_deadly_one_fails("loky", workers=2)
    assert "SIGKILL" in failed.errors[1] and "memory" in failed.errors[1]


def test_a_worker_that_dies_once_is_replaced(tmp_path):
    def run(k):
        if k == 1 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os._exit(3)
        return k

    assert sysid.sweep(range(3), run, backend="loky", workers=1) == [0, 1, 2]
    assert (tmp_path / "died").exists()


def test_what_cannot_be_sent_fails_its_own_item():
    with pytest.raises(sysid.SweepFailed, match="1 of 2 items failed; item 1") as failed:
        sysid.sweep([1, 2], lambda k: k if k == 1 else threading.Lock(), backend="loky", workers=1)
    assert failed.value.results == [1, None]


def test_one_that_fails_does_not_stop_the_others(tmp_path):
    divide = partial(truediv, 1.0)
    with pytest.raises(sysid.SweepFailed, match=r"1 of 3 items failed; item 1: ZeroDivisionError") as failed:
        sysid.sweep([1.0, 0.0, 4.0], divide, backend="serial", folder=tmp_path)
    assert failed.value.results == [1.0, None, 0.25] and list(failed.value.errors) == [1]
    assert len(list(tmp_path.glob("*.pickle"))) == 2


def kept(folder, items, function=None, **named):
    return sysid.sweep(items, function, backend="serial", folder=folder, **named)


def test_a_folder_belongs_to_one_sweep(tmp_path):
    divide = partial(truediv, 1.0)
    assert kept(tmp_path, [1.0, 2.0], divide) == [1.0, 0.5]
    with pytest.raises(ValueError, match="other items: number 1"):
        kept(tmp_path, [1.0, 3.0], divide)
    with pytest.raises(ValueError, match="other items: 2 instead of 3"):
        kept(tmp_path, [1.0, 2.0, 3.0], divide)
    with pytest.raises(ValueError, match="another function"):
        kept(tmp_path, [1.0, 2.0], partial(truediv, 2.0))
    (tmp_path / "sweep").write_text("0" * 64)
    with pytest.raises(ValueError, match="not the mark of a sweep of this version"):
        kept(tmp_path, [1.0, 2.0], divide)
    (tmp_path / "sweep").unlink()
    with pytest.raises(ValueError, match="something else"):
        kept(tmp_path, [1.0, 2.0], divide)


def test_options_of_a_fit_tell_sweeps_apart(tmp_path, problems, alone):
    same(kept(tmp_path, problems[:1], starts=1), alone[:1])
    with pytest.raises(ValueError, match="other options"):
        kept(tmp_path, problems[:1], starts=2)


def test_a_key_stands_for_what_cannot_be_compared(tmp_path):
    lock = threading.Lock()

    def run(k):
        with lock:
            return k

    with pytest.raises(TypeError, match=r"the function.* is a _thread.lock.*sweep\(…, key=") as refused:
        kept(tmp_path / "a", [1, 2], run)
    assert "0x" not in str(refused.value) and not (tmp_path / "a").exists()
    assert kept(tmp_path / "a", [1, 2], run, key="one") == [1, 2]
    assert kept(tmp_path / "a", [1, 2], str, key="one") == [1, 2]
    with pytest.raises(ValueError, match="another key"):
        kept(tmp_path / "a", [1, 2], run, key="two")


def test_a_damaged_result_is_computed_again(tmp_path):
    assert kept(tmp_path, range(5), divmod_7) == [divmod(k, 7) for k in range(5)]
    files = sorted(tmp_path.glob("*.pickle"))
    whole = files[1].read_bytes()
    files[0].write_bytes(whole[:-50])
    files[1].write_bytes(whole[:4] + bytes([whole[4] ^ 1]) + whole[5:])
    files[2].write_bytes(b"")
    files[3].write_bytes(files[4].read_bytes())  # whole, but of another item
    before = files[4].stat().st_mtime_ns
    with pytest.warns(UserWarning, match=r"cut off or was changed .*: item \d is computed again") as said:
        assert kept(tmp_path, range(5), divmod_7) == [divmod(k, 7) for k in range(5)]
    assert len(said) == 4 and files[4].stat().st_mtime_ns == before
    assert files[1].read_bytes() == whole


def divmod_7(k):
    return divmod(k, 7)


class Bomb:
    """What somebody could leave in a folder that he may write into."""

    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_results_of_others_are_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "kept"
    kept(folder, [1, 2], divmod_7)
    assert folder.stat().st_mode & 0o077 == 0
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="chmod go-w"):
        kept(folder, [1, 2], divmod_7)
    folder.chmod(0o755)
    file = sorted(folder.glob("*.pickle"))[0]
    file.chmod(0o666)
    with pytest.raises(PermissionError, match="chmod go-w"):
        kept(folder, [1, 2], divmod_7)
    file.chmod(0o644)
    file.write_bytes(pickle.dumps(Bomb()))
    with pytest.warns(UserWarning, match="was changed"):
        kept(folder, [1, 2], divmod_7)
    assert not (tmp_path / "exploded").exists()
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(PermissionError, match="belongs to user"):
        kept(folder, [1, 2], divmod_7)


def test_what_cannot_be_is_refused(problems):
    with pytest.raises(ValueError, match="loky"):
        sysid.sweep(problems, backend="slurm")
    with pytest.raises(TypeError, match="starts"):
        sysid.sweep([1.0], float, backend="serial", starts=3)


SWEEP = """
import sys, time
from pathlib import Path
from nablasim import sysid

def work(k):
    with open(sys.argv[1] + "/log", "a") as log:
        log.write(f"{k}\\n")
    time.sleep(0.15)
    return k * k

folder = sys.argv[1] + "/kept"
print(sysid.sweep(range(12), lambda k: work(k), workers=2, folder=folder, backend="loky"))
"""


def test_a_killed_sweep_goes_on_and_loses_nothing(tmp_path):
    command = [sys.executable, "-c", SWEEP.replace("sys.argv[1]", repr(str(tmp_path)))]
    running = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("kept/*.pickle"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = sorted(int(f.stem) for f in tmp_path.glob("kept/*.pickle"))
    assert 3 <= len(kept) < 12
    before = (tmp_path / "log").read_text().split()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([k * k for k in range(12)])
    again = (tmp_path / "log").read_text().split()[len(before) :]
    assert not set(again) & {str(k) for k in kept}, "a finished item ran again"
    assert np.unique([int(k) for k in again]).size == 12 - len(kept)


SHARED = """
import os, time
from nablasim import sysid

def work(k):
    with open(FOLDER + "/log", "a") as log:
        log.write(f"{k} {os.getpid()}\\n")
    while not os.path.exists(FOLDER + "/go"):
        time.sleep(0.01)
    time.sleep(0.05)
    return k * k

print(sysid.sweep(range(12), work, folder=FOLDER + "/kept", backend="serial"))
"""


def log_of(tmp_path):
    return [line.split() for line in (tmp_path / "log").read_text().splitlines()] if (tmp_path / "log").exists() else []


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_sweeps_share_the_work_and_take_over_from_the_dead(tmp_path):
    command = [sys.executable, "-c", SHARED.replace("FOLDER", repr(str(tmp_path)))]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    wait_for(lambda: len(log_of(tmp_path)) == 3)  # All three hold an item, and wait.
    victim = running.pop()
    victim.kill()
    victim.wait()
    victim.stdout.close()
    (tmp_path / "go").touch()
    for process in running:
        assert process.communicate(timeout=60)[0].strip() == str([k * k for k in range(12)])
    log = log_of(tmp_path)
    again = [k for k, pid in log if pid == str(victim.pid)]
    ran = [k for k, pid in log if pid != str(victim.pid)]
    assert len(again) == 1 and again[0] in ran
    assert sorted(map(int, ran)) == list(range(12)), "an item ran twice"
    assert len({pid for _, pid in log}) == 3


class Knot:
    """Something large that holds itself, as models and their tapes do."""

    def __init__(self):
        self.me = self


def test_an_item_leaves_no_memory_behind():
    made = []

    def run(item):
        assert all(knot() is None for knot in made)
        made.append(weakref.ref(Knot()))
        return item

    gc.disable()
    try:
        assert sysid.sweep([1, 2, 3], run, backend="serial", progress=False) == [1, 2, 3]
    finally:
        gc.enable()
    assert len(made) == 3
