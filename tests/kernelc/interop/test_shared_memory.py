"""Versions belong to memory: arrays over the same bytes are one to a tape, however they were made."""

import gc
from pathlib import Path

import numpy as np
import pytest
import torch

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def put(y: kc.Array[float], value: float):
    y[kc.tid()] = value


@kc.kernel
def total(x: kc.Array[float], s: kc.Array[float]):
    kc.atomic_add(s, 0, x[kc.tid()])


def zeros64(n):
    return kc.zeros(n, real=kc.float64)


def recorded(a):
    """A tape of y = a², whose way back reads a."""
    y = zeros64(len(a))
    with kc.Tape() as tape:
        kc.launch(square, len(a), [a], [y])
    return tape, y


def frombuffer():
    buffer = bytearray(np.full(3, 3.0).tobytes())
    return np.frombuffer(buffer), np.frombuffer(memoryview(buffer)[8:])


def tensor():
    t = torch.full((3,), 3.0, dtype=torch.float64)
    return t, t.numpy()


MEMORY = {
    "the same NumPy array": lambda m=None: (m := np.full(3, 3.0), m),
    "a slice": lambda m=None: (m := np.full(3, 3.0), m[1:]),
    "backwards": lambda m=None: (m := np.full(3, 3.0), m[::-1]),
    "every other": lambda m=None: (m := np.full(3, 3.0), m[::2]),
    "both are slices": lambda m=None: ((m := np.full(5, 3.0))[:3], m[2:]),
    "another shape": lambda m=None: (m := np.full(4, 3.0), m.reshape(2, 2)[1]),
    "a buffer": frombuffer,
    "DLPack": lambda m=None: (m := np.full(3, 3.0), np.from_dlpack(m)),
    "a tensor and its NumPy array": tensor,
    "tensors with one storage": lambda t=None: ((t := torch.full((4,), 3.0, dtype=torch.float64))[:3], t[2:]),
    "a NumPy array and a tensor": lambda m=None: (m := np.full(3, 3.0), torch.from_numpy(m)[1:]),
}
WRITES = {
    "assign": lambda m: kc.array(m).assign(np.full(len(m), 10.0)),
    "zero_": lambda m: kc.array(m).zero_(),
    "fill_": lambda m: kc.array(m).fill_(10.0),
    "a launch": lambda m: kc.launch(put, len(m), [kc.array(m), 10.0]),
    "a launch on the memory itself": lambda m: kc.launch(put, len(m), [m, 10.0]),
    "a launch in Python": lambda m: kc.launch(put, len(m), [m, 10.0], device="python"),
    "a launch on a view": lambda m: kc.launch(put, len(m), [kc.array(m)[:], 10.0]),
    "another tape": lambda m: _on_a_tape(lambda: kc.launch(put, len(m), [m, 10.0])),
    "a tape that runs again": lambda m: _on_a_tape(lambda: kc.launch(put, len(m), [m, 10.0])).replay(),
}


def _on_a_tape(work):
    with kc.Tape() as tape:
        work()
    return tape


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("memory", MEMORY.values(), ids=MEMORY)
def test_a_write_through_another_array_is_seen(memory, write):
    m, other = memory()
    tape, y = recorded(kc.array(m, requires_grad=True))
    write(other)
    with pytest.raises(kc.Overwritten, match=r"launch 0 \(square\)"):
        tape.backward(grads={y: np.ones(len(m))})


def test_a_write_is_seen_where_the_tape_got_the_memory_itself():
    m, k = np.full(3, 3.0), kc.array(np.ones(3), requires_grad=True)
    y, z = zeros64(3), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(square, 3, [m], [y])
        kc.launch(square, 3, [k], [z])
    kc.array(m).assign(np.full(3, 10.0))
    with pytest.raises(kc.Overwritten):
        tape.backward(grads={z: np.ones(3)})


def test_a_write_is_seen_through_what_an_array_gave_away():
    a = kc.array(np.full(3, 3.0), requires_grad=True)
    for other in (a.numpy(), a.torch(), kc.from_dlpack(a), np.asarray(a)[1:]):
        tape, y = recorded(a)
        kc.array(other).zero_()
        with pytest.raises(kc.Overwritten):
            tape.backward(grads={y: np.ones(3)})


def test_bytes_side_by_side_are_not_shared():
    m = np.full(6, 3.0)
    for mine, other in ((m[:3], m[3:]), (m[::2], m[1::2]), (m.reshape(3, 2)[:, 0], m.reshape(3, 2)[:, 1])):
        a = kc.array(mine, requires_grad=True)
        tape, y = recorded(a)
        kc.array(other).fill_(10.0)
        tape.backward(grads={y: np.ones(3)})
        np.testing.assert_array_equal(a.grad.numpy(), 6.0)
        m[:] = 3.0


