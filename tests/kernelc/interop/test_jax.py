"""kc.jax.op: kernels called by XLA itself. The witnesses are differences, and the same formula in operations of JAX."""

import pickle
import threading
from functools import partial

import numpy as np
import pytest

import kernelc as kc

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from kernelc.jax import bridge  # noqa: E402


@pytest.fixture(autouse=True)
def both_precisions():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@kc.kernel
def wave(
    x: kc.Array[float], w: kc.Array[float], k: float, y: kc.Array[float], z: kc.Array[kc.float3], n: kc.Array[int]
):  # fmt: skip
    i = kc.tid()
    y[i] = kc.sin(x[i]) * w[i] * k + x[i] * x[i] * x[i]
    z[i] = kc.float3(w[i], w[i] * w[i], x[i] * w[i])
    n[i] = i


@kc.kernel
def drain(x: kc.Array[float], y: kc.Array[float]):
    """Writes to its input: of which JAX must not notice anything."""
    i = kc.tid()
    y[i] = x[i] * x[i] * x[i]
    x[i] = 0.0


@kc.kernel
def total(x: kc.Array[float], out: kc.Array[float]):
    kc.atomic_add(out, 0, kc.exp(x[kc.tid()]))


@kc.kernel
def smallest(x: kc.Array[float], out: kc.Array[float]):
    kc.atomic_min(out, 0, kc.exp(x[kc.tid()]) - 9.0)


@kc.kernel
def powers(x: kc.Array[float], n: int, y: kc.Array[float]):
    i = kc.tid()
    p = 1.0
    for _ in range(n):
        p *= kc.sin(x[i]) + 1.5
        if p > 5.0:
            break
    y[i] = p


