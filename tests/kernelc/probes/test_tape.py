"""Probes: the tape as a program: backward again, several losses, seeds, replay, recorded operations, checkpoints."""

import numpy as np
import pytest
from probes.harness import DEVICES, array64, check, near, on, zeros64

import kernelc as kc


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def total(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, x[i] * x[i])


@kc.kernel
def weighted(y: kc.Array[float], x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, 3.0 * y[i] + x[i])


@kc.kernel
def decay(u: kc.Array[float], s: kc.Array[float]):
    i = kc.tid()
    s[i] = s[i] * s[i] * 0.3 + u[i] * u[i]


def recorded(device="cpu"):
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    with on(device), kc.Tape() as tape:
        out.zero_()
        kc.launch(square, 2, [x], [y])
        kc.launch(total, 2, [y], [out])
    return tape, x, y, out


@pytest.mark.parametrize("device", DEVICES)
def test_backward_twice_accumulates_and_zero_clears(device):
    tape, x, y, out = recorded(device)
    tape.backward(out)
    tape.backward(out)
    near(x.grad.numpy(), [64, 216], 1e-12)
    tape.zero()
    near(x.grad.numpy(), [0, 0], 0)
    tape.backward(out)
    near(x.grad.numpy(), [32, 108], 1e-12)


def test_backward_of_an_overwritten_leaf_accumulates():
    x, out = array64([2.0, 3.0]), zeros64(1)

    @kc.kernel
    def in_place(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        x[i] = x[i] * x[i]
        kc.atomic_add(out, 0, x[i])

    with kc.Tape() as tape:
        kc.launch(in_place, 2, [x], [out])
    tape.backward(out)
    tape.backward(out)
    near(x.grad.numpy(), [8, 12], 1e-12)


def test_two_losses_one_after_the_other():
    x, y, a, b = array64([2.0, 3.0]), zeros64(2), zeros64(1), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
        kc.launch(total, 2, [y], [a])
        kc.launch(weighted, 2, [y, x], [b])
    tape.backward(a)
    near(x.grad.numpy(), [32, 108], 1e-12)
    tape.zero()
    tape.backward(b)
    near(x.grad.numpy(), [13, 19], 1e-12)
    tape.backward(a)
    near(x.grad.numpy(), [45, 127], 1e-12)


def test_two_losses_at_once():
    x, y, a, b = array64([2.0, 3.0]), zeros64(2), zeros64(1), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
        kc.launch(total, 2, [y], [a])
        kc.launch(weighted, 2, [y, x], [b])
    tape.backward(grads={a: [2.0], b: [10.0], y: [1.0, 0.0]})
    near(x.grad.numpy(), [64 + 130 + 4, 216 + 190], 1e-12)


@pytest.mark.parametrize("seed", [[1.0, 2.0], (1, 2), np.array([1, 2]), np.array([1.0, 2.0], np.float32)])
def test_seeds_are_any_array_like(seed):
    x, y = array64([2.0, 3.0]), zeros64(2)
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
    tape.backward(grads={y: seed})
    near(x.grad.numpy(), [4, 12], 1e-7)
    tape.zero()
    tape.backward(grads={y: kc.array(np.array([1.0, 2.0]))})
    near(x.grad.numpy(), [4, 12], 1e-12)


def test_torch_seeds_are_read_and_not_changed():
    torch = pytest.importorskip("torch")
    x, y, g = array64([2.0, 3.0]), zeros64(2), torch.tensor([1.0, 2.0])
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
    tape.backward(grads={y: g})
    near(x.grad.numpy(), [4, 12], 1e-12)
    assert g.tolist() == [1.0, 2.0]


def test_seeds_of_vectors():
    @kc.kernel
    def cross(a: kc.Array[kc.float3], b: kc.Array[kc.float3], c: kc.Array[kc.float3]):
        i = kc.tid()
        c[i] = kc.cross(a[i], b[i])

    rng = np.random.default_rng(3)
    a, b, g = rng.normal(size=(3, 4, 3))
    x, y, z = array64(a, kc.float3), array64(b, kc.float3), zeros64(4, kc.float3)
    with kc.Tape() as tape:
        kc.launch(cross, 4, [x, y], [z])
    tape.backward(grads={z: g})
    near(x.grad.numpy(), np.cross(b, g), 1e-12)
    near(y.grad.numpy(), np.cross(g, a), 1e-12)


def test_a_seed_of_the_wrong_size_is_refused():
    x, y = array64([2.0, 3.0]), zeros64(2)
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
    with pytest.raises(kc.KernelError):
        tape.backward(grads={y: [1.0, 2.0, 3.0]})
    with pytest.raises(kc.KernelError):
        tape.backward(y)


def test_seeds_on_temporary_views_do_not_confuse_each_other():
    n = 30
    x, y = array64(np.arange(1.0, n + 1)), zeros64(n)
    with kc.Tape() as tape:
        kc.launch(square, n, [x], [y])
    for k in range(n):
        tape.backward(grads={y[k : k + 1]: [1.0]})
    near(x.grad.numpy(), 2 * np.arange(1.0, n + 1), 1e-12)


def test_a_loss_in_the_middle_is_the_loss_at_the_end_of_the_tape():
    """The array is written again after its first use: backward means what it holds now."""
    x, y = array64([2.0]), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(total, 1, [x], [y])
        kc.launch(total, 1, [x], [y])
    tape.backward(y)
    near(x.grad.numpy(), [8], 1e-12)


def test_a_loss_that_no_launch_wrote_is_refused():
    tape, x, y, out = recorded()
    with pytest.raises(kc.KernelError):
        tape.backward(zeros64(1))
    with pytest.raises(kc.KernelError):
        tape.backward()


def test_a_loss_without_any_leaf_is_refused():
    x, out = array64([2.0, 3.0], requires_grad=False), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(total, 2, [x], [out])
    with pytest.raises(kc.KernelError):
        tape.backward(out)


def test_backward_inside_of_the_tape_is_refused():
    x, out = array64([2.0, 3.0]), zeros64(1)
    with pytest.raises(kc.KernelError), kc.Tape() as tape:
        kc.launch(total, 2, [x], [out])
        tape.backward(out)


# -- replay
@pytest.mark.parametrize("device", DEVICES)
def test_replay_runs_with_what_the_arrays_hold_now(device):
    tape, x, y, out = recorded(device)
    for new in ([1.0, 2.0], [0.5, -3.0]):
        x.assign(new)
        tape.replay()
        near(out.numpy(), [np.sum(np.array(new) ** 4)], 1e-12)
        tape.zero()
        tape.backward(out)
        near(x.grad.numpy(), 4 * np.array(new) ** 3, 1e-12)


def test_replay_with_overwritten_buffers_keeps_new_copies():
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    with kc.Tape() as tape:
        out.zero_()
        kc.launch(square, 2, [x], [y])
        kc.launch(total, 2, [y], [out])
        kc.launch(square, 2, [y], [y2 := zeros64(2)])
        y.zero_()
        kc.launch(total, 2, [y2], [out])
    for new in ([2.0, 3.0], [1.0, 0.5]):
        v = np.array(new)
        x.assign(v)
        tape.replay()
        near(out.numpy(), [(v**4 + v**8).sum()], 1e-12)
        tape.zero()
        tape.backward(out)
        near(x.grad.numpy(), 4 * v**3 + 8 * v**7, 1e-12)


def recorded_further(x, y, out, between=None):
    """A tape that ran again, and then went on to overwrite what its first launches need."""
    z = zeros64(2)
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
        kc.launch(square, 2, [y], [z])
    x.assign([1.5, 0.5])
    tape.replay()
    if between is not None:
        between()
    with tape:
        kc.launch(square, 2, [x], [y])
        kc.launch(total, 2, [z], [out])
    return tape


def test_a_tape_that_goes_on_after_a_replay_keeps_what_it_overwrites():
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    tape = recorded_further(x, y, out)
    tape.backward(out)
    near(x.grad.numpy(), 8 * np.array([1.5, 0.5]) ** 7, 1e-12)
    for new in ([1.5, 0.5], [3.0, 0.25]):
        x.assign(new)
        tape.replay()
        tape.zero()
        tape.backward(out)
        near(x.grad.numpy(), 8 * np.array(new) ** 7, 1e-12)


@pytest.mark.parametrize("which", ["leaf", "result"])
def test_a_write_between_a_replay_and_what_is_recorded_next_is_refused(which):
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    with pytest.raises(kc.Overwritten, match="written from outside"):
        recorded_further(x, y, out, lambda: (x if which == "leaf" else y).zero_())


def test_replay_takes_other_loop_lengths_and_branches():
    @kc.kernel
    def walk(x: kc.Array[float], n: kc.Array[int], out: kc.Array[float]):
        p = 1.0
        for i in range(n[0]):
            if x[0] > 1.0:
                p = p * x[0]
            else:
                p = p + x[0] * p
        out[0] = p

    x, n, out = array64([2.0]), kc.array(np.array([3], np.int32)), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(walk, 1, [x, n], [out])
    tape.backward(out)
    near(x.grad.numpy(), [12], 1e-12)
    x.assign([0.5])
    n.assign(np.array([5], np.int32))
    tape.replay()
    tape.zero()
    tape.backward(out)
    near(out.numpy(), [1.5**5], 1e-12)
    near(x.grad.numpy(), [5 * 1.5**4], 1e-12)


def test_replay_assigns_recorded_arrays_again():
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    with kc.Tape() as tape:
        out.zero_()
        y.assign(x)
        kc.launch(total, 2, [y], [out])
    x.assign([5.0, 6.0])
    tape.replay()
    near(out.numpy(), [61], 1e-12)
    tape.backward(out)
    near(x.grad.numpy(), [10, 12], 1e-12)


def test_an_optimisation_loop_replays_one_recording():
    x, target, loss = array64([0.5]), kc.array(np.array([2.0])), zeros64(1)

    @kc.kernel
    def miss(x: kc.Array[float], target: kc.Array[float], loss: kc.Array[float]):
        d = x[0] * x[0] - target[0]
        loss[0] = d * d

    with kc.Tape() as tape:
        kc.launch(miss, 1, [x, target], [loss])
    for _ in range(60):
        tape.zero()
        tape.backward(loss)
        x.assign(x.numpy() - 0.05 * x.grad.numpy())
        tape.replay()
    near(x.numpy(), [np.sqrt(2.0)], 1e-6)


def test_rand_is_the_same_in_replay():
    @kc.kernel
    def noisy(x: kc.Array[float], out: kc.Array[float]):
        i = kc.tid()
        out[i] = x[i] * kc.randn(7, i, 3)

    x, out = array64([1.0, 2.0, 3.0]), zeros64(3)
    with kc.Tape() as tape:
        kc.launch(noisy, 3, [x], [out])
    before = out.numpy().copy()
    out.zero_()
    tape.replay()
    assert np.array_equal(out.numpy(), before)
    tape.backward(grads={out: [1.0, 1.0, 1.0]})
    near(x.grad.numpy(), before / [1, 2, 3], 1e-12)


def test_a_tape_records_only_while_it_is_open():
    x, y, out = array64([2.0, 3.0]), zeros64(2), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
    kc.launch(total, 2, [y], [out])
    with pytest.raises(kc.KernelError):
        tape.backward(out)


def test_nested_tapes_lose_nothing():
    x, z, y, out = array64([2.0]), zeros64(1), zeros64(1), zeros64(1)
    try:
        with kc.Tape() as outer:
            kc.launch(square, 1, [x], [z])
            with kc.Tape() as inner:
                kc.launch(square, 1, [z], [y])
            kc.launch(weighted, 1, [y, x], [out])
        outer.backward(out)
    except kc.KernelError:
        return
    near(x.grad.numpy(), [97], 1e-12)


def test_an_exception_closes_the_tape():
    x, y = array64([2.0, 3.0]), zeros64(2)
    with pytest.raises(ZeroDivisionError), kc.Tape():
        raise ZeroDivisionError
    with kc.Tape() as tape:
        kc.launch(square, 2, [x], [y])
    tape.backward(grads={y: [1, 1]})
    near(x.grad.numpy(), [4, 6], 1e-12)


# -- operations of the user
def test_a_recorded_operation_takes_part():
    def program(A, x):
        y, z, out = A.zeros(2), A.zeros(2), A.zeros(1)
        kc.launch(square, 2, [x], [y])

        def forward():
            z.numpy()[...] = np.sin(y.numpy())

        def backward():
            y.grad.numpy()[...] += np.cos(y.numpy()) * z.grad.numpy()

        forward()
        kc_tape().record(backward, reads=[y], writes=[z], forward=forward)
        kc.launch(total, 2, [z], [out])
        return out

    tapes = []

    class Mine(kc.Tape):
        def __enter__(self):
            tapes.append(self)
            return super().__enter__()

    def kc_tape():
        return tapes[-1]

    check(program, [[0.7, 1.1]], lambda x: (np.sin(x**2) ** 2).sum(), tape=Mine)


def test_a_recorded_operation_that_overwrites_what_is_needed_is_refused():
    x, z, y = array64([2.0, 3.0]), zeros64(2), zeros64(2)
    try:
        with kc.Tape() as tape:
            kc.launch(square, 2, [x], [z])
            kc.launch(square, 2, [z], [y])
            z.numpy()[...] = 7.0
            tape.record(lambda: None, reads=[x], writes=[z], forward=lambda: None)
        tape.backward(grads={y: [1.0, 1.0]})
    except kc.KernelError:
        return
    near(x.grad.numpy(), [32, 108], 1e-12)


def test_what_a_recorded_operation_read_is_there_when_it_goes_back():
    x, z, y = array64([2.0]), zeros64(1), zeros64(1)

    def forward():
        y.numpy()[...] = z.numpy() ** 2

    def backward():
        z.grad.numpy()[...] += 2 * z.numpy() * y.grad.numpy()

    try:
        with kc.Tape() as tape:
            kc.launch(square, 1, [x], [z])
            forward()
            tape.record(backward, reads=[z], writes=[y], forward=forward)
            z.zero_()
        tape.backward(y)
    except kc.KernelError:
        return
    near(x.grad.numpy(), [32], 1e-12)


def test_a_recorded_operation_without_forward_cannot_be_replayed():
    x, z = array64([2.0]), zeros64(1)
    with kc.Tape() as tape:
        z.numpy()[...] = x.numpy()
        tape.record(lambda: x.grad.numpy().__iadd__(z.grad.numpy()), reads=[x], writes=[z])
    tape.backward(z)
    near(x.grad.numpy(), [1], 0)
    with pytest.raises(kc.KernelError):
        tape.replay()


def test_a_recorded_linear_solve():
    rng = np.random.default_rng(2)
    matrix, b = rng.normal(size=(3, 3)) + 3 * np.eye(3), array64([1.0, 2.0, 3.0])
    x, out = zeros64(3), zeros64(1)
    with kc.Tape() as tape:
        x.numpy()[...] = np.linalg.solve(matrix, b.numpy())
        tape.record(lambda: b.grad.numpy().__iadd__(np.linalg.solve(matrix.T, x.grad.numpy())), reads=[b], writes=[x])
        kc.launch(total, 3, [x], [out])
    tape.backward(out)
    near(b.grad.numpy(), np.linalg.solve(matrix.T, 2 * x.numpy()), 1e-12)
    before = b.grad.numpy().copy()
    tape.backward(out)
    near(b.grad.numpy(), 2 * before, 1e-12)


# -- checkpoints
@pytest.mark.parametrize("steps", [0, 1, 5, 9])
@pytest.mark.parametrize("every", [None, 1, 2, 100])
def test_a_checkpointed_rollout_has_the_gradient_of_the_plain_one(steps, every):
    def run(checkpointed):
        u, s, out = array64([0.4, 0.6]), array64([0.3, 0.2]), zeros64(1)
        with kc.Tape() as tape:
            kc.launch(square, 2, [u], [y := zeros64(2)])
            if checkpointed:
                kc.checkpoint(lambda k: kc.launch(decay, 2, [y], [s]), [s], steps, every=every)
            else:
                for _ in range(steps):
                    kc.launch(decay, 2, [y], [s])
            kc.launch(total, 2, [s], [out])
        tape.backward(out)
        return out.numpy().copy(), u.grad.numpy().copy(), s.grad.numpy().copy(), s.numpy().copy()

    for got, want in zip(run(True), run(False)):
        near(got, want, 1e-12)


def test_a_checkpointed_rollout_with_inputs_of_its_own_in_every_step():
    """Controls that differ by step, and that are results of earlier launches."""
    leaves = [array64([0.1 * (k + 1), 0.2]) for k in range(6)]
    s, out = zeros64(2), zeros64(1)
    with kc.Tape() as tape:
        controls = []
        for x in leaves:
            controls.append(zeros64(2))
            kc.launch(square, 2, [x], [controls[-1]])
        kc.checkpoint(lambda k: kc.launch(decay, 2, [controls[k]], [s]), [s], 6, every=2)
        kc.launch(total, 2, [s], [out])
    tape.backward(out)
    plain = [array64([0.1 * (k + 1), 0.2]) for k in range(6)]
    s2, out2 = zeros64(2), zeros64(1)
    with kc.Tape() as tape2:
        for x in plain:
            y = zeros64(2)
            kc.launch(square, 2, [x], [y])
            kc.launch(decay, 2, [y], [s2])
        kc.launch(total, 2, [s2], [out2])
    tape2.backward(out2)
    near(out.numpy(), out2.numpy(), 1e-12)
    for a, b in zip(leaves, plain):
        near(a.grad.numpy(), b.grad.numpy(), 1e-12)


def test_checkpoint_backward_twice_and_replay():
    u, s, out = array64([0.4, 0.6]), array64([0.3, 0.2]), zeros64(1)
    start = s.numpy().copy()
    with kc.Tape() as tape:
        out.zero_()
        kc.checkpoint(lambda k: kc.launch(decay, 2, [u], [s]), [s], 7)
        kc.launch(total, 2, [s], [out])
    tape.backward(out)
    once = u.grad.numpy().copy()
    tape.backward(out)
    near(u.grad.numpy(), 2 * once, 1e-12)
    u.assign([0.1, 0.2])
    s.assign(start)
    tape.replay()
    tape.zero()
    tape.backward(out)
    u2, s2, out2 = array64([0.1, 0.2]), array64(start), zeros64(1)
    with kc.Tape() as plain:
        for _ in range(7):
            kc.launch(decay, 2, [u2], [s2])
        kc.launch(total, 2, [s2], [out2])
    plain.backward(out2)
    near(out.numpy(), out2.numpy(), 1e-12)
    near(u.grad.numpy(), u2.grad.numpy(), 1e-12)


def test_what_a_checkpointed_step_writes_besides_its_state_cannot_be_used_silently():
    @kc.kernel
    def step(u: kc.Array[float], s: kc.Array[float], m: kc.Array[float]):
        s[0] = s[0] * 1.1 + u[0] * u[0]
        m[0] = s[0] * 2.0

    u, s, m, out = array64([2.0]), zeros64(1), zeros64(1), zeros64(1)
    try:
        with kc.Tape() as tape:
            kc.checkpoint(lambda k: kc.launch(step, 1, [u], [s, m]), [s], 4)
            kc.launch(weighted, 1, [m, s], [out])
        tape.backward(out)
    except kc.KernelError:
        return
    near(u.grad.numpy(), [7 * sum(4 * 1.1**k for k in range(4))], 1e-12)


def test_a_buffer_of_the_checkpointed_step_may_be_used_again():
    @kc.kernel
    def push(f: kc.Array[float], s: kc.Array[float]):
        i = kc.tid()
        s[i] += 0.1 * f[i]

    def run(checkpointed):
        u, s, f, out = array64([0.4, 0.6]), array64([0.3, 0.2]), zeros64(2), zeros64(1)

        def step(k):
            kc.launch(decay, 2, [u], [f])
            kc.launch(push, 2, [f], [s])

        with kc.Tape() as tape:
            f.zero_()
            if checkpointed:
                kc.checkpoint(step, [s, f], 6)
            else:
                for k in range(6):
                    step(k)
            kc.launch(total, 2, [s], [out])
        tape.backward(out)
        return u.grad.numpy(), s.grad.numpy()

    for got, want in zip(run(True), run(False)):
        near(got, want, 1e-12)


# -- scalar arguments with gradients
def test_a_scalar_argument_with_a_gradient():
    @kc.kernel
    def scaled(x: kc.Array[float], k: float, out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, k * k * x[i])

    for real in (kc.float32, kc.float64):
        k, out = kc.scalar(3.0, requires_grad=True), kc.zeros(1, real=real)
        x = kc.array(np.array([1.0, 2.0], real.numpy), requires_grad=True)
        with kc.Tape() as tape:
            kc.launch(scaled, 2, [x, k], [out])
        tape.backward(out)
        near(k.grad.numpy(), [18], 1e-6)
        near(x.grad.numpy(), [9, 9], 1e-6)


def test_a_scalar_result_of_a_kernel_is_a_scalar_argument_of_the_next():
    @kc.kernel
    def scaled(x: kc.Array[float], k: float, out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, k * x[i])

    def program(A, x):
        s, out = A.zeros(1), A.zeros(1)
        kc.launch(total, 2, [x], [s])
        kc.launch(scaled, 2, [x, s], [out])
        return out

    check(program, [[2.0, 3.0]], lambda x: (x**2).sum() * x.sum(), [33, 43])


def test_a_vector_argument_with_a_gradient():
    @kc.kernel
    def pull(x: kc.Array[kc.float3], g: kc.float3, out: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(out, 0, kc.dot(x[i], g) * g.y)

    x, g, out = array64([[1.0, 2, 3], [4, 5, 6]], kc.float3), array64([[0.5, -1.0, 2.0]], kc.float3), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(pull, 2, [x, g], [out])
    tape.backward(out)
    s = np.array([5.0, 7, 9])
    near(g.grad.numpy(), [-s + [0, s @ [0.5, -1, 2], 0]], 1e-12)


def test_weak_scalars_and_lists_adapt_at_full_precision():
    @kc.kernel
    def add(x: kc.Array[float], w: kc.Array[float], k: float, out: kc.Array[float]):
        out[0] = x[0] * w[0] + k

    x, k, w, out = array64([1.0]), kc.scalar(0.1, requires_grad=True), kc.array([0.1], requires_grad=True), zeros64(1)
    with kc.Tape() as tape:
        kc.launch(add, 1, [x, w, k], [out])
    tape.backward(out)
    assert out.numpy()[0] == 0.1 + 0.1
    assert k.grad.numpy().dtype == np.float64 and w.grad.numpy()[0] == 1.0


def test_backward_through_a_checkpoint_changes_no_array():
    u, s, y, z = array64([0.5, 0.7]), zeros64(2), zeros64(2), zeros64(2)
    with kc.Tape() as tape:
        kc.checkpoint(lambda k: kc.launch(decay, 2, [u], [s]), [s], 3)
        kc.launch(square, 2, [s], [y])
        s.assign(u)
        kc.launch(square, 2, [s], [z])
    before = [a.numpy().copy() for a in (u, s, y, z)]
    tape.backward(grads={y: [1, 1], z: [1, 1]})
    once = u.grad.numpy().copy()
    for a, b in zip((u, s, y, z), before):
        near(a.numpy(), b, 0)
    tape.backward(grads={y: [1, 1], z: [1, 1]})
    near(u.grad.numpy(), 2 * once, 1e-12)


def plain_and_checkpointed(program):
    """The gradients of program(run), where run(step, state, n) is a loop or a checkpoint."""

    def loop(step, state, n):
        for k in range(n):
            step(k)

    return program(loop), program(lambda step, state, n: kc.checkpoint(step, state, n, every=2))


def test_the_state_of_a_checkpoint_was_read_before():
    def program(run):
        u, s, y = array64([0.5, 0.7]), array64([0.3, 0.4]), zeros64(2)
        with kc.Tape() as tape:
            kc.launch(square, 2, [s], [y])
            run(lambda k: kc.launch(decay, 2, [u], [s]), [s], 5)
        tape.backward(grads={y: [1, 2], s: [3, 4]})
        return np.concatenate([u.grad.numpy(), s.grad.numpy()])

    want, got = plain_and_checkpointed(program)
    near(got, want, 1e-12)


@pytest.mark.parametrize("carries", [True, False])
def test_an_input_of_a_checkpoint_is_overwritten_later(carries):
    def program(run):
        u, s, y = array64([0.5, 0.7]), array64([0.3, 0.4]), zeros64(2)
        b = array64([0.2, 0.3], requires_grad=False)
        with kc.Tape() as tape:
            if carries:
                kc.launch(square, 2, [u], [b])
            run(lambda k: kc.launch(decay, 2, [b], [s]), [s], 5)
            kc.launch(square, 2, [s], [y])
            kc.launch(square, 2, [y], [b])
        tape.backward(grads={y: [1, 2], b: [3, 4]})
        tape.backward(grads={y: [1, 2], b: [3, 4]})
        return np.concatenate([u.grad.numpy(), s.grad.numpy(), s.numpy(), b.numpy()])

    want, got = plain_and_checkpointed(program)
    near(got, want, 1e-12)


@kc.struct
class Padded:
    a: float
    n: int


@kc.kernel
def grow_padded(s: kc.Array[Padded]):
    i = kc.tid()
    old = s[i]
    s[i] = Padded(a=old.a * old.a, n=old.n + 1)


@kc.kernel
def take_padded(s: kc.Array[Padded], out: kc.Array[float]):
    out[0] += s[kc.tid()].a


def test_the_bytes_between_the_fields_of_a_checkpointed_struct_do_not_count():
    dtype = kc.zeros(1, dtype=Padded, real=kc.float64).numpy().dtype
    assert dtype.itemsize == 16  # eight bytes, four, and four that nobody writes
    memory = np.random.default_rng(1).integers(0, 256, (3, 16), np.uint8).view(dtype)[:, 0]
    memory["a"], memory["n"] = [1.1, 1.2, 1.3], 0
    state = kc.array(memory, dtype=Padded, requires_grad=True)
    out = kc.zeros(1, real=kc.float64)
    with kc.Tape() as tape:
        kc.checkpoint(lambda k: kc.launch(grow_padded, 3, [state]), [state], 4, every=2)
        kc.launch(take_padded, 3, [state, out])
    tape.backward(out)
    np.testing.assert_allclose(state.grad.numpy()["a"], 16 * np.array([1.1, 1.2, 1.3]) ** 15)


def test_the_state_of_a_checkpoint_is_a_view():
    def program(run):
        u, whole = array64([0.5, 0.7]), array64([0.3, 0.4, 0.1, 0.2])
        s = whole[1:3]
        with kc.Tape() as tape:
            run(lambda k: kc.launch(decay, 2, [u], [s]), [s], 3)
        tape.backward(grads={whole: [1, 2, 3, 4]})
        return np.concatenate([u.grad.numpy(), whole.grad.numpy()])

    try:
        want, got = plain_and_checkpointed(program)
    except kc.KernelError:
        return
    near(got, want, 1e-12)


def test_two_checkpoints_one_after_the_other():
    def program(run):
        u, w, s, out = array64([0.5, 0.7]), array64([0.1, 0.2]), array64([0.3, 0.4]), zeros64(1)
        with kc.Tape() as tape:
            run(lambda k: kc.launch(decay, 2, [u], [s]), [s], 3)
            run(lambda k: kc.launch(decay, 2, [w], [s]), [s], 4)
            kc.launch(total, 2, [s], [out])
        tape.backward(out)
        tape.backward(out)
        return np.concatenate([u.grad.numpy(), w.grad.numpy(), s.grad.numpy()])

    want, got = plain_and_checkpointed(program)
    near(got, want, 1e-12)


def test_a_leaf_that_is_overwritten_from_python_only():
    x = array64([1.0, 2.0, 3.0, 4.0])
    with kc.Tape() as tape:
        x[0:2].zero_()
        x[3:4].assign([9.0])
    tape.backward(grads={x: [1.0, 1.0, 1.0, 1.0]})
    near(x.grad.numpy(), [0, 0, 1, 0], 0)
    tape.zero()
    near(x.grad.numpy(), [0, 0, 0, 0], 0)


def test_a_tape_inside_a_tape_inside_a_tape():
    x, y, plain, sink = array64([2.0, 3.0]), zeros64(2), kc.array(np.ones(2)), zeros64(2)
    with kc.Tape(), kc.Tape(), kc.Tape() as inner:
        kc.launch(square, 2, [plain], [sink])  # Nobody's gradient: each tape asks those around it.
        kc.launch(square, 2, [x], [y])
    inner.backward(grads={y: np.ones(2)})
    near(x.grad.numpy(), 2 * np.array([2.0, 3.0]), 1e-12)


@pytest.mark.parametrize("by", ["loss", "weights"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_tape_that_goes_on_after_backward_goes_back_all_the_way(device, by):
    x, out = array64([2.0, 3.0]), zeros64(1)
    ask = {"loss": out} if by == "loss" else {"grads": {out: np.ones(1)}}
    tape = kc.Tape()
    for k in range(1, 4):
        with on(device), tape:
            kc.launch(total, 2, [x], [out])
        tape.zero()
        tape.backward(**ask)
        near(x.grad.numpy(), k * 2 * np.array([2.0, 3.0]), 1e-12)


def test_weights_that_change_in_place_are_read_again():
    tape, x, y, _ = recorded()
    weights, other = np.ones(2), np.array([5.0, 6.0])
    for w in (weights, weights, other, weights):
        for scale in (1.0, 2.0):
            w *= scale
            tape.backward(grads={y: w}, add=False)
            near(x.grad.numpy(), 2 * np.array([2.0, 3.0]) * w, 1e-12)
    tape.backward(grads={y: weights})
    tape.backward(grads={y: weights[::-1].copy()}, add=False)
    near(x.grad.numpy(), 2 * np.array([2.0, 3.0]) * weights[::-1], 1e-12)


def test_weights_of_another_shape_or_kind_are_not_taken_for_the_last_ones():
    tape, x, y, out = recorded()
    for w in ([1.0, 2.0], (1.0, 2.0), np.array([[1.0], [2.0]]), np.array([1, 2]), kc.array([1.0, 2.0])):
        for _ in range(2):
            tape.backward(grads={y: w}, add=False)
            near(x.grad.numpy(), 2 * np.array([2.0, 3.0]) * [1, 2], 1e-6)
    tape.backward(out, add=False)
    square_of = x.grad.numpy().copy()
    tape.backward(grads={y: np.ones(2), out: np.ones(1)}, add=False)
    near(x.grad.numpy(), square_of + 2 * np.array([2.0, 3.0]), 1e-12)
