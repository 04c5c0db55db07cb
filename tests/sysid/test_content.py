"""Digests of content: equal things alike in every process, different ones apart, and a refusal for what has none."""

import json
import subprocess
import sys
import textwrap
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from small_scenes import beam, beam_problem, pendulum_problem, silhouette

from nablasim import render, sysid
from nablasim.sysid.sweep.content import NoContent, digest


class Thing:
    """Named by its address where it is printed."""

    def __init__(self, **values):
        vars(self).update(values)


@dataclass(frozen=True)
class Setting:
    name: str
    weights: np.ndarray = field(default_factory=lambda: np.arange(3.0))


LONG = np.arange(5000.0)
CHANGED = LONG.copy()
CHANGED[2500] += 1e-9


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LONG, CHANGED),
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(4, np.float32), np.zeros(4, np.int32)),
        (torch.zeros(3), torch.zeros(3, dtype=torch.int32)),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-6])),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0, 2.0], mask=[0, 0])),
        (Thing(a=LONG), Thing(a=CHANGED)),
        (Setting("a"), Setting("b")),
        (Setting("a", LONG), Setting("a", CHANGED)),
        ({"a": [1]}, {"a": [2]}),
        ({1, 2, 3}, {1, 2, 4}),
        (1, 1.0),
        (True, 1),
        (0.0, -0.0),
        (["ab", "c"], ["a", "bc"]),
        (partial(max, 1), partial(max, 2)),
        (partial(max, 1), partial(min, 1)),
        (Thing(a=1).__init__, Thing(a=2).__init__),
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x, y=1: x, lambda x, y=2: x),
        (Path("a"), Path("b")),
        (np.random.default_rng(1), np.random.default_rng(2)),
    ],
)
def test_different_things_are_apart(one, other):
    assert digest(one) != digest(other)
    assert digest(one) == digest(one)


def test_equal_things_are_alike_whoever_holds_them():
    shared = [1.0, 2.0]
    assert digest([shared, shared]) == digest([[1.0, 2.0], [1.0, 2.0]])
    assert digest(Thing(a=np.arange(6).reshape(2, 3)[:, ::2])) == digest(Thing(a=np.array([[0, 2], [3, 5]])))
    assert digest(object()) == digest(object())
    circle = [1]
    circle.append(circle)
    assert digest(circle) == digest(circle) != digest([1, [1]])


def test_a_file_counts_by_its_bytes(tmp_path):
    file = tmp_path / "video.bin"
    file.write_bytes(b"one")
    first = digest(Thing(path=file))
    file.write_bytes(b"two")
    assert digest(Thing(path=file)) != first
    file.write_bytes(b"one")
    assert digest(Thing(path=file)) == first


def test_a_closure_counts_by_what_it_holds():
    def made(k):
        return lambda x: x + k

    assert digest(made(1)) == digest(made(1)) != digest(made(2))


def test_tensors_count_by_their_numbers_when_torch_comes_later():
    code = """
        import sys
        from nablasim.sysid.sweep.content import NoContent, digest
        assert "torch" not in sys.modules, "this test needs a module that does not import torch itself"
        import torch
        half = torch.arange(4.0)[::2]
        assert digest(half) == digest(half.clone())
        try:
            digest(torch.eye(3).to_sparse())
        except NoContent:
            print("refused")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n", done.stderr


@pytest.mark.parametrize("what", [threading.Lock(), (k for k in range(3)), sys.stdout, torch.eye(3).to_sparse()])
def test_what_has_no_content_is_refused_by_its_place(what):
    with pytest.raises(NoContent, match=r"item 3.*\['camera'\]") as refused:
        digest([{"camera": what}], "item 3")
    assert "0x" not in str(refused.value)


def module(folder, name, text):
    (folder / f"{name}.py").write_text(textwrap.dedent(text))


def in_a_process(folder, statement, seed="1"):
    """The digests that a fresh process finds."""
    code = f"import sys, json; sys.path.insert(0, {str(folder)!r})\nfrom nablasim.sysid.sweep.content import digest\n"
    command = [sys.executable, "-c", code + statement]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed})
    return json.loads(done.stdout)


WORK = """
    import helper
    SCALE = {scale}
    UNUSED = {unused}
    def step(x):
        return x * SCALE + helper.offset(x)
    class Item:
        words = frozenset(["a", "b", "c"])
        def run(self):
            return step(1.0)
    def function(item):
        return item.run() + step(2.0)
"""
HELPER = """
    import threading
    LOCK = threading.Lock()
    def offset(x):
        return x + {offset}
    def other(x):
        return {other}
"""


def test_functions_count_by_their_code_and_what_it_reads(tmp_path):
    def found(seed="1", comment="", scale=2, unused=1, offset=1, other=1):
        module(tmp_path, "work", comment + textwrap.dedent(WORK.format(scale=scale, unused=unused)))
        module(tmp_path, "helper", HELPER.format(offset=offset, other=other))
        return in_a_process(
            tmp_path, "import work; print(json.dumps([digest(work.function), digest(work.Item())]))", seed
        )

    first = found()
    assert found(seed="2", comment="# moved\n\n", unused=2, other=2) == first
    for change in ({"scale": 3}, {"offset": 2}):
        function, item = found(**change)
        assert function != first[0] and item != first[1]


def test_problems_are_told_apart_by_all_that_they_are_made_of():
    video = beam_problem().target
    first = digest(beam_problem(video))
    assert digest(beam_problem(video)) == first
    used = beam_problem(video)
    used.misfits(np.full((2, 2), 9.0))  # makes copies of the model, and compiles
    assert digest(used) == first
    camera = render.Camera.look_at(eye=(0.5, 0.3, 2.6), target=(0.5, -0.1, 0), fov=45)
    params = used.space.params
    others = [
        beam_problem(video, observe=render.Silhouette(camera, sigma_pixels=0.5)),
        beam_problem(video, observe=render.Silhouette(silhouette().camera, sigma_pixels=0.6)),
        beam_problem(video, substeps=2),
        beam_problem(video, params=[replace(params[0], start=2e3), params[1]]),
        beam_problem(sysid.Video(video.frames * 0.999, video.times)),
        sysid.Problem(beam().replace({"beam.density": 101.0}), target=video, observe=silhouette(), dt=1 / 480,
                      params=params),
        sysid.Problem(beam(False), target=video, observe=silhouette(), dt=1 / 480, params=params),
    ]  # fmt: skip
    found = [digest(problem) for problem in others]
    assert len({first, *found}) == len(others) + 1
    assert digest(pendulum_problem(0.01, 1)) == digest(pendulum_problem(0.01, 1)) != digest(pendulum_problem(0.01, 2))
