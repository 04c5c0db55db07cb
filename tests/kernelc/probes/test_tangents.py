"""`tape.jvp` beside launches: operations, checkpoints, primitives, views, overwrites, and what it refuses."""

import numpy as np
import pytest

import kernelc as kc


@kc.kernel
def wave(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.sin(x[i]) * x[i]


@kc.kernel
def swing(x: kc.Array[float], k: kc.Array[float]):
    i = kc.tid()
    x[i] = x[i] - 0.1 * k[0] * kc.sin(x[i])


@kc.kernel
def move(x: kc.Array[kc.float3], v: kc.Array[kc.float3], dt: float):
    i = kc.tid()
    x[i] = x[i] + v[i] * (dt * kc.length(x[i]))


def array(n=4, grad=True, seed=0):
    return kc.array(np.random.default_rng(seed).uniform(0.5, 1.5, n), requires_grad=grad)


def along(function, x, dx, step=1e-6):
    """Central differences of a function of NumPy arrays."""
    return (function(x + step * dx) - function(x - step * dx)) / (2 * step)


def test_one_direction_and_several():
    x, y = array(), kc.zeros(4, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(wave, 4, [x], [y])
    slope = np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy())
    np.testing.assert_allclose(tape.jvp({x: np.ones(4)})[y].numpy(), slope, rtol=1e-14)
    for k in (1, 2, 3, 5, 8, 11):
        dx = np.random.default_rng(k).standard_normal((k, 4))
        found = tape.jvp({x: dx}, outputs=[y])[y]
        assert found.shape == (k, 4)
        np.testing.assert_allclose(found.numpy(), dx * slope, rtol=1e-14)


def test_a_launch_takes_several_directions():
    x, y = array(), kc.zeros(4, real=kc.float64)
    slope = np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy())
    dots = kc.jvp(wave, 4, [x], [y], tangents={x: np.eye(4)})
    np.testing.assert_allclose(dots[y].numpy(), np.diag(slope), rtol=1e-14)


def test_vectors_have_the_axis_in_front():
    x, v = (kc.array(np.random.default_rng(s).standard_normal((5, 3)), dtype=kc.float3, requires_grad=True)
            for s in (0, 1))  # fmt: skip
    with kc.Tape() as tape:
        for _ in range(3):
            kc.launch(move, 5, [x, v, 0.1])
    dx = np.random.default_rng(2).standard_normal((2, 5, 3))
    found = tape.jvp({x: dx, v: 2 * dx}, outputs=[x])[x]
    assert found.numpy().shape == (2, 5, 3) and found.dtype is x.dtype


def test_a_state_that_is_overwritten_is_linearised_where_it_was():
    def rollout(start):
        x, k = kc.array(start.copy()), kc.array(np.array([0.7]))
        for _ in range(5):
            kc.launch(swing, 4, [x, k])
        return x.numpy().copy()

    start, dx = array().numpy().copy(), np.array([1.0, -0.5, 0.3, 2.0])
    x, k = kc.array(start.copy(), requires_grad=True), kc.array(np.array([0.7]), requires_grad=True)
    with kc.Tape() as tape:
        for _ in range(5):
            kc.launch(swing, 4, [x, k])
    np.testing.assert_allclose(tape.jvp({x: dx})[x].numpy(), along(rollout, start, dx), rtol=1e-8)


def test_what_nobody_marked_is_pushed_while_it_is_there():
    x, y = array(grad=False), kc.zeros(4, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(wave, 4, [x], [y])
    slope = np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy())
    np.testing.assert_allclose(tape.jvp({x: np.ones(4)})[y].numpy(), slope, rtol=1e-14)


def test_what_nobody_marked_and_something_overwrote_is_refused():
    x, k = array(grad=False), kc.array(np.array([0.7]))
    with kc.Tape() as tape:
        kc.launch(swing, 4, [x, k])
        kc.launch(swing, 4, [x, k])
    with pytest.raises(kc.Overwritten, match=r"tangents of launch 0 \(swing\) need.*(\n.*)*requires_grad=True"):
        tape.jvp({x: np.ones(4)})