@kc.kernel
def along(x: kc.Array[kc.float3], v: kc.float3, n: int, flag: bool, y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.dot(x[i], x[i]) * kc.dot(x[i], v) * float(n) if flag else 0.0


@kc.kernel
def table(x: kc.Array[float, 2], index: kc.Array[int], y: kc.Array[float, 2]):
    i, j = kc.tid()
    y[i, j] = x[index[i], j] * x[index[i], j]


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


def size(x, *rest):
    return len(x)


wave_op = kc.jax.op(wave, size, outputs=[size, size, size])
square_op = kc.jax.op(square, size, outputs=[size])


def wave_in_jax(x, w, k):
    return jnp.sin(x) * w * k + x**3, jnp.stack([w, w * w, x * w], -1), jnp.arange(len(x), dtype=jnp.int32)


def loss(f):
    return lambda x, w, k: (f(x, w, k)[0] ** 2).sum() + jnp.sin(f(x, w, k)[1]).sum()


def numbers(*shape, seed=0, dtype=jnp.float64):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def agree(a, b, dtype=jnp.float64):
    tolerance = 1e-11 if dtype == jnp.float64 else 2e-4
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


PRECISIONS = pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
X, W = np.random.default_rng(0).standard_normal((2, 4))


# -- values and gradients
@PRECISIONS
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_values_of_several_outputs(dtype, wrap):
    x, w = numbers(4, dtype=dtype), numbers(4, seed=1, dtype=dtype)
    agree(wrap(lambda x, w: wave_op(x, w, 0.5))(x, w), wave_in_jax(x, w, 0.5), dtype)


@PRECISIONS
def test_gradients_and_jit_in_any_order(dtype):
    args = numbers(4, dtype=dtype), numbers(4, seed=1, dtype=dtype), jnp.asarray(0.5, dtype)
    slopes = partial(jax.grad, argnums=(0, 1, 2))
    for order in (slopes, lambda f: jax.jit(slopes(f)), lambda f: slopes(jax.jit(f)),
                  lambda f: jax.jit(slopes(jax.jit(f)))):  # fmt: skip
        agree(order(loss(wave_op))(*args), order(loss(wave_in_jax))(*args), dtype)


CASES = {
    "several outputs": lambda x: wave_op(x, x + 1.0, 0.5)[:2],
    "an input that is written": kc.jax.op(drain, 4, outputs=[4]),
    "a sum": kc.jax.op(total, 4, outputs=[1]),
    "a sum of many": lambda x: kc.jax.op(total, 2000, outputs=[1])(jnp.tile(x, 500)),
    "a loop with break": lambda x: kc.jax.op(powers, 4, outputs=[4])(x, 5),
    "values of all kinds": lambda x: kc.jax.op(along, 4, outputs=[4])(
        jnp.stack([x, x * x, x + 1], -1), (1.0, 2.0, 3.0), 3, True),
    "a number as an array": lambda x: wave_op(x, x, x[0])[0],
    "two dimensions and indices": lambda x: kc.jax.op(table, (3, 2), outputs=[(3, 2)])(
        x.reshape(2, 2), jnp.array([0, 1, 0], jnp.int32)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_first_and_second_derivatives_against_differences(case):
    check_grads(CASES[case], (jnp.asarray(X),), order=2, modes=["fwd", "rev"], atol=1e-6, rtol=1e-6)


def test_the_gradient_of_a_minimum_goes_to_one_thread():
    fn = kc.jax.op(smallest, 4, outputs=[1])
    check_grads(fn, (jnp.asarray(X),), order=1, modes=["rev"])
    assert np.count_nonzero(jax.grad(lambda x: fn(x)[0])(jnp.zeros(4))) == 1


def test_second_derivatives_against_jax():
    args = numbers(4), numbers(4, seed=1), jnp.asarray(0.5)
    for wrap in (lambda f: f, jax.jit):
        found, expected = (wrap(jax.jacrev(jax.grad(loss(f), (0, 1)), (0, 1)))(*args) for f in (wave_op, wave_in_jax))
        agree(found, expected)


def reals(f):
    """The outputs that are real, of the first and the last input."""
    return lambda x, k: f(x, numbers(4, seed=1), k)[:2]


def thrice(f):
    def step(x, _):
        return 0.3 * f(x, numbers(4, seed=1), 0.5)[0], x.sum()

    return lambda x: jax.lax.scan(step, x, None, length=3)[0].sum()


X_AND_K = (np.random.default_rng(0).standard_normal(4), np.float64(0.5))
TRANSFORMS = {
    "jvp": lambda f: jax.jvp(reals(f), X_AND_K, (numbers(4, seed=2), jnp.asarray(-0.3))),
    "jvp of what does not move": lambda f: jax.jvp(lambda x: f(x, x, 0.5)[2].astype(float), (X,), (X,)),
    "jacfwd": lambda f: jax.jacfwd(reals(f), (0, 1))(*X_AND_K),
    "linearize": lambda f: jax.linearize(reals(f), *X_AND_K)[1](numbers(4, seed=2), jnp.asarray(1.0)),
    "hessian": lambda f: jax.hessian(loss(f), (0, 1, 2))(X_AND_K[0], numbers(4, seed=1), X_AND_K[1]),
    "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(reals(f)))(*X_AND_K),
    "jacfwd of jacfwd": lambda f: jax.jacfwd(jax.jacfwd(reals(f)), 1)(*X_AND_K),
    "vmap of hessian": lambda f: jax.vmap(jax.hessian(loss(f)), (0, None, None))(numbers(2, 4), numbers(4), 0.5),
    "the third, forward": lambda f: jax.jacfwd(jax.hessian(loss(f)))(X_AND_K[0], numbers(4, seed=1), 0.5),
    "the third, backward": lambda f: jax.jacrev(jax.jacrev(jax.grad(loss(f))))(X_AND_K[0], numbers(4, seed=1), 0.5),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(loss(f)))(X_AND_K[0], numbers(4, seed=1), 0.5),
    "scan": lambda f: jax.hessian(thrice(f))(X_AND_K[0]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_go_through_kernels_as_through_formulas(name):
    transform = TRANSFORMS[name]
    agree(transform(wave_op), transform(wave_in_jax))
    agree(jax.jit(lambda: transform(wave_op))(), transform(wave_in_jax))


def test_inputs_do_not_change():
    x = numbers(4)
    before = np.array(x)
    jax.jit(kc.jax.op(drain, 4, outputs=[4]))(x).block_until_ready()
    np.testing.assert_array_equal(x, before)


# -- batches
@PRECISIONS
def test_vmap_over_any_axis_and_some_inputs(dtype):
    batch, w, k = numbers(5, 4, dtype=dtype), numbers(4, seed=1, dtype=dtype), jnp.asarray(0.5, dtype)
    for axes, given in (((0, None, None), (batch, w, k)), ((None, 1, None), (w, batch.T, k)),
                        ((None, None, 0), (w, w, batch[:, 0]))):  # fmt: skip
        for wrap in (lambda f: f, jax.jit):
            agree(wrap(jax.vmap(wave_op, axes))(*given), wrap(jax.vmap(wave_in_jax, axes))(*given), dtype)


def test_vmap_nests_and_mixes_with_gradients():
    batch, w, k = numbers(5, 4), numbers(4, seed=1), jnp.asarray(0.5)
    for f in (lambda f: jax.vmap(jax.grad(loss(f)), (0, None, None))(batch, w, k),
              lambda f: jax.grad(lambda b: jax.vmap(loss(f), (0, None, None))(b, w, k).sum())(batch),
              lambda f: jax.vmap(jax.vmap(lambda x, w: f(x, w, 0.5), (None, 0)), (0, None))(batch, batch),
              lambda f: jax.jacrev(lambda x: f(x, w, 0.5)[1])(batch[0])):  # fmt: skip
        agree(f(wave_op), f(wave_in_jax))


def test_empty_arrays_and_empty_batches():
    assert square_op(jnp.zeros(0)).shape == (0,)
    assert jax.vmap(square_op)(jnp.zeros((0, 3))).shape == (0, 3)
    assert jax.vmap(square_op)(jnp.zeros((3, 0))).shape == (3, 0)


# -- what a program is made of
def test_dim_and_outputs_are_functions_of_the_arrays():
    jitted = jax.jit(square_op)
    for n in (1, 7, 300):
        agree(jitted(jnp.full(n, 3.0)), jnp.full(n, 9.0))


def test_numbers_are_constants_of_the_program_and_tracers_are_not():
    x = numbers(4)
    traced = jax.jit(lambda x, k: wave_op(x, x, k)[0])
    for k in (0.5, 2.0):
        agree(traced(x, k), wave_in_jax(x, x, k)[0])
        agree(wave_op(x, x, k)[0], wave_in_jax(x, x, k)[0])


def test_numpy_arrays_and_lists_are_arrays():
    agree(square_op(np.arange(3.0)), jnp.array([0.0, 1.0, 4.0]))
    agree(square_op([1.0, 2.0]), jnp.array([1.0, 4.0]))


def test_outputs_say_their_dtype():
    y, z, n = kc.jax.op(wave, 4, outputs=[(4, float), (4, kc.float3), (4, int)])(jnp.asarray(X), jnp.asarray(W), 0.5)
    assert (y.dtype, z.shape, n.dtype) == (jnp.float64, (4, 3), jnp.int32)


def test_a_loop_of_jax_around_a_kernel():
    def step(x, _):
        return x - 0.1 * jnp.tanh(square_op(x)), x.sum()

    def step_in_jax(x, _):
        return x - 0.1 * jnp.tanh(x * x), x.sum()

    run = [jax.jit(jax.grad(lambda x, s=s: jax.lax.scan(s, x, length=20)[1].sum())) for s in (step, step_in_jax)]
    agree(run[0](numbers(4)), run[1](numbers(4)))


def test_operations_are_pickled():
    found = pickle.loads(pickle.dumps(square_op))
    agree(found(jnp.arange(3.0)), jnp.array([0.0, 1.0, 4.0]))


def test_many_threads_at_once():
    jitted, found = jax.jit(jax.grad(lambda x: square_op(x).sum())), []
    work = [threading.Thread(target=lambda s=s: found.append((s, jitted(numbers(500, seed=s))))) for s in range(8)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(found) == 8
    for seed, slope in found:
        agree(slope, 2 * numbers(500, seed=seed))


def test_a_name_that_means_something_else_is_seen():
    scale = 2.0

    @kc.kernel
    def scaled(x: kc.Array[float], y: kc.Array[float]):
        y[kc.tid()] = x[kc.tid()] * scale

    fn = kc.jax.op(scaled, 2, outputs=[2])
    agree(fn(jnp.ones(2)), jnp.full(2, 2.0))
    scale = 3.0
    agree(fn(jnp.ones(2)), jnp.full(2, 3.0))


# -- errors
def test_a_failed_assert_names_the_line():
    @kc.kernel
    def roots(x: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        assert x[i] >= 0.0, "no negative numbers"
        y[i] = kc.sqrt(x[i])

    fn = jax.jit(kc.jax.op(roots, 3, outputs=[3]))
    agree(fn(jnp.ones(3)), jnp.ones(3))
    with pytest.raises(Exception, match=r"roots, thread 1: .*no negative numbers.*test_jax\.py"):
        fn(jnp.array([1.0, -1.0, 1.0])).block_until_ready()


def test_kernels_print(capfd):
    @kc.kernel
    def show(x: kc.Array[float], y: kc.Array[float]):
        print("x is", x[kc.tid()])

    jax.jit(kc.jax.op(show, 2, outputs=[2]))(jnp.array([1.5, 2.5])).block_until_ready()
    assert capfd.readouterr().out.splitlines() == ["x is 1.5", "x is 2.5"]


def test_a_program_of_another_process_is_refused():
    shape = jax.ShapeDtypeStruct((3,), jnp.float64)
    square_op(jnp.ones(3))
    with pytest.raises(Exception, match="kernel of another process"):
        bridge.call(np.int64(12345), [jnp.ones(3)], [shape])[0].block_until_ready()


def test_wrong_use_is_explained():
    x = jnp.asarray(X)
    for error, text, run in (
        (kc.WrongUse, "wraps a kernel", lambda: kc.jax.op(size, 4, outputs=[4])),
        (kc.WrongArity, "no outputs", lambda: kc.jax.op(square, 4, outputs=[])(x)),
        (kc.WrongArity, "takes 2 arguments", lambda: kc.jax.op(square, 4, outputs=[4])(x, x)),
        (kc.WrongRank, "'y'", lambda: kc.jax.op(square, 4, outputs=[(2, 2)])(x)),
        (kc.WrongRank, "'x'", lambda: square_op(jnp.ones((2, 2)))),
        (kc.MixedLaunch, "float32", lambda: wave_op(x, x.astype(jnp.float32), 1.0)),
        (kc.WrongDtype, "float16", lambda: square_op(x.astype(jnp.float16))),
        (kc.WrongDtype, "complex", lambda: square_op(x.astype(complex))),
        (kc.WrongDim, "dim", lambda: kc.jax.op(square, (2, 2), outputs=[4])(x)),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            run()

