"""Ctrl-C: a launch, a replay and a reverse sweep end soon after a real SIGINT, and everything works afterwards."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, threading, time
import numpy as np
import kernelc as kc

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs that ignore it
kc.config.threads = {threads}

@kc.kernel
def waits(x: kc.Array[float], n: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    s = x[i]
    k = 0
    while k < n[0]:
        s = 0.5 * s + 1.0
        k += int(s < 3.0)
        if k > 1000:
            k = 1
    y[i] = s

@kc.kernel
def sums(x: kc.Array[float], n: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    s = 0.0
    for a in range(n[0]):
        for b in range(n[0]):
            s += kc.sin(x[i] + float(a * b))
    y[0] += s

size = {size}
x = kc.array(np.full(size, 1.0), requires_grad=True)
n, y = kc.array([1]), kc.zeros(size, real=kc.float64)

def run():
    kc.launch({kernel}, size, [x, n], [y])

run()
first = y.numpy().copy()
{before}
n.assign([{long}])
seen = []
{handler}
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
version = y.version
try:
    {what}
except KeyboardInterrupt:
    took = time.monotonic() - begin
    assert took < 5.0, took  # an hour otherwise; a second where nothing else runs
else:
    raise SystemExit("not interrupted")
assert y.version > version or {reads_only}
assert x.numpy().tolist() == [1.0] * size
n.assign([1])
y.zero_()
{again}
assert y.numpy().tolist() == first.tolist()
print("fine")
"""

PLAIN = {"before": "", "what": "run()", "again": "run()", "reads_only": False, "handler": "", "long": 1 << 30}
ON_A_TAPE = "n.assign([{k}])\nwith kc.Tape() as tape:\n    run()\nn.assign([1])"
WAYS = {
    "launch": PLAIN,
    "tape": PLAIN | {"what": "with kc.Tape() as tape: run()"},
    "replay": PLAIN | {"before": ON_A_TAPE.format(k=1), "what": "tape.replay()", "again": "tape.replay()"},
    "backward": PLAIN | {
        "before": ON_A_TAPE.format(k=1), "reads_only": True, "long": 1,
        "what": "tape.replay()\n    while True: tape.backward(grads={y: np.ones(size)})",
    },
    "steps": PLAIN | {
        "before": "with kc.Tape() as tape:\n    for k in range(200): run()\nn.assign([1])", "long": 1,
        "what": "while True: tape.replay()", "again": "y.zero_(); run()",
    },
}  # fmt: skip


def passes(tmp_path, **options):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(**options))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("kernel", ["waits", "sums"])
def test_ctrl_c_ends_a_launch(kernel, size, threads, tmp_path):
    passes(tmp_path, kernel=kernel, size=size, threads=threads, **WAYS["launch"])


@pytest.mark.parametrize("way", [w for w in WAYS if w != "launch"])
def test_ctrl_c_ends_a_tape(way, tmp_path):
    passes(tmp_path, kernel="waits", size=1000, threads=2, **WAYS[way])


def test_a_handler_that_does_not_raise_lets_the_launch_go_on(tmp_path):
    """One of its own counts; the second signal raises."""
    handler = """
def count(*_):
    seen.append(1)
    if len(seen) > 1:
        raise KeyboardInterrupt
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
signal.signal(signal.SIGINT, count)
"""
    options = PLAIN | {"handler": handler, "what": "run()", "again": "assert len(seen) == 2; run()"}
    passes(tmp_path, kernel="waits", size=1000, threads=2, **options)