def test_operations_take_tangents():
    x, y, z = array(), kc.zeros(4, real=kc.float64), kc.zeros(4, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(wave, 4, [x], [y])
        z.numpy()[...] = 3 * y.numpy() ** 2

        def back():
            y.grad.numpy()[...] += 6 * y.numpy() * z.grad.numpy()

        tape.record(back, reads=[y], writes=[z], tangent=lambda dy: 6 * y.numpy() * dy)
    slope = 6 * y.numpy() * (np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy()))
    found = tape.jvp({x: np.eye(4)[:3]}, outputs=[z])[z].numpy()
    np.testing.assert_allclose(found, np.diag(slope)[:3], rtol=1e-14)


def test_an_operation_without_a_tangent_is_named():
    x, y, z = array(), kc.zeros(4, real=kc.float64), kc.zeros(4, real=kc.float64)

    def cut_it():
        pass

    with kc.Tape() as tape:
        kc.launch(wave, 4, [x], [y])
        tape.record(cut_it, reads=[y], writes=[z])
    with pytest.raises(kc.NotDifferentiable, match=r"operation 1 \(cut_it\) has no tangent") as error:
        tape.jvp({x: np.ones(4)})
    assert "test_tangents.py" in str(error.value) and "tangent=function" in error.value.advice
    unrelated = array(seed=3)
    with kc.Tape() as tape:
        tape.record(cut_it, reads=[x], writes=[z])
        kc.launch(wave, 4, [unrelated], [y])
    assert tape.jvp({unrelated: np.ones(4)}, outputs=[y])[y].numpy().any()


@pytest.mark.parametrize("every", [None, 1, 4])
def test_checkpoints_push_as_the_plain_tape_does(every):
    found = []
    for checked in (False, True):
        x, k = array(), kc.array(np.array([0.7]), requires_grad=True)
        with kc.Tape() as tape:
            if checked:
                kc.checkpoint(lambda _, x=x, k=k: kc.launch(swing, 4, [x, k]), [x], 10, every)
            else:
                for _ in range(10):
                    kc.launch(swing, 4, [x, k])
        given = {x: np.eye(4)[:2], k: np.array([[1.0], [0.0]])}
        before = x.numpy().copy()
        found.append(tape.jvp(given, outputs=[x])[x].numpy())
        assert x.numpy().tobytes() == before.tobytes()
        tape.backward(grads={x: np.ones(4)})
        for j in range(2):
            law = x.grad.numpy() @ given[x][j] + k.grad.numpy() @ given[k][j]
            assert found[-1][j].sum() == pytest.approx(law, rel=1e-12)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-13)


@pytest.mark.parametrize("what", [
    kc.scan, lambda a: kc.scan(a, exclusive=True), kc.sort, lambda a: kc.sort(a, a)[1], kc.reduce,
    lambda a: kc.reduce(a, "min"), lambda a: kc.reduce(a, "max"), lambda a: kc.reduce(a, "prod"),
    lambda a: kc.unique(kc.sort(a))[0],
])  # fmt: skip
def test_primitives_push_what_they_pull(what):
    x = array()
    with kc.Tape() as tape:
        y = what(x)
    dx = np.random.default_rng(1).standard_normal((3, 4))
    dy = tape.jvp({x: dx}, outputs=[y])[y].numpy()
    w = np.random.default_rng(2).standard_normal(y.shape)
    tape.backward(grads={y: w})
    np.testing.assert_allclose(dy @ w, dx @ x.grad.numpy(), rtol=1e-12)


def test_copies_and_views_carry_tangents_along():
    x, y = array(6), kc.zeros(6, real=kc.float64)
    with kc.Tape() as tape:
        y[1:4].assign(x[0:3])
        y.assign(y[::-1])
        y[0:1].zero_()
        kc.launch(wave, 3, [y[::2]], [x[3:]])
    dx = np.random.default_rng(1).standard_normal((2, 6))
    found = tape.jvp({x: dx}, outputs=[x, y])
    w = [np.random.default_rng(s).standard_normal(6) for s in (2, 3)]
    tape.backward(grads={x: w[0], y: w[1]})
    law = found[x].numpy() @ w[0] + found[y].numpy() @ w[1]
    np.testing.assert_allclose(law, dx @ x.grad.numpy(), rtol=1e-12)