def test_memory_that_was_freed_is_not_that_of_a_new_array():
    seen = set()
    for _ in range(50):
        a = kc.array(np.full(1000, 3.0), requires_grad=True)
        where = a.numpy().ctypes.data
        if where in seen:
            assert a.version == 0
        seen.add(where)
        b = kc.array(a.numpy())
        b.fill_(10.0)
        assert a.version == b.version > 0
        del a, b
        gc.collect()
    assert len(seen) < 50, "memory was never used again: nothing was tested"


def test_an_array_wrapped_again_and_again_leaves_nothing_behind():
    a = kc.array(np.zeros(3))
    for _ in range(100):
        kc.launch(put, 3, [a.numpy(), 1.0])
    assert len(a._storage.kin) < 10


def test_a_write_through_another_array_on_the_tape_is_part_of_it():
    m = np.array([1.0, 2.0, 3.0])
    a, b, y = kc.array(m, requires_grad=True), kc.array(m), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(square, 3, [a], [y])
        b.assign(np.full(3, 10.0))
        kc.launch(square, 3, [m], [m_squared := zeros64(3)])
    tape.backward(grads={y: np.ones(3)})
    np.testing.assert_array_equal(a.grad.numpy(), [2, 4, 6])
    np.testing.assert_array_equal(m_squared.numpy(), 100)


def test_what_was_written_from_outside_between_two_launches_has_no_gradient():
    x, y, s = kc.array(np.ones(3), requires_grad=True), zeros64(3), zeros64(1)
    tape = kc.Tape()
    with tape:
        kc.launch(square, 3, [x], [y])
    kc.array(y.numpy()).fill_(5.0)
    with tape, pytest.raises(kc.Overwritten, match=r"launch 0 \(square\)"):
        kc.launch(total, 3, [y], [s])


# -- two arrays on one tape
def line_of(text):
    lines = Path(__file__).read_text().splitlines()
    (found,) = [n for n, line in enumerate(lines, 1) if line.strip().endswith(text)]
    return f"{Path(__file__)}:{found}"


def test_two_leaves_over_the_same_memory_are_named():
    m = np.ones(3)
    a, b = kc.array(m, requires_grad=True), kc.array(m, requires_grad=True)
    with kc.Tape(), pytest.raises(kc.Overlap) as caught:
        kc.launch(square, 3, [a], [zeros64(3)])  # the first leaf
        kc.launch(total, 3, [b], [zeros64(1)])
    message = caught.value.message
    assert f"'x' of launch 0 (square) at {line_of('# the first leaf')}" in message
    assert "'x' of launch 1 (total)" in message and "require gradients" in message
    assert caught.value.advice == "use one of them twice"


def test_arrays_that_share_a_part_are_named():
    m = np.ones(4)
    a, b = kc.array(m[:3], requires_grad=True), kc.array(m[1:])
    with kc.Tape(), pytest.raises(kc.Overlap) as caught:
        kc.launch(square, 3, [a], [zeros64(3)])  # the first part
        kc.launch(total, 3, [b], [zeros64(1)])  # the second part
    message = caught.value.message
    assert f"'x' of launch 0 (square) at {line_of('# the first part')}" in message
    assert f"'x' of launch 1 (total) at {line_of('# the second part')}" in message
    assert "kc.array" in caught.value.advice


def test_a_write_to_a_part_is_named():
    m = np.ones(4)
    a, b = kc.array(m[:3], requires_grad=True), kc.array(m[1:])
    with kc.Tape(), pytest.raises(kc.Overlap, match=r"'x' of launch 0 \(square\) at .* and the target of assign 1 at"):
        kc.launch(square, 3, [a], [zeros64(3)])
        b.assign(np.zeros(3))


def test_parts_that_lie_between_each_other_are_two_arrays():
    m = np.array([1.0, 5.0, 2.0, 6.0])
    a, b, y, z = kc.array(m[::2], requires_grad=True), kc.array(m[1::2], requires_grad=True), zeros64(2), zeros64(2)
    with kc.Tape() as tape:
        kc.launch(square, 2, [a], [y])
        kc.launch(square, 2, [b], [z])
    tape.backward(grads={y: np.ones(2), z: np.ones(2)})
    np.testing.assert_array_equal(a.grad.numpy(), [2, 4])
    np.testing.assert_array_equal(b.grad.numpy(), [10, 12])


def test_forward_mode_knows_one_memory():
    m = np.ones(4)
    a, b = kc.array(m), kc.array(m[1:])
    with pytest.raises(kc.Overlap, match="'x'"):
        kc.jvp(square, 3, [b], [zeros64(3)], tangents={a: np.ones(4)})


