"""Loops that record the same launches again: nothing but the time tells that their tapes go along an earlier one."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelc as kc
from kernelc.runtime import repeats

N = 5
F = kc.Array[float]


@kc.kernel
def mix(a: F, b: F, c: float, out: F):
    i = kc.tid()
    out[i] = kc.sin(a[i]) * b[i] + c * a[i]


@kc.kernel
def grow(a: F, c: float):
    i = kc.tid()
    a[i] = a[i] * a[i] * c + 0.3


@kc.kernel
def gather(a: F, out: F):
    i = kc.tid()
    kc.atomic_add(out, (i * 3) % 5, a[i] * a[i])


@kc.kernel
def check(a: F, limit: float, out: F):
    i = kc.tid()
    assert a[i] < limit
    out[i] = 2.0 * a[i]


@pytest.fixture
def counted(monkeypatch):
    """How many tapes went along another one to the end, and how many left it."""
    count = {"along": 0, "left": 0}
    finish, give_up = repeats.Repeat.finish, repeats.Repeat.give_up

    def finished(self):
        found = finish(self)
        count["along"] += found
        return found

    def gave_up(self):
        count["left"] += 1
        give_up(self)

    monkeypatch.setattr(repeats.Repeat, "finish", finished)
    monkeypatch.setattr(repeats.Repeat, "give_up", gave_up)
    return count


def arrays(many=4):
    rng = np.random.default_rng(3)
    return [kc.array(rng.uniform(0.2, 0.8, N), requires_grad=k == 0) for k in range(many)]


STEPS = st.one_of(
    st.tuples(st.just("mix"), st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.5, 0.7]), st.integers(1, 3)),
    st.tuples(st.just("grow"), st.integers(1, 3), st.sampled_from([0.5, 0.7])),
    st.tuples(st.just("gather"), st.integers(0, 3), st.integers(1, 3)),
    st.tuples(st.just("zero"), st.integers(1, 3)),
    st.tuples(st.just("assign"), st.integers(0, 3), st.integers(1, 3)),
    st.tuples(st.just("part"), st.integers(1, 3), st.integers(1, 3)),
)


def run(step, x):
    what, *at = step
    if what == "mix" and at[3] not in at[:2]:
        kc.launch(mix, N, [x[at[0]], x[at[1]], at[2]], [x[at[3]]])
    elif what == "grow":
        kc.launch(grow, N, [x[at[0]], at[1]])
    elif what == "gather" and at[0] != at[1]:
        kc.launch(gather, N, [x[at[0]]], [x[at[1]]])
    elif what == "zero":
        x[at[0]].zero_()
    elif what == "assign" and at[0] != at[1]:
        x[at[1]].assign(x[at[0]])
    elif what == "part":
        kc.launch(grow, 2, [x[at[0]][at[1] : at[1] + 2], 0.6])


def found_in(programs, leaf_of):
    """Values and gradients after each program of a loop; after some, the tape runs again and pushes tangents."""
    x, found = arrays(), []
    for n, program in enumerate(programs):
        for k, a in enumerate(x):
            a.requires_grad = k == leaf_of[n % len(leaf_of)]
            a.assign(np.linspace(0.1, 0.9, N) * (1 + 0.1 * k + 0.01 * n))
        with kc.Tape() as tape:
            kc.launch(mix, N, [x[0], x[1], 0.5], [x[2]])
            for step in program:
                run(step, x)
            kc.launch(mix, N, [x[2], x[3], 0.5], [x[1]])
        found += [a.numpy().copy() for a in x]
        grads = [a for a in x if a.requires_grad]
        tape.backward(grads={x[1]: np.ones(N)}, add=n % 2 == 0)
        found += [a.grad.numpy().copy() for a in grads]
        if n % 4 == 3:
            tape.replay()
            tape.backward(grads={x[1]: np.arange(1.0, N + 1)})
            found += [a.grad.numpy().copy() for a in grads]
            found += [d.numpy() for d in tape.jvp({a: np.ones(N) for a in grads if a in tape}, [x[1]]).values()]
        found.append(tape.memory())
        del tape
    return found


@settings(deadline=None)
@given(st.lists(STEPS, max_size=5), st.lists(STEPS, max_size=5), st.integers(0, 5), st.booleans())
def test_tapes_that_go_along_another_one_have_the_bits_of_tapes_that_record(first, second, cut, flip):
    programs = [first] * 4 + [first[:cut] + second] + [first] * 2 + [first[:cut]] + [first] * 2
    leaf_of = [0, 0, 0, 0, 0, 0, 3] if flip else [0]
    found = found_in(programs, leaf_of)
    find = repeats.find
    repeats.find = lambda *_: None
    try:
        expected = found_in(programs, leaf_of)
    finally:
        repeats.find = find
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def loop(x, times, body=lambda n, tape: None):
    for n in range(times):
        with kc.Tape() as tape:
            kc.launch(mix, N, [x[0], x[1], 0.5], [x[2]])
            body(n, tape)
            kc.launch(mix, N, [x[2], x[1], 0.5], [x[3]])
        tape.backward(grads={x[3]: np.ones(N)}, add=False)
    return tape


def test_a_loop_goes_along_from_the_third_time_on(counted):
    x = arrays()
    loop(x, 10)
    assert counted == {"along": 8, "left": 0}


@pytest.mark.parametrize("change", ["number", "size", "array", "kernel", "shorter", "longer", "view"])
def test_what_is_launched_otherwise_is_recorded(counted, change):
    """The launch in the middle differs once; its result and gradient are those of a loop of its own."""

    def middle(other):
        def body(x):
            a, c, n, k = x[2], 0.5, N, grow
            if other == "number":
                c = 0.7
            elif other == "size":
                n = N - 1
            elif other == "array":
                a = x[1]
            elif other == "view":
                a, n = x[2][1:4], 3
            if other == "kernel":
                kc.launch(gather, N, [x[1]], [x[2]])
            elif other != "shorter":
                kc.launch(k, n, [a, c])
            if other == "longer":
                kc.launch(grow, N, [x[2], 0.9])

        return body

    def results(x):
        return [a.numpy().copy() for a in x] + [x[0].grad.numpy().copy()]

    def fresh(x):
        for k, a in enumerate(x):
            a.assign(np.linspace(0.1, 0.9, N) * (1 + 0.1 * k))

    x = arrays()
    for n in range(7):
        fresh(x)
        loop(x, 1, lambda _n, _tape, n=n: middle(change if n == 5 else None)(x))
        if n == 5:
            found = results(x)
    assert counted["left"] == 1
    y = arrays()
    fresh(y)
    loop(y, 1, lambda *_: middle(change)(y))
    for a, b in zip(found, results(y), strict=True):
        np.testing.assert_array_equal(a, b)


def test_marks_that_change_after_the_launch_mean_what_they_ever_did():
    def grads(x):
        found = []
        for n in range(8):
            x[0].requires_grad = True
            x[0].assign(np.linspace(0.1, 0.9, N))
            with kc.Tape() as tape:
                kc.launch(mix, N, [x[0], x[1], 0.5], [x[2]])
                kc.launch(mix, N, [x[2], x[1], 0.5], [x[3]])
            x[0].requires_grad = n < 5
            tape.backward(grads={x[3]: np.full(N, 1.0 + n)})
            found.append([x[k].grad.numpy().copy() for k in (0, 2, 3)])
            del tape
        return found

    x = arrays()
    found = grads(x)
    find = repeats.find
    repeats.find = lambda *_: None
    try:
        expected = grads(arrays())
    finally:
        repeats.find = find
    np.testing.assert_array_equal(found, expected)


def test_arrays_that_are_made_anew_are_recorded(counted):
    for _ in range(6):
        loop(arrays(), 1)
    assert counted["along"] == 0


def test_memory_is_free_when_its_arrays_are_gone():
    x = arrays()
    gone = weakref.ref(x[3]._storage)
    loop(x, 6)
    assert any(a._storage.repeats for a in x)
    del x
    gc.collect()
    assert gone() is None


def test_tapes_that_hold_much_are_not_kept(counted, monkeypatch):
    """Of four arrays of 5 doubles, all but the largest are 120 bytes."""
    monkeypatch.setattr(repeats, "_MOST_BYTES", 119)
    loop(arrays(), 6)
    assert counted["along"] == 0
    monkeypatch.setattr(repeats, "_MOST_BYTES", 120)
    loop(arrays(), 6)
    assert counted["along"] == 4


def test_what_is_asked_of_an_open_tape_is_known(counted):
    x = arrays()
    asked = []
    loop(x, 6, lambda n, tape: asked.append((len(tape.entries), x[2] in tape, x[3] in tape)) if n > 4 else None)
    assert asked == [(1, True, False)]
    assert counted["left"] == 1


def test_a_write_from_outside_raises_as_ever(counted):
    x = arrays()

    def body(n, tape):
        if n == 5:
            other = threading.Thread(target=lambda: x[1].assign(np.zeros(N)))
            other.start()
            other.join()

    with pytest.raises(kc.KernelError, match="written from outside"):
        loop(x, 6, body)
    assert counted["left"] == 1


def test_a_write_before_backward_raises_as_ever():
    x = arrays()
    for n in range(6):
        with kc.Tape() as tape:
            kc.launch(mix, N, [x[0], x[1], 0.5], [x[2]])
        if n == 5:
            x[1].assign(np.zeros(N))
            with pytest.raises(kc.KernelError, match="written from outside"):
                tape.backward(grads={x[2]: np.ones(N)})
        else:
            tape.backward(grads={x[2]: np.ones(N)})


def test_two_tapes_that_live_have_programs_of_their_own():
    x, tapes = arrays(), []
    for _ in range(6):
        with kc.Tape() as tape:
            kc.launch(mix, N, [x[0], x[1], 0.5], [x[2]])
        tapes.append(tape)
    loop(x, 6)
    for _ in range(4):
        tapes.append(loop(x, 1))
    assert len({id(tape.entries) for tape in tapes}) == len(tapes)
    with pytest.raises(kc.KernelError, match="written from outside"):
        tapes[-2].backward(grads={x[3]: np.ones(N)})
    tapes[-1].backward(grads={x[3]: np.ones(N)}, add=False)
    grad = x[0].grad.numpy().copy()
    tapes[6].replay()
    tapes[6].backward(grads={x[3]: np.ones(N)}, add=False)
    np.testing.assert_array_equal(x[0].grad.numpy(), grad)


def test_a_launch_that_fails_ends_the_gradient_as_ever(counted):
    x = arrays()
    for n in range(6):
        limit = 1.0
        x[0].assign(np.full(N, 0.5 if n < 5 else 2.0))
        with kc.Tape() as tape:
            kc.launch(mix, N, [x[0], x[1], 0.5], [x[2]])
            if n < 5:
                kc.launch(check, N, [x[0], limit], [x[3]])
            else:
                with pytest.raises(kc.KernelError):
                    kc.launch(check, N, [x[0], limit], [x[3]])
                with pytest.raises(kc.KernelError, match="which failed"):
                    kc.launch(mix, N, [x[3], x[1], 0.5], [x[2]])
        if n == 5:
            assert [e.plan.kernel.name for e in tape.entries] == ["mix"]
            with pytest.raises(kc.KernelError, match="assert"):
                tape.replay()
        else:
            tape.backward(grads={x[3]: np.ones(N)})
    assert counted["left"] == 1


def test_inner_tapes_see_and_are_seen_as_ever():
    x = arrays()

    def body(n, tape):
        with kc.Tape() as inner:
            kc.launch(grow, N, [x[3], 0.5])
        assert len(inner.entries) == 1

    assert len(loop(x, 6, body).entries) == 2


def test_settings_are_followed(counted, monkeypatch):
    x = arrays()
    loop(x, 5)
    monkeypatch.setattr(kc.config, "singular", "ieee")
    loop(x, 1)
    assert counted == {"along": 3, "left": 0}
