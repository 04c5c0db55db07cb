"""Random tapes: launches, clearings and copies on a few buffers that are used again and again, through views as well.

The kernels are compiled once; what is tested is which version of which memory the reverse sweep reads.
"""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import kernelc as kc
from kernelc.runtime.compile import prebuild
from kernelc.runtime.curvature import Curve

SIZE, BUFFERS = 4, 4
VIEWS = {"": slice(None), "[1:]": slice(1, None), "[:3]": slice(0, 3), "[::2]": slice(0, None, 2),
         "[1::2]": slice(1, None, 2)}  # fmt: skip
kernel = kc.kernel(lanes=0)


@kernel
def wave(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.sin(2.0 * x[i])


@kernel
def times(x: kc.Array[float], y: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.sin(x[i]) * y[i]


@kernel
def add_to(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] += kc.sin(x[i] * x[i])


@kernel
def in_place(x: kc.Array[float]):
    i = kc.tid()
    for k in range(3):
        x[i] = kc.sin(x[i]) * (1.0 + 0.1 * float(k))


@kernel
def gather(x: kc.Array[float], at: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.sin(x[at[i] % x.shape[0]]) + 0.5 * x[i]


@kernel
def scatter(x: kc.Array[float], at: kc.Array[int], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, at[i] % out.shape[0], kc.sin(x[i]))


@kernel
def turn(at: kc.Array[int]):
    i = kc.tid()
    at[i] = (at[i] * 3 + 1) % 4


@kernel
def lowest(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_min(out, 0, kc.sin(3.0 * x[i]))


@kernel
def part(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    if x[i] > 0.1:
        out[i] = x[i] * x[i]


@kernel
def use_lowest(low: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = out[i] * kc.sin(low[0]) + low[1]


KERNELS = {"wave": (wave, "ro"), "times": (times, "rro"), "add_to": (add_to, "ro"), "in_place": (in_place, "o"),
           "gather": (gather, "rio"), "scatter": (scatter, "rio"), "turn": (turn, "i"), "lowest": (lowest, "rm"),
           "use_lowest": (use_lowest, "mo"), "part": (part, "ro"), "zero": (None, "o"), "assign": (None, "ro"),
           "constant": (None, "o")}  # fmt: skip
"""What a step may be: r an array that is read, o one that is written, m that of minima, i the indices."""
NAMES = "abcdeI"


@st.composite
def steps(draw):
    """One step: its name, and buffers with views; what is written is no other argument."""
    name = draw(st.sampled_from(list(KERNELS)))
    written = draw(st.integers(0, BUFFERS - 1))
    operands = []
    for kind in KERNELS[name][1]:
        if kind in "mi":
            operands.append((BUFFERS if kind == "m" else BUFFERS + 1, ""))
            continue
        others = [b for b in range(BUFFERS) if b != written]
        view = draw(st.sampled_from(list(VIEWS)))
        operands.append((written if kind == "o" else draw(st.sampled_from(others)), view))
    return name, tuple(operands)


class Program:
    """Steps on buffers a to d, on e for minima, and on the indices I. `dense`: no buffer and no view has gaps."""

    def __init__(self, steps, leaves, seed, dense):
        self.steps, self.leaves, self.seed, self.dense = steps, leaves, seed, dense
        random = np.random.default_rng(seed)
        shape = (BUFFERS + 1, SIZE)
        self.start = random.uniform(-1.5, 1.5, shape)
        self.direction = random.uniform(-1, 1, shape) * np.array([[b in leaves] for b in range(BUFFERS + 1)])
        self.weights = random.uniform(0.5, 1.5, shape)

    def __repr__(self):
        lines = [f"{n}({', '.join(NAMES[b] + v for b, v in operands)})" for n, operands in self.steps]
        kind = "dense" if self.dense else "strided"
        return f"{'; '.join(lines)}   with gradients by {[NAMES[b] for b in self.leaves]}, {kind}, seed {self.seed}"

    def buffer(self, b, content):
        if self.dense or b == BUFFERS:
            return kc.array(content.copy(), requires_grad=b in self.leaves)
        return kc.array(np.repeat(content, 2), requires_grad=b in self.leaves)[::2]

    def arrays(self, step=0.0):
        start = self.start + step * self.direction
        return [*(self.buffer(b, start[b]) for b in range(BUFFERS + 1)), kc.array(np.array([2, 0, 3, 1], np.int32))]

    def view(self, array, view):
        gaps = "::" in view
        return array if view == "" or (gaps and self.dense) else array[VIEWS[view]]

    def run(self, arrays, device="cpu", some=slice(None)):
        for name, operands in self.steps[some]:
            views = [self.view(arrays[b], v) for b, v in operands]
            kernel, _ = KERNELS[name]
            if kernel is not None:
                kc.launch(kernel, min(map(len, views)), views, device=device)
            elif name == "zero":
                views[0].zero_()
            elif name == "constant":
                views[0].assign(np.full(len(views[0]), 0.3))
            elif len(views[0]) == len(views[1]):
                views[1].assign(views[0])

    def record(self, device="cpu"):
        arrays = self.arrays()
        with kc.Tape() as tape:
            self.run(arrays, device)
        return arrays, tape

    def carried(self, arrays, tape):
        return [b for b in range(BUFFERS + 1) if arrays[b]._storage in tape._versions and tape._carries(arrays[b])]

    def backward(self, arrays, tape):
        """The gradients of Σ weights·buffers. Only buffers that carry one are asked for; other leaves are their own."""
        carried = self.carried(arrays, tape)
        if carried:
            tape.backward(grads={arrays[b]: self.weights[b] for b in carried})
        found = np.zeros_like(self.start)
        for b in self.leaves:
            found[b] = arrays[b].grad.numpy() if b in carried else self.weights[b]
        return found

    def gradient(self, step):
        """What `backward` gives where the leaves are moved by a step."""
        arrays = self.arrays(step)
        with kc.Tape() as tape:
            self.run(arrays)
        return self.backward(arrays, tape)

    def loss(self, step):
        arrays = self.arrays(step)
        self.run(arrays)
        return sum(float(w @ a.numpy()) for w, a in zip(self.weights, arrays))


def contents(arrays):
    return np.concatenate([a.numpy() for a in arrays])


leaves = st.lists(st.integers(0, BUFFERS), min_size=1, unique=True).map(sorted)
programs = st.builds(Program, st.lists(steps(), min_size=1, max_size=12), leaves, st.integers(0, 50), st.booleans())
many = settings(max_examples=5 * settings.default.max_examples)


@pytest.fixture(scope="module", autouse=True)
def built():
    """All that can come: every kernel dense and strided, with every set of arguments that carry gradients."""
    jobs = []
    for kernel, kinds in KERNELS.values():
        if kernel is None:
            continue
        plan, _ = kernel.plan([kc.array(np.zeros(SIZE, np.int32 if k == "i" else np.float64)) for k in kinds])
        reals = [i for i, k in enumerate(kinds) if k != "i"]
        always = {i for i, k in enumerate(kinds) if k in "mi"}
        for dense in (frozenset(range(len(kinds))), frozenset(always)):
            jobs.append((plan.variant, "forward", frozenset(), dense))
            for n in range(1, len(reals) + 1):
                for which in ("adjoint", "tangent4"):
                    jobs += [(plan.variant, which, frozenset(s), dense) for s in itertools.combinations(reals, n)]
    prebuild(jobs)


@many
@given(programs)
def test_the_gradient_is_that_of_differences(program):
    arrays, tape = program.record()
    adjoint = float((program.backward(arrays, tape) * program.direction).sum())
    slopes = [(program.loss(h) - program.loss(-h)) / (2 * h) for h in (1e-5, 1e-6)]
    if abs(slopes[0] - slopes[1]) < 1e-6 * max(1.0, abs(slopes[0])):
        assert adjoint == pytest.approx(slopes[0], rel=1e-6, abs=1e-6)


@many
@given(programs)
def test_tangents_are_the_transpose(program):
    arrays, tape = program.record()
    before, on_tape = contents(arrays), [b for b in program.leaves if arrays[b]._storage in tape._versions]
    carried = program.carried(arrays, tape)
    if not on_tape or not carried:
        return
    random = np.random.default_rng(program.seed)
    given = {b: random.uniform(-1, 1, (2, SIZE)) for b in on_tape}
    found = tape.jvp({arrays[b]: d for b, d in given.items()}, [arrays[b] for b in carried])
    assert contents(arrays).tobytes() == before.tobytes()
    gradients = program.backward(arrays, tape)
    for k in range(2):
        pushed = [program.weights[b] * found[arrays[b]].numpy()[k] for b in carried]
        pulled = [gradients[b] * given[b][k] for b in on_tape if b in carried]
        size = max(1e-3, *(np.abs(t).sum() for t in pushed + pulled))
        assert abs(np.sum(pushed) - np.sum(pulled)) <= 1e-12 * size


def bent(program, arrays, tape, direction, carried, on_tape):
    """The change of the gradients of Σ weights·buffers along a direction of the leaves."""
    curve = Curve(tape, {arrays[b]: program.weights[b] for b in carried}, [arrays[b] for b in on_tape], 1)
    curve.give({arrays[b]: direction[b][None] for b in on_tape})
    tape._report(curve.program.run(), curve.codes)
    return {b: curve.take(arrays[b])[0].copy() for b in on_tape}


@many
@given(programs)
def test_the_hessian_is_symmetric_and_the_slope_of_the_gradient(program):
    arrays, tape = program.record()
    on_tape = [b for b in program.leaves if arrays[b]._storage in tape._versions and tape._carries(arrays[b])]
    carried = program.carried(arrays, tape)
    if not on_tape:
        return
    other = np.random.default_rng(program.seed + 1).uniform(-1, 1, program.direction.shape)
    along, across = (bent(program, arrays, tape, d, carried, on_tape) for d in (program.direction, other))
    left, right = (
        [d[b] * h[b] for b in on_tape] for d, h in ((other, along), (program.direction, across))
    )  # fmt: skip
    size = max(1e-3, np.abs(left).sum(), np.abs(right).sum())
    assert abs(np.sum(left) - np.sum(right)) <= 1e-12 * size
    slopes = []
    for h in (1e-5, 5e-6):
        ends = [program.gradient(step) for step in (h, -h)]
        slopes.append((ends[0] - ends[1]) / (2 * h))
    clear = max(1.0, np.abs(slopes[0]).max())
    if np.abs(slopes[0] - slopes[1]).max() < 1e-6 * clear:
        for b in on_tape:
            np.testing.assert_allclose(along[b], slopes[1][b], rtol=0, atol=1e-5 * clear)


@given(programs)
def test_the_interpreter_goes_the_same_way(program):
    results, gradients = [], []
    for device in ("cpu", "python"):
        arrays, tape = program.record(device)
        results.append(contents(arrays))
        gradients.append(program.backward(arrays, tape))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-10, atol=1e-12)


@many
@given(programs)
def test_a_replay_is_the_program_run_again(program):
    arrays, tape = program.record()
    results = contents(arrays)
    first = program.backward(arrays, tape)
    for a, start in zip(arrays, program.arrays()):
        a.assign(start)
    tape.replay()
    assert contents(arrays).tobytes() == results.tobytes()
    tape.zero()
    assert program.backward(arrays, tape).tobytes() == first.tobytes()


@many
@given(programs)
def test_gradients_accumulate(program):
    arrays, tape = program.record()
    once = program.backward(arrays, tape)
    twice = program.backward(arrays, tape)
    own = [b for b in program.leaves if b not in program.carried(arrays, tape)]
    twice[own] *= 2
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-12, atol=1e-14)


@many
@given(programs, st.integers(0, 12), st.sampled_from(["backward", "replay", "both"]))
def test_a_tape_goes_on_where_it_stopped(program, cut, between):
    """In two pieces, whatever was asked of the first one in between."""
    arrays, tape = program.record()
    results, whole = contents(arrays), program.backward(arrays, tape)
    arrays, tape = program.arrays(), kc.Tape()
    with tape:
        program.run(arrays, some=slice(cut))
    if between in ("backward", "both"):
        program.backward(arrays, tape)
    if between in ("replay", "both"):
        for a, start in zip(arrays, program.arrays()):
            a.assign(start)
        tape.replay()
        program.backward(arrays, tape)
    with tape:
        program.run(arrays, some=slice(cut, None))
    assert contents(arrays).tobytes() == results.tobytes()
    tape.zero()
    for b in program.leaves:
        arrays[b].grad.numpy()[...] = 0
    np.testing.assert_allclose(program.backward(arrays, tape), whole, rtol=1e-12, atol=1e-14)
