"""mypy and pyright accept kernels as the docs write them, and still see what is wrong around them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import kernelc as kc


@kc.func
def spring(a: kc.float3, b: kc.float3, rest: float, k: float) -> kc.float3:
    d = b - a
    return kc.normalize(d) * (k * (kc.length(d) - rest))


@kc.struct
class Bodies:
    x: kc.Array[kc.float3]
    rot: kc.Array[kc.quat]
    mass: kc.Array[float]
    wind: kc.Array[float] | None = None


@kc.kernel
def fall(b: Bodies, dt: float, f: kc.Array[kc.float3]):
    i = kc.tid()
    f[i] = kc.quat_rotate(b.rot[i], b.x[i]) * (dt / b.mass[i])
    if b.wind is not None:
        f[i].x += b.wind[i]


@kc.kernel(block=16)
def forces(x: kc.Array[kc.float3], pairs: kc.Array[int, 2], image: kc.Array[kc.uint8, 3], f: kc.Array[kc.float3]):
    i, j = kc.tid()
    a, b = pairs[i, 0], pairs[i, 1]
    force = spring(x[a], x[b], 1.0, kc.sin(x[a].y)) + kc.float3(1.0, 2.0, 3.0)
    total = 0.0
    for k in range(pairs.shape[0]):
        total += force[0] if k % 2 == 0 else kc.randf(kc.rng(1, k))
    image[i, j, 0] = 255 - image[i, j, 0]
    kc.atomic_add(f, a, force * total)
    kc.atomic_sub(f, b, force)


bodies = Bodies(x=kc.zeros(3, kc.float3), rot=kc.zeros(3, kc.quat), mass=kc.ones(3))
with kc.Tape() as tape:
    kc.launch(fall, 3, [bodies, 0.1], [kc.zeros(3, kc.float3)])
tape.backward(grads={bodies.x: [[0.0, 0.0, 0.0]] * 3})
slopes = bodies.x.grad.numpy()
version: str = kc.__version__
"""
WRONG = KERNELS + "\nkc.lunch(fall, 3)\nBodies(y=kc.zeros(3))\nkc.zeros(3).nmpy()\n"
SOURCES = str(Path(__file__).parents[3] / "packages/kernelc/src")


def mypy(folder, text):
    (folder / "kernels.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(folder / "cache"), "kernels.py"]
    run = subprocess.run(command, cwd=folder, env={"MYPYPATH": SOURCES, "PATH": ""}, capture_output=True, text=True)
    return [line for line in run.stdout.splitlines() if "error" in line]


def pyright(folder, text):
    (folder / "kernels.py").write_text(text)
    (folder / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{SOURCES}"]}}')
    run = subprocess.run([sys.executable, "-m", "pyright", "kernels.py"], cwd=folder, capture_output=True, text=True)
    assert "error" in run.stdout, run
    return [line for line in run.stdout.splitlines() if " - error" in line]


@pytest.mark.slow
@pytest.mark.parametrize("check", [mypy, pyright])
def test_kernels_are_accepted_and_mistakes_around_them_are_found(check, tmp_path):
    pytest.importorskip(check.__name__)
    assert check(tmp_path, KERNELS) == []
    found = check(tmp_path, WRONG)
    assert len(found) >= 3
    assert any("lunch" in line for line in found) and any("nmpy" in line for line in found)


PAGES = ("language", "tutorial", "gradients", "derivatives", "neighbours", "debugging", "cuda")


@pytest.mark.nightly
@pytest.mark.parametrize("check", [mypy, pyright])
@pytest.mark.parametrize("page", PAGES)
def test_the_pages_are_accepted(check, page, tmp_path):
    pytest.importorskip(check.__name__)
    text = (Path(__file__).parents[3] / f"docs/kernelc/{page}.md").read_text(encoding="utf8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert blocks and check(tmp_path, "\n\n".join(blocks)) == []