def test_the_tape_goes_on_after_tangents():
    x, y, z = array(), kc.zeros(4, real=kc.float64), kc.zeros(4, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(wave, 4, [x], [y])
    tape.jvp({x: np.ones(4)})
    with tape:
        kc.launch(wave, 4, [y], [z])
    assert z in tape.jvp({x: np.ones(4)})
    x.assign(x.numpy() + 1)
    with pytest.raises(kc.Overwritten):
        tape.jvp({x: np.ones(4)})
    tape.replay()
    slope = along(lambda v: np.sin(np.sin(v) * v) * np.sin(v) * v, x.numpy(), np.ones(4))
    np.testing.assert_allclose(tape.jvp({x: np.ones(4)})[z].numpy(), slope, rtol=1e-7)


@pytest.mark.parametrize(("tangents", "said"), [
    (lambda x, y: {x: np.ones(3)}, r"shape \(4,\) has shape \(3,\).*(\n.*)*\(k, 4\)"),
    (lambda x, y: {x: np.ones((2, 4)), y: np.ones(4)}, "as many tangents, not 2, one without the axis"),
    (lambda x, y: {array(): np.ones(4)}, "no launch that this tape recorded"),
    (lambda x, y: [x], "tangents is a dictionary, not list"),
    (lambda x, y: {"x": 1.0}, "a key of tangents is an array"),
    (lambda x, y: {x: "abc"}, "made of numbers"),
])  # fmt: skip
def test_wrong_questions_are_answered(tangents, said):
    x, y = array(), kc.zeros(4, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(wave, 4, [x], [y])
        with pytest.raises(kc.TapeError, match="leave its `with` block first"):
            tape.jvp({x: np.ones(4)})
    with pytest.raises(kc.KernelError, match=said):
        tape.jvp(tangents(x, y))


# -- second order
@kc.kernel
def energy(x: kc.Array[float], k: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    p = 1.0
    for _ in range(3):
        p *= kc.sin(x[i]) + 0.2 * k[0]
    kc.atomic_add(out, 0, p * x[i])


def rolled(start, k, n=4):
    """A rollout with an energy at its end: tape, state, parameter, loss."""
    x, k = kc.array(start.copy(), requires_grad=True), kc.array(k.copy(), requires_grad=True)
    loss = kc.zeros(1, real=kc.float64)
    with kc.Tape() as tape:
        for _ in range(3):
            kc.launch(swing, n, [x, k])
        kc.launch(energy, n, [x, k], [loss])
    return tape, x, k, loss


@pytest.mark.parametrize("n", [4, 40])
def test_hessian_products_equal_differences_of_the_gradient(n):
    random = np.random.default_rng(0)
    start, k = random.uniform(0.5, 1, n), np.array([0.7])
    v, w = random.standard_normal((2, n)), random.standard_normal((2, 1))
    tape, x, kk, loss = rolled(start, k, n)
    tape.backward(loss)
    gradient = x.grad.numpy().copy()
    found = tape.hvp(loss, {x: v, kk: w})
    assert found[x].shape == (2, n) and x.grad.numpy().tobytes() == gradient.tobytes()
    for j in range(2):
        ends = []
        for h in (1e-6, -1e-6):
            moved = rolled(start + h * v[j], k + h * w[j], n)
            moved[0].backward(moved[3])
            ends.append(np.concatenate([moved[1].grad.numpy(), moved[2].grad.numpy()]))
        got = np.concatenate([found[x].numpy()[j], found[kk].numpy()[j]])
        np.testing.assert_allclose(got, (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-8)
    alone = tape.hvp(loss, {x: v[0]})[x]
    assert alone.shape == (n,)


@pytest.mark.parametrize("what", ["sum", "min", "max"])
def test_reductions_and_copies_bend_nothing_by_themselves(what):
    x, y = array(), kc.zeros(4, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(wave, 4, [x], [y])
        y.assign(y[::-1])
        loss = kc.reduce(kc.scan(kc.sort(y)), what)
    v = np.random.default_rng(1).standard_normal((2, 4))
    found = tape.hvp(loss, {x: v})[x].numpy()
    assert found[0] @ v[1] == pytest.approx(found[1] @ v[0], rel=1e-12)
    second = 2 * np.cos(x.numpy()) - x.numpy() * np.sin(x.numpy())
    tape.backward(loss)
    weights = x.grad.numpy() / (np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy()))
    np.testing.assert_allclose(found, v * weights * second, rtol=1e-12)


def test_an_operation_on_the_way_to_the_loss_has_no_second_derivative():
    x, y = array(), kc.zeros(4, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(wave, 4, [x], [y])
        loss = kc.reduce(y, "prod")
    with pytest.raises(kc.NotDifferentiable, match=r"operation 1 \(kc.reduce\) has no second derivative"):
        tape.hvp(loss, {x: np.ones(4)})


@kc.kernel
def drift(x: kc.Array[float], v: kc.Array[float], k: kc.Array[float], c: kc.Array[float]):
    i = kc.tid()
    v[i] = v[i] - 0.1 * k[0] * kc.sin(x[i]) * c[i]
    x[i] = x[i] + 0.1 * v[i] * v[i]


@pytest.mark.parametrize(("steps", "every"), [(7, 3), (6, 2), (4, 9), (1, 1)])
@pytest.mark.parametrize("moves", ["x", "k", "c", "xkc"])
def test_hessian_products_go_through_checkpoints(moves, steps, every):
    random = np.random.default_rng(0)
    start = {"x": random.uniform(0.5, 1, 4), "v": random.uniform(-1, 1, 4), "k": np.array([0.7]), "c": np.ones(4)}
    ways = {name: random.standard_normal((3, *start[name].shape)) for name in moves}

    def rolled(checkpointed):
        a = {name: kc.array(value.copy(), requires_grad=name != "v") for name, value in start.items()}
        x, v, loss = kc.zeros(4, real=kc.float64), kc.zeros(4, real=kc.float64), kc.zeros(1, real=kc.float64)
        with kc.Tape() as tape:
            kc.launch(wave, 4, [a["x"]], [x])
            v.assign(a["v"])
            if checkpointed:
                kc.checkpoint(lambda _: kc.launch(drift, 4, [x, v, a["k"], a["c"]]), [x, v], steps, every)
            else:
                for _ in range(steps):
                    kc.launch(drift, 4, [x, v, a["k"], a["c"]])
            kc.launch(energy, 4, [x, a["k"]], [loss])
            x.zero_()  # what the steps ran with is gone
        return tape, a, loss

    plain, a, loss = rolled(False)
    kept, b, same = rolled(True)
    for _ in range(2):
        expected = plain.hvp(loss, {a[name]: way for name, way in ways.items()})
        found = kept.hvp(same, {b[name]: way for name, way in ways.items()})
        for name in moves:
            e = expected[a[name]].numpy()
            np.testing.assert_allclose(found[b[name]].numpy(), e, rtol=1e-12, atol=1e-14 * np.abs(e).max())
        plain.replay(), kept.replay()
    kept.backward(same), plain.backward(loss)
    np.testing.assert_allclose(b["x"].grad.numpy(), a["x"].grad.numpy(), rtol=1e-13)


def test_checkpoints_of_checkpoints_have_second_derivatives():
    x, k, loss = array(), kc.array(np.array([0.7]), requires_grad=True), kc.zeros(1, real=kc.float64)
    v = np.random.default_rng(1).standard_normal((2, 1))

    def inner(_):
        kc.checkpoint(lambda _: kc.launch(swing, 4, [x, k]), [x], 3, 2)

    found = []
    for through in (inner, lambda _: [kc.launch(swing, 4, [x, k]) for _ in range(3)]):
        x.assign(np.linspace(0.5, 1, 4)), loss.zero_()
        with kc.Tape() as tape:
            kc.checkpoint(through, [x], 4, 2)
            kc.launch(energy, 4, [x, k], [loss])
        tape.backward(loss, add=False)
        found.append(np.concatenate([tape.hvp(loss, {k: v})[k].numpy(), k.grad.numpy()[None]]))
    np.testing.assert_allclose(*found, rtol=1e-12)
    assert found[0].all()


def test_a_rule_of_the_user_in_a_loop_is_not_differentiated_again():
    x, f = array(), kc.zeros(4, real=kc.float64)
    with pytest.raises(kc.NotDifferentiable, match="cannot be differentiated again"), kc.Tape():
        kc.launch(slopes_by_rule, 4, [x], [f])


@kc.func
def ruled(a: float) -> float:
    return a * a


@ruled.adjoint
def _(a: float, adj: float) -> float:
    return 3.0 * a * adj


@kc.func
def looped(a: float) -> float:
    p = 1.0
    while p < 9.0:  # a loop that is not unrolled
        p *= 1.0 + ruled(a)
    return p


@kc.kernel
def slopes_by_rule(x: kc.Array[float], f: kc.Array[float]):
    i = kc.tid()
    f[i] = kc.grad(looped)(x[i])


def test_hvp_asks_for_a_loss_and_for_leaves():
    tape, x, k, loss = rolled(np.ones(4), np.ones(1))
    with pytest.raises(kc.NonScalarLoss):
        tape.hvp(x, {x: np.ones(4)})
    y, out = array(grad=False), kc.zeros(1, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(energy, 4, [y, k], [out])
    with pytest.raises(kc.CutGradient, match="does not require a gradient"):
        tape.hvp(out, {y: np.ones(4)})


@kc.func
def potential(x: float, k: float) -> float:
    s = 0.0
    for i in range(4):
        s += kc.sin(x * k + s) * x
        if s > 2.0:
            break
    return s


@kc.func
def force_power(x: float, k: float) -> float:
    a, b = kc.grad(potential)(x, k)
    p = 1.0
    i = 0
    while i < 2:
        p *= a + 0.3 * b
        i += 1
    return p


@kc.kernel
def forces(x: kc.Array[float], k: kc.Array[float], f: kc.Array[float]):
    i = kc.tid()
    a, b = kc.grad(potential)(x[i], k[0])
    f[i] = a * a + b


@kc.kernel
def powers(x: kc.Array[float], k: kc.Array[float], f: kc.Array[float]):
    i = kc.tid()
    a, b = kc.grad(force_power)(x[i], k[0])
    f[i] = kc.sin(a) + b


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("kernel", [forces, powers])
@pytest.mark.parametrize("n", [3, 37])
def test_gradients_of_loops_inside_of_kernels_are_differentiated_again(kernel, n, device):
    x, k = array(n), kc.array(np.array([0.8]), requires_grad=True)
    f = kc.zeros(n, real=kc.float64)
    kc.testing.gradcheck(kernel, n, [x, k], [f], device=device)
    with kc.Tape() as tape:
        kc.launch(kernel, n, [x, k], [f], device=device)
        loss = kc.reduce(f)
    v, w = (np.random.default_rng(s).standard_normal((2, n)) for s in (1, 2))
    h = tape.hvp(loss, {x: v})[x].numpy()
    assert h[0] @ v[1] == pytest.approx(h[1] @ v[0], rel=1e-10)
    dots = tape.jvp({x: v, k: w[:, :1]}, outputs=[f])[f].numpy()
    weights = np.linspace(1, 2, n)
    tape.backward(grads={f: weights})
    np.testing.assert_allclose(dots @ weights, v @ x.grad.numpy() + w[:, :1] @ k.grad.numpy(), rtol=1e-11)


@kc.kernel
def stretches(x: kc.Array[kc.float3], e: kc.Array[float]):
    i = kc.tid()
    d = x[i + 1] - x[i]
    s = kc.length(d) / 0.5 - kc.sqrt(4.0 * kc.dot(d, d))
    t = kc.length(d) - 0.5
    kc.atomic_add(e, 0, t * t + s * s + d[1] * d[1] / kc.length(d))


def test_the_energy_of_springs_at_rest_has_a_curvature():
    """All adjoints are zero there: what counts is how they move."""
    points = np.arange(5)[:, None] * np.array([0.3, 0.0, 0.4])
    way = np.random.default_rng(0).normal(size=points.shape)

    def gradient(step):
        x = kc.array(points + step * way, dtype=kc.float3, requires_grad=True)
        e = kc.zeros(1, real=kc.float64)
        with kc.Tape() as tape:
            kc.launch(stretches, 4, [x], [e])
        tape.backward(e)
        return x, e, tape, x.grad.numpy().copy()

    x, e, tape, still = gradient(0.0)
    assert np.abs(still).max() < 1e-15
    near = (gradient(1e-6)[3] - gradient(-1e-6)[3]) / 2e-6
    assert np.allclose(tape.hvp(e, {x: way})[x].numpy(), near, atol=1e-8) and np.abs(near).max() > 1


def test_weights_move_with_leaves():
    """hvp(grads=, turns=) is the slope of a gradient whose weights move, too, for one direction and for many."""
    rng = np.random.default_rng(1)
    points, w, other = rng.normal(size=(3, 6, 3)) + np.arange(6)[:, None]
    x, e = kc.array(points, dtype=kc.float3, requires_grad=True), kc.zeros((6, 3), real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(turned, 5, [x], [e])
    for k in (1, 6):
        ways, turns = rng.normal(size=(2, k, 6, 3))
        for weights in (w, other):  # The same program with other weights.
            found = tape.hvp(tangents={x: ways}, grads={e: weights}, turns={e: turns})[x].numpy()
            for j in range(k):
                sides = []
                for h in (1e-6, -1e-6):
                    y = kc.array(points + h * ways[j], dtype=kc.float3, requires_grad=True)
                    out = kc.zeros((6, 3), real=kc.float64)
                    with kc.Tape() as beside:
                        kc.launch(turned, 5, [y], [out])
                    beside.backward(grads={out: weights + h * turns[j]})
                    sides.append(y.grad.numpy().copy())
                assert np.allclose(found[j], (sides[0] - sides[1]) / 2e-6, atol=1e-7)
    with pytest.raises(kc.TapeError, match="give its weights"):
        tape.hvp(tangents={x: ways}, grads={}, turns={e: turns})
    with pytest.raises(kc.WrongShape, match="along 1 directions, and arrays along 6"):
        tape.hvp(tangents={x: ways}, grads={e: w}, turns={e: w})


@kc.kernel
def turned(x: kc.Array[kc.float3], out: kc.Array[float, 2]):
    i = kc.tid()
    c = kc.cross(x[i], x[i + 1]) / kc.length(x[i])
    for k in range(3):
        kc.atomic_add(out, i + k % 2, k, c[k])


def test_a_kernel_may_say_that_it_has_a_first_derivative_only():
    @kc.kernel(curvature=False)
    def squares(x: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        y[i] = x[i] * x[i]

    x, y = kc.array(np.array([2.0]), requires_grad=True), kc.zeros(1, real=kc.float64)
    with kc.Tape() as tape:
        kc.launch(squares, 1, [x], [y])
    tape.backward(y)
    assert x.grad.numpy() == tape.jvp({x: [1.0]})[y].numpy() == 4
    with pytest.raises(kc.NotDifferentiable, match="squares has a first derivative only"):
        tape.hvp(y, {x: [1.0]})
    torch = pytest.importorskip("torch")
    op = kc.torch.op(squares, dim=1, outputs=[1])
    t = torch.tensor([2.0], dtype=torch.float64)
    assert torch.func.jacfwd(op)(t) == torch.func.jacrev(op)(t) == 4
    with pytest.raises(kc.NotDifferentiable, match="first derivative only"):
        torch.func.hessian(lambda t: op(t).sum())(t)
