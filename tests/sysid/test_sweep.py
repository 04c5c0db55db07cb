"""Sweeps: the same numbers by every backend, and nothing lost by a kill."""

import gc
import os
import signal
import subprocess
import sys
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


def test_ray_gives_the_same_numbers(problems, alone):
    ray = pytest.importorskip("ray")
    with pytest.raises(RuntimeError, match="a cluster that exists"):
        sysid.sweep(problems, backend="ray", starts=1)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        same(sysid.sweep(problems, backend="ray", starts=1), alone)
    finally:
        ray.shutdown()


def test_one_that_fails_does_not_stop_the_others(tmp_path):
    divide = partial(truediv, 1.0)
    with pytest.raises(sysid.SweepFailed, match=r"1 of 3 items failed; item 1: ZeroDivisionError") as failed:
        sysid.sweep([1.0, 0.0, 4.0], divide, backend="serial", folder=tmp_path)
    assert failed.value.results == [1.0, None, 0.25] and list(failed.value.errors) == [1]
    assert len(list(tmp_path.glob("*.pickle"))) == 2


def test_a_folder_belongs_to_one_sweep(tmp_path):
    divide = partial(truediv, 1.0)
    assert sysid.sweep([1.0, 2.0], divide, backend="serial", folder=tmp_path) == [1.0, 0.5]
    with pytest.raises(ValueError, match="other items"):
        sysid.sweep([1.0, 3.0], divide, backend="serial", folder=tmp_path)
    (tmp_path / "sweep").unlink()
    with pytest.raises(ValueError, match="something else"):
        sysid.sweep([1.0, 2.0], divide, backend="serial", folder=tmp_path)


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