def test_steps_of_a_checkpoint_may_use_the_memory_of_the_state():
    @kc.kernel
    def grow(x: kc.Array[float], k: kc.Array[float]):
        x[kc.tid()] = x[kc.tid()] * k[0]

    m, k, s = np.ones(3), kc.array(np.full(1, 2.0), requires_grad=True), zeros64(1)
    x = kc.array(m)
    with kc.Tape() as tape:
        kc.checkpoint(lambda _: kc.launch(grow, 3, [m, k]), [x], 4)
        kc.launch(total, 3, [x], [s])
    tape.backward(s)
    np.testing.assert_array_equal(k.grad.numpy(), 3 * 4 * 2.0**3)


# -- memory of an array that carries a gradient, handed over as something else
@kc.kernel
def times(x: kc.Array[float], v: kc.float3, y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * v[i]


@kc.struct
class Held:
    v: kc.float3


@kc.kernel
def times_held(x: kc.Array[float], held: Held, y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * held.v[i]


OTHER_NAMES = {
    "NumPy": lambda a: a.numpy(),
    "a part": lambda a: a.numpy()[:3],
    "a tensor": lambda a: a.torch(),
    "DLPack": np.from_dlpack,
    "a memoryview": lambda a: memoryview(a.numpy()),
    "a list": lambda a: [a.numpy()[i : i + 1].reshape(()) for i in range(3)],
}
CONSTANTS = {
    "a vector": lambda x, y, z: kc.launch(times, 3, [x, y, z]),
    "a vector again": lambda x, y, z: [kc.launch(times, 3, [x, v, z]) for v in (np.ones(3), y)],
    "a field": lambda x, y, z: kc.launch(times_held, 3, [x, Held(y), z]),
    "filled": lambda x, y, z: kc.full(3, y, real=kc.float64),
    "converted": lambda x, y, z: kc.array(y, dtype=kc.float32),
    "copied": lambda x, y, z: kc.array(y, copy=True),
}


@pytest.mark.parametrize("way", CONSTANTS.values(), ids=CONSTANTS)
@pytest.mark.parametrize("name", OTHER_NAMES.values(), ids=OTHER_NAMES)
def test_memory_that_carries_a_gradient_is_no_constant_under_another_name(name, way):
    x, y, z = kc.array(np.array([1.0, 2.0, 3.0]), requires_grad=True), zeros64(3), zeros64(3)
    with kc.Tape():
        kc.launch(square, 3, [x], [y])
        with pytest.raises(kc.CutGradient, match="constant") as caught:
            way(x, name(y), z)
        assert "copy()" in caught.value.advice


@pytest.mark.parametrize("way", [CONSTANTS[w] for w in ("a vector", "a field", "filled", "converted")])
def test_a_copy_is_a_constant(way):
    x, y, z = kc.array(np.array([1.0, 2.0, 3.0]), requires_grad=True), zeros64(3), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(square, 3, [x], [y])
        way(x, y.numpy().copy(), z)
        kc.launch(times, 3, [x, y.numpy().copy(), z])
    tape.backward(grads={z: np.ones(3)})
    np.testing.assert_array_equal(x.grad.numpy(), [1, 4, 9])


@pytest.mark.parametrize("name", ["NumPy", "a tensor", "DLPack", "a memoryview"])
def test_memory_of_an_array_is_assigned_as_the_array(name):
    x, y, z = kc.array(np.array([1.0, 2.0, 3.0]), requires_grad=True), zeros64(3), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(square, 3, [x], [y])
        z.assign(OTHER_NAMES[name](y))
    tape.backward(grads={z: np.ones(3)})
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4, 6])


@pytest.mark.parametrize("part", [lambda m: m[1:], lambda m: m[:2], lambda m: m[::2]])
def test_a_part_of_the_memory_of_an_array_is_never_assigned_as_a_constant(part):
    x, y, z = kc.array(np.array([1.0, 2.0, 3.0]), requires_grad=True), zeros64(3), zeros64(3)
    with kc.Tape():
        kc.launch(square, 3, [x], [y])
        with pytest.raises(kc.Overlap):
            z[:2].assign(part(y.numpy()))


def test_a_number_is_assigned_to_every_element():
    y = zeros64(3).assign(10)
    assert y.tolist() == [10.0] * 3
    assert kc.zeros(2, dtype=kc.float3).assign(np.float32(2)).numpy().tolist() == [[2.0] * 3] * 2
    m = np.full(3, 3.0)
    tape, y = recorded(kc.array(m, requires_grad=True))
    kc.array(m).assign(10)
    with pytest.raises(kc.Overwritten):
        tape.backward(grads={y: np.ones(3)})
    assert m.tolist() == [10.0] * 3
