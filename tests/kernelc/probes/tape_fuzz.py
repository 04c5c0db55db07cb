"""Random tapes: launches, views, writes from Python, recorded operations and checkpoints, against NumPy with Jacobians.

The state is a set of arrays of N reals, of which the first two are leaves, two indices and two sums. A program is a
list of steps; each step knows how to act on kernelc arrays and on the reference, where an array is a pair of its values
and the derivatives of these by the leaves as they were when the program began.
"""

import random

import numpy as np

import kernelc as kc

N, ARRAYS, LEAVES = 4, 5, 2


@kc.kernel
def multiply(a: kc.Array[float], b: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = a[i] * b[i] + 0.1


@kc.kernel
def sine(a: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.sin(a[i])


@kc.kernel
def in_place(a: kc.Array[float], b: kc.Array[float]):
    i = kc.tid()
    a[i] = a[i] * a[i] * 0.3 + b[i]


@kc.kernel
def accumulate(a: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[i] += a[i] * a[i] * 0.5


@kc.kernel
def total(a: kc.Array[float], s: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(s, 0, a[i] * a[i])


@kc.kernel
def lowest(a: kc.Array[float], s: kc.Array[float]):
    i = kc.tid()
    kc.atomic_min(s, 1, a[i])


@kc.kernel
def scale(a: kc.Array[float], k: float, out: kc.Array[float]):
    i = kc.tid()
    out[i] = kc.sin(a[i] * k)


@kc.kernel
def permute(index: kc.Array[int], a: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    out[index[i]] = a[i] * 0.9


@kc.kernel
def turn(index: kc.Array[int]):
    i = kc.tid()
    index[i] = (index[i] + 1) % index.shape[0]


@kc.kernel
def partial(a: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    if a[i] > 0.2:
        out[i] = a[i] * 2.0


class Pair:
    """Values, and their derivatives by all leaves in the last axis."""

    def __init__(self, v, d):
        self.v, self.d = v, d

    def __getitem__(self, key):
        return Pair(self.v[key], self.d[key])

    def put(self, v, d):
        self.v[...], self.d[...] = v, d


VIEWS = [
    slice(None),
    slice(None),
    slice(None, None, -1),
    slice(0, 2),
    slice(2, 4),
    slice(None, None, 2),
    slice(1, None, 2),
    slice(1, 3),
]


class Tapes:
    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.start = np.array([[r.uniform(-1, 1) for _ in range(N)] for _ in range(ARRAYS)])
        self.permutation = r.sample(range(N), N)
        self.steps = [self.step() for _ in range(r.randrange(3, 12))]
        self.weights = np.array([[r.uniform(-1, 1) for _ in range(N)] for _ in range(ARRAYS)])
        self.sum_weights = np.array([r.uniform(-1, 1) for _ in range(2)])

    def views(self, count):
        """Views of one length, of different arrays."""
        length = self.r.choice([2, 4])
        keys = [k for k in VIEWS if len(range(N)[k]) == length]
        return [(a, self.r.choice(keys)) for a in self.r.sample(range(ARRAYS), count)], length

    def step(self):
        kind = self.r.choice(
            [
                "multiply",
                "sine",
                "in_place",
                "accumulate",
                "total",
                "lowest",
                "scale",
                "permute",
                "turn",
                "partial",
                "zero",
                "assign",
                "fill",
                "record",
                "checkpoint",
                "reset",
            ]
        )
        count = {"multiply": 3, "total": 1, "lowest": 1, "turn": 0, "zero": 1, "fill": 1, "reset": 0}.get(kind, 2)
        views, length = self.views(count)
        if kind in ("permute", "checkpoint"):
            views, length = [(a, slice(None)) for a, _ in views], N
        return kind, views, length, self.r.randrange(1, 4)

    # -- kernelc
    def arrays(self, device):
        xs = [kc.array(self.start[k].copy(), requires_grad=k < LEAVES) for k in range(ARRAYS)]
        sums = kc.array(np.array([0.0, 5.0]))
        index = kc.array(np.array(self.permutation, np.int32))
        return xs, sums, index

    def record(self, xs, sums, index, tape, device):
        for kind, views, n, count in self.steps:
            args = [xs[a][k] if k != slice(None) else xs[a] for a, k in views]
            self.act(kind, args, sums, index, n, count, tape, device)

    def act(self, kind, args, sums, index, n, count, tape, device):
        def run(kernel, *given):
            kc.launch(kernel, n, inputs=list(given), device=device)

        if kind in ("multiply", "sine", "in_place", "accumulate", "partial"):
            run(globals()[kind], *args)
        elif kind in ("total", "lowest"):
            run(globals()[kind], *args, sums)
        elif kind == "scale":
            run(scale, args[0], sums[0:1], args[1])
        elif kind == "permute":
            run(permute, index, *args)
        elif kind == "turn":
            kc.launch(turn, N, inputs=[index], device=device)
        elif kind == "zero":
            args[0].zero_()
        elif kind == "assign":
            args[1].assign(args[0])
        elif kind == "fill":
            args[0].assign(np.full(n, 0.3))
        elif kind == "reset":
            sums.assign(np.array([0.0, 5.0]))
        elif kind == "record":
            source, target = args

            def forward():
                target.numpy()[...] = np.cos(source.numpy())

            def backward():
                if source.grad is not None and target.grad is not None:
                    source.grad.numpy()[...] -= np.sin(source.numpy()) * target.grad.numpy()

            target.zero_()  # tells the tape, which keeps what is needed of it, before NumPy writes behind its back
            forward()
            tape.record(backward, reads=[source], writes=[target], forward=forward)
        elif kind == "checkpoint":
            a, b = args
            kc.checkpoint(lambda k: kc.launch(in_place, n, inputs=[a, b], device=device), [a], count)

    # -- reference
    def reference(self, values, sums, index):
        """Run on plain numbers; returns pairs of everything at the end."""
        size = LEAVES * N
        xs = []
        for k in range(ARRAYS):
            d = np.zeros((N, size))
            if k < LEAVES:
                d[:, k * N : (k + 1) * N] = np.eye(N)
            xs.append(Pair(values[k].copy(), d))
        s, index = Pair(sums.copy(), np.zeros((2, size))), index.copy()
        for kind, views, n, count in self.steps:
            self.refer(kind, [xs[a][k] for a, k in views], s, index, count)
        return xs, s, index

    def refer(self, kind, p, s, index, count):
        if kind == "multiply":
            p[2].put(p[0].v * p[1].v + 0.1, p[0].d * p[1].v[:, None] + p[1].d * p[0].v[:, None])
        elif kind == "sine":
            p[1].put(np.sin(p[0].v), np.cos(p[0].v)[:, None] * p[0].d)
        elif kind in ("in_place", "checkpoint"):
            for _ in range(count if kind == "checkpoint" else 1):
                p[0].put(p[0].v ** 2 * 0.3 + p[1].v, 0.6 * p[0].v[:, None] * p[0].d + p[1].d)
        elif kind == "accumulate":
            p[1].put(p[1].v + 0.5 * p[0].v ** 2, p[1].d + p[0].v[:, None] * p[0].d)
        elif kind == "total":
            s[0:1].put(s.v[0] + (p[0].v ** 2).sum(), s.d[0] + 2 * p[0].v @ p[0].d)
        elif kind == "lowest":
            k = int(np.argmin(p[0].v))
            if p[0].v[k] < s.v[1]:
                s[1:2].put(p[0].v[k], p[0].d[k])
        elif kind == "scale":
            inner = p[0].v * s.v[0]
            p[1].put(np.sin(inner), np.cos(inner)[:, None] * (p[0].d * s.v[0] + p[0].v[:, None] * s.d[0]))
        elif kind == "permute":
            v, d = p[0].v.copy(), p[0].d.copy()
            for i in range(len(index)):
                p[1].v[index[i]], p[1].d[index[i]] = 0.9 * v[i], 0.9 * d[i]
        elif kind == "turn":
            index[...] = (index + 1) % N
        elif kind == "partial":
            on = p[0].v > 0.2
            p[1].put(np.where(on, 2 * p[0].v, p[1].v), np.where(on[:, None], 2 * p[0].d, p[1].d))
        elif kind == "zero":
            p[0].put(0.0, 0.0)
        elif kind == "fill":
            p[0].put(0.3, 0.0)
        elif kind == "assign":
            p[1].put(p[0].v.copy(), p[0].d.copy())
        elif kind == "reset":
            s.put([0.0, 5.0], 0.0)
        elif kind == "record":
            p[1].put(np.cos(p[0].v), -np.sin(p[0].v)[:, None] * p[0].d)

    def gradient(self, xs, s):
        """Of the weighted sum of what carries a gradient."""
        return sum(w @ x.d for w, x in zip(self.weights, xs)) + self.sum_weights @ s.d

    def seeds(self, xs, sums, tape):
        """Seeds for every array that the tape knows to carry a gradient: the others are refused as losses."""
        found = {}
        for a, w in [*zip(xs, self.weights), (sums, self.sum_weights)]:
            try:
                tape.backward(grads={a: np.zeros(len(w))})
            except (kc.CutGradient, kc.NotRecorded, kc.NotDifferentiable):
                continue
            found[a] = w
        return found

    def check(self, device):
        """Record, go back twice, change a leaf, replay, go back twice."""
        xs, sums, index = self.arrays(device)
        with kc.Tape() as tape:
            self.record(xs, sums, index, tape, device)
        self.compare(tape, xs, sums, *self.reference(self.start, np.array([0.0, 5.0]), np.array(self.permutation)))
        xs[0].assign(np.linspace(-0.9, 0.8, N))
        start, s, i = [x.numpy().copy() for x in xs], sums.numpy().copy(), index.numpy().copy()
        tape.replay()
        self.compare(tape, xs, sums, *self.reference(np.array(start), s, i))

    def compare(self, tape, xs, sums, pairs, sum_pair, _index):
        for x, p in zip([*xs, sums], [*pairs, sum_pair]):
            assert np.allclose(x.numpy(), p.v, rtol=1e-9, atol=1e-10), self.steps
        tape.zero()
        seeds = self.seeds(xs, sums, tape)
        if not seeds:
            return
        want = self.gradient(pairs, sum_pair)
        for k in range(LEAVES):
            if xs[k] not in seeds:  # a leaf that no step touched
                want[k * N : (k + 1) * N] -= self.weights[k]
        tape.zero()
        for times in (1, 2):
            tape.backward(grads=seeds)
            got = np.concatenate([xs[k].grad.numpy() for k in range(LEAVES)])
            assert np.allclose(got, times * want, rtol=1e-8, atol=1e-9), (self.steps, got, times * want)
        for x in xs[:LEAVES]:
            if x.grad is not None and x in seeds:
                x.grad.numpy()[:] = np.nan  # what was there before must not matter
        tape.backward(grads=seeds, add=False)
        for k in range(LEAVES):
            if xs[k] in seeds:
                got = xs[k].grad.numpy()
                assert np.allclose(got, want[k * N : (k + 1) * N], rtol=1e-8, atol=1e-9), (self.steps, k, got)
        for x, p in zip([*xs, sums], [*pairs, sum_pair]):
            assert np.allclose(x.numpy(), p.v, rtol=1e-9, atol=1e-10), self.steps
