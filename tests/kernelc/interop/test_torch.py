"""kc.torch: functions that launch kernels, and single kernels, as operations of autograd."""

import numpy as np
import pytest

import kernelc as kc

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck  # noqa: E402

REALS = [torch.float32, torch.float64]


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def combine(x: kc.Array[float], w: kc.Array[float], k: float, y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.sin(x[i]) * w[i] * k + x[i] * x[i]


@kc.kernel
def cube_in_place(x: kc.Array[float]):
    i = kc.tid()
    x[i] = x[i] * x[i] * x[i]


@kc.kernel
def gather(x: kc.Array[float], index: kc.Array[int], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[index[i]] * x[index[i]]


@kc.kernel
def lengths(x: kc.Array[kc.float3], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.dot(x[i], x[i])


@kc.kernel
def total(x: kc.Array[float], out: kc.Array[float]):
    i = kc.tid()
    kc.atomic_add(out, 0, kc.exp(x[i]))


@kc.kernel
def both(x: kc.Array[float], w: kc.Array[float], y: kc.Array[float], z: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]
    z[i] = x[i] * w[i]


@kc.kernel
def rank(x: kc.Array[float], y: kc.Array[float], n: kc.Array[int]):
    i = kc.tid()
    y[i] = 3.0 * x[i]
    n[i] = 1 if x[i] > 0.0 else -1


def squared(x):
    y = kc.zeros(x.shape, real=x.real)
    kc.launch(square, x.shape[0], [x], [y])
    return y


def rollout(x, w, steps):
    """Several launches that overwrite a buffer."""
    y = kc.zeros(x.shape, real=x.real)
    state = kc.zeros(x.shape, real=x.real)
    state.assign(x)
    for _ in range(steps):
        kc.launch(combine, x.shape[0], [state, w, 0.5], [y])
        state.assign(y)
    return state


square_function = kc.torch.function(squared)
square_op = kc.torch.op(square, lambda x: len(x), outputs=[lambda x: len(x)])
SQUARES = pytest.mark.parametrize("f", [square_function, square_op], ids=["function", "op"])


def leaf(*shape, dtype=torch.float64, seed=0):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.to(dtype).requires_grad_()


# -- gradients
@SQUARES
@pytest.mark.parametrize("dtype", REALS)
def test_values_and_gradients_in_both_precisions(f, dtype):
    x = leaf(5, dtype=dtype)
    y = f(x)
    assert y.dtype == dtype and y.requires_grad
    torch.testing.assert_close(y, x * x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


@SQUARES
def test_gradcheck(f):
    assert gradcheck(f, (leaf(5),))


def test_gradcheck_of_a_rollout():
    assert gradcheck(lambda x, w: kc.torch.function(rollout)(x, w, 3), (leaf(4), leaf(4, seed=1)))


def test_gradcheck_of_an_operation_with_numbers_and_vectors():
    scaled = kc.torch.op(combine, 4, outputs=[4])
    assert gradcheck(lambda x, w: scaled(x, w, 1.5), (leaf(4), leaf(4, seed=1)))
    assert gradcheck(kc.torch.op(lengths, 4, outputs=[4]), (leaf(4, 3),))
    assert gradcheck(kc.torch.op(total, 4, outputs=[1]), (leaf(4),))


def test_gradcheck_of_several_outputs():
    assert gradcheck(kc.torch.op(both, 4, outputs=[4, 4]), (leaf(4), leaf(4, seed=1)))

    def two(x, w):
        y, z = kc.zeros(4, real=x.real), kc.zeros(4, real=x.real)
        kc.launch(both, 4, [x, w], [y, z])
        return y, z

    assert gradcheck(kc.torch.function(two), (leaf(4), leaf(4, seed=1)))


@SQUARES
def test_functions_are_composed_with_torch(f):
    x = leaf(5)
    (f(torch.sin(f(x))) * x).sum().backward()
    z = x.detach().clone().requires_grad_()
    (torch.sin(z * z) ** 2 * z).sum().backward()
    torch.testing.assert_close(x.grad, z.grad)


# -- re-entrancy
@SQUARES
def test_two_forwards_before_one_backward(f):
    x, z = leaf(5), leaf(5, seed=1)
    first, second = f(x), f(z)
    first.sum().backward()
    second.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())
    torch.testing.assert_close(z.grad, 2 * z.detach())
    torch.testing.assert_close(first, x * x)


@SQUARES
def test_one_input_in_two_calls(f):
    x = leaf(5)
    (f(x) + f(x)).sum().backward()
    torch.testing.assert_close(x.grad, 4 * x.detach())


@SQUARES
def test_backward_twice_with_retain_graph(f):
    x = leaf(5)
    y = f(x)
    (first,) = torch.autograd.grad(y, x, torch.ones(5).double(), retain_graph=True)
    kept = first.clone()
    (second,) = torch.autograd.grad(y, x, 3 * torch.ones(5).double(), retain_graph=True)
    torch.testing.assert_close(first, kept)
    torch.testing.assert_close(second, 3 * first)
    y.sum().backward()
    torch.testing.assert_close(x.grad, first)


@SQUARES
def test_backward_twice_without_it_is_torchs_error(f):
    y = f(leaf(5)).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_the_same_tensor_twice_gets_both_gradients():
    x = leaf(4)
    scaled = kc.torch.op(combine, 4, outputs=[4])
    assert gradcheck(lambda x: scaled(x, x, 2.0), (x,))
    assert gradcheck(lambda x: kc.torch.function(rollout)(x, x, 2), (x,))


def test_overlapping_tensors_get_each_their_gradient():
    def product(a, b):
        y, z = kc.zeros(3, real=a.real), kc.zeros(3, real=a.real)
        kc.launch(both, 3, [a, b], [y, z])
        return z

    assert gradcheck(lambda x: kc.torch.function(product)(x[0:3], x[1:4]), (leaf(4),))


def test_wrapped_functions_inside_wrapped_functions():
    def outer(x):
        return square_function(square_function(x))

    x = leaf(4)
    f = kc.torch.function(outer)
    torch.testing.assert_close(f(x), x**4)
    assert gradcheck(f, (x,))


def test_operations_inside_wrapped_functions():
    assert gradcheck(kc.torch.function(lambda x: square_op(square_op(x))), (leaf(4),))


def test_called_with_arrays_it_is_the_function_itself():
    x = kc.array(np.array([1.0, 2.0]), requires_grad=True)
    with kc.Tape() as tape:
        y = square_function(x)
    assert not isinstance(y, torch.Tensor)
    tape.backward(grads={y: [1, 1]})
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])


# -- what is shared, and what never changes
@SQUARES
def test_the_callers_tensors_and_seeds_do_not_change(f):
    x = leaf(5)
    before, seed = x.detach().clone(), torch.arange(5.0).double()
    kept = seed.clone()
    torch.autograd.grad(f(x), x, seed)
    torch.testing.assert_close(x.detach(), before, rtol=0, atol=0)
    torch.testing.assert_close(seed, kept, rtol=0, atol=0)
    assert x._version == 0 and seed._version == 0


def test_inputs_share_their_memory():
    seen = []

    def look(x):
        seen.append(x.numpy().__array_interface__["data"][0])
        return squared(x)

    x = leaf(5)
    y = kc.torch.function(look)(x)
    assert seen == [x.data_ptr()]
    with torch.no_grad():
        kc.torch.function(look)(x)
    assert seen[1] == x.data_ptr() and y.grad_fn is not None


def test_an_input_that_is_written_is_copied_first():
    def cube(x):
        kc.launch(cube_in_place, x.shape[0], [x])
        return x

    f = kc.torch.function(cube)
    x = leaf(5)
    before = x.detach().clone()
    y = f(x)
    torch.testing.assert_close(x.detach(), before, rtol=0, atol=0)
    torch.testing.assert_close(y, x**3)
    assert gradcheck(f, (x,))
    with torch.no_grad():
        torch.testing.assert_close(f(x), before**3)
    torch.testing.assert_close(x.detach(), before, rtol=0, atol=0)


@pytest.mark.parametrize("write", [
    lambda x: x.zero_(), lambda x: x.fill_(2.0), lambda x: x[1:3].zero_(), lambda x: x.assign(np.ones(5)),
    lambda x: kc.launch(cube_in_place, 2, [x[2:4]]), lambda x: kc.launch(cube_in_place, 4, [x.reshape(5)[1:]]),
])  # fmt: skip
def test_every_way_of_writing_to_an_input_leaves_the_caller_alone(write):
    def f(x):
        first = squared(x)
        write(x)
        second = squared(x)
        y, z = kc.zeros(5, real=x.real), kc.zeros(5, real=x.real)
        kc.launch(both, 5, [first, second], [y, z])
        return z

    x = leaf(5)
    before = x.detach().clone()
    assert gradcheck(kc.torch.function(f), (x,))
    torch.testing.assert_close(x.detach(), before, rtol=0, atol=0)


def test_views_move_with_an_input_that_is_written():
    def f(x):
        tail = x[2:]
        kc.launch(cube_in_place, x.shape[0], [x])
        return squared(tail)

    x = leaf(5)
    torch.testing.assert_close(kc.torch.function(f)(x), x[2:] ** 6)
    assert gradcheck(kc.torch.function(f), (x,))


def test_numpy_views_of_inputs_cannot_be_written():
    def f(x):
        x.numpy()[0] = 7.0
        return squared(x)

    with pytest.raises(ValueError, match="read-only"):
        kc.torch.function(f)(leaf(3))


def test_operations_write_to_inputs_without_changing_them():
    @kc.kernel
    def drain(x: kc.Array[float], y: kc.Array[float]):
        i = kc.tid()
        y[i] = x[i] * x[i]
        x[i] = 0.0

    x = leaf(4)
    before = x.detach().clone()
    f = kc.torch.op(drain, 4, outputs=[4])
    assert gradcheck(f, (x,))
    torch.testing.assert_close(x.detach(), before, rtol=0, atol=0)


@SQUARES
def test_gradients_belong_to_the_caller(f):
    x = leaf(5)
    y = f(x)
    (first,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    first.zero_()
    (second,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(second, 2 * x.detach())


# -- outputs
def test_an_input_that_is_returned_is_a_tensor_of_its_own():
    f = kc.torch.function(lambda x: (x, squared(x)))
    x = leaf(4)
    same, y = f(x)
    assert same.data_ptr() != x.data_ptr()
    torch.testing.assert_close(same, x)
    assert gradcheck(f, (x,))
    assert gradcheck(kc.torch.function(lambda x: x), (x,))


def test_outputs_that_alias_each_other_and_inputs():
    def f(x):
        y = squared(x)
        return y, y, y[1:3], x[0:2]

    x = leaf(4)
    outs = kc.torch.function(f)(x)
    assert len({o.data_ptr() for o in outs}) == 4
    for out, expected in zip(outs, (x * x, x * x, x[1:3] ** 2, x[0:2])):
        torch.testing.assert_close(out, expected)
    assert gradcheck(kc.torch.function(f), (x,))


def test_reversed_and_strided_outputs():
    f = kc.torch.function(lambda x: (squared(x)[::-1], squared(x)[::2], squared(x).reshape(2, 2)))
    x = leaf(4)
    a, b, c = f(x)
    torch.testing.assert_close(a, (x * x).flip(0))
    torch.testing.assert_close(b, (x * x)[::2])
    torch.testing.assert_close(c, (x * x).reshape(2, 2))
    assert gradcheck(f, (x,))


def test_integer_outputs_are_not_differentiable():
    f = kc.torch.op(rank, 4, outputs=[4, 4])
    x = leaf(4)
    y, n = f(x)
    assert n.dtype == torch.int32 and not n.requires_grad and y.requires_grad
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((4,), 3.0).double())


def test_outputs_that_do_not_depend_on_the_inputs_need_no_gradient():
    f = kc.torch.function(lambda x: (squared(x), kc.ones(3)))
    y, constant = f(leaf(4))
    assert y.requires_grad and not constant.requires_grad


def test_outputs_without_a_gradient_count_as_zero():
    for f in (kc.torch.op(both, 4, outputs=[4, 4]), kc.torch.function(lambda x, w: _both(x, w))):
        x, w = leaf(4), leaf(4, seed=1)
        y, z = f(x, w)
        z.sum().backward()
        torch.testing.assert_close(x.grad, w.detach())
        torch.testing.assert_close(w.grad, x.detach())


def _both(x, w):
    y, z = kc.zeros(4, real=x.real), kc.zeros(4, real=x.real)
    kc.launch(both, 4, [x, w], [y, z])
    return y, z


@pytest.mark.parametrize("result", [3.0, None, (), "text", np.zeros(3), [kc.zeros(1), None]])
def test_other_results_are_refused(result):
    with pytest.raises(kc.WrongDtype, match="must return an array"):
        kc.torch.function(lambda x: result)(leaf(3))


def test_a_list_is_as_good_as_a_tuple():
    out = kc.torch.function(lambda x: [squared(x), squared(x)])(leaf(3))
    assert isinstance(out, tuple) and len(out) == 2


# -- inputs
def test_non_contiguous_inputs():
    x = leaf(4, 6)
    cuts = [lambda x: x[:, 0], lambda x: x[::2, 1], lambda x: x[0].flip(0), lambda x: x[:1, :1].expand(1, 5)[0],
            lambda x: x.t()[1]]  # fmt: skip
    for cut in cuts:
        for f in (square_function, square_op):
            torch.testing.assert_close(f(cut(x)), cut(x) ** 2)
            assert gradcheck(lambda x, f=f, cut=cut: f(cut(x)), (x,))
    flat = leaf(3, 4)
    vectors = kc.torch.op(lengths, 4, outputs=[4])
    torch.testing.assert_close(vectors(flat.t()), (flat**2).sum(0))
    assert gradcheck(lambda x: vectors(x.t()), (flat,))


def test_non_contiguous_seeds():
    for f in (square_function, square_op):
        x = leaf(4)
        f(x).backward(torch.ones(1).double().expand(4))
        torch.testing.assert_close(x.grad, 2 * x.detach())
        (g,) = torch.autograd.grad(f(x), x, torch.arange(8.0).double()[::2])
        torch.testing.assert_close(g, 2 * x.detach() * torch.tensor([0.0, 2, 4, 6]).double())


def test_gradients_for_only_some_inputs():
    for f in (kc.torch.op(combine, 4, outputs=[4]), kc.torch.function(lambda x, w, k: rollout(x, w, 2))):
        for needs in ((True, False), (False, True)):
            x, w = leaf(4).detach().requires_grad_(needs[0]), leaf(4, seed=1).detach().requires_grad_(needs[1])
            f(x, w, 0.5).sum().backward()
            assert (x.grad is not None) == needs[0] and (w.grad is not None) == needs[1]


def test_an_input_that_is_not_used_has_no_gradient():
    x, w = leaf(3), leaf(3, seed=1)
    kc.torch.function(lambda x, w: squared(x))(x, w).sum().backward()
    assert w.grad is None
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_integers_numbers_and_none_pass_through():
    def f(x, index, n, k, nothing, name):
        assert n == 3 and k == 0.5 and nothing is None and name == "a"
        y = kc.zeros(n, real=x.real)
        kc.launch(gather, n, [x, index], [y])
        return y

    x, operation = leaf(5), kc.torch.op(gather, 3, outputs=[3])
    for kind in (torch.int32, torch.int64):
        index = torch.tensor([4, 0, 4], dtype=kind)
        y = kc.torch.function(f)(x, index, 3, 0.5, None, "a")
        torch.testing.assert_close(y, x[index.long()] ** 2)
        assert gradcheck(kc.torch.function(f), (x, index, 3, 0.5, None, "a"))
        torch.testing.assert_close(operation(x, index), x[index.long()] ** 2)
        assert gradcheck(operation, (x, index))


def test_named_arguments():
    f = kc.torch.function(lambda x, *, w, steps=1: rollout(x, w, steps))
    x, w = leaf(4), leaf(4, seed=1)
    torch.testing.assert_close(f(x, w=w, steps=2), kc.torch.function(rollout)(x, w, 2))
    assert gradcheck(lambda x, w: f(x, w=w), (x, w))


def test_zero_dimensional_and_empty_tensors():
    x = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    for f in (square_function, kc.torch.op(square, 1, outputs=[1])):
        y = f(x)
        assert y.shape == (1,)
        (g,) = torch.autograd.grad(y.sum(), x)
        assert g.shape == () and g == 6.0
    for f in (square_function, kc.torch.op(square, 0, outputs=[0])):
        e = torch.zeros(0, requires_grad=True)
        f(e).sum().backward()
        assert e.grad.shape == (0,)


def test_a_scalar_parameter_may_be_a_tensor():
    x, w, k = leaf(4), leaf(4, seed=1), torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
    assert gradcheck(kc.torch.op(combine, 4, outputs=[4]), (x, w, k))
    assert gradcheck(kc.torch.op(combine, 4, outputs=[4]), (x, w, torch.tensor(0.5).double().requires_grad_()))


def test_tensors_inside_lists_are_refused():
    with pytest.raises(kc.WrongDtype, match="inside a list"):
        kc.torch.function(lambda xs: squared(xs[0]))([leaf(3)])


def test_parameters_and_modules():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return kc.torch.op(combine, 4, outputs=[4])(x, self.w, 1.0)

    layer = Layer()
    layer(torch.arange(4.0)).sum().backward()
    torch.testing.assert_close(layer.w.grad, torch.sin(torch.arange(4.0)))


# -- operations
def test_outputs_have_the_precision_of_the_inputs_and_the_element_of_the_annotation():
    @kc.kernel
    def spread(x: kc.Array[float], y: kc.Array[kc.float3], n: kc.Array[int, 2]):
        i = kc.tid()
        y[i] = kc.float3(x[i], 2.0 * x[i], 3.0)
        n[i, 1] = i

    for dtype in REALS:
        y, n = kc.torch.op(spread, 3, outputs=[3, (3, 2)])(torch.ones(3, dtype=dtype))
        assert y.shape == (3, 3) and y.dtype == dtype and n.shape == (3, 2) and n.dtype == torch.int32
        y, n = kc.torch.op(spread, 3, outputs=[(3, kc.float3), ((3, 2), int)])(torch.ones(3, dtype=dtype))
        assert y.dtype == dtype and n.tolist() == [[0, 0], [0, 1], [0, 2]]


def test_dim_and_outputs_are_functions_of_the_tensors():
    f = kc.torch.op(square, dim=lambda x: x.numel(), outputs=lambda x: [x.shape])
    for n in (1, 7):
        torch.testing.assert_close(f(torch.full((n,), 3.0)), torch.full((n,), 9.0))


def test_wrong_use_of_op_is_explained():
    x = leaf(4)
    with pytest.raises(kc.WrongArity, match="no outputs"):
        kc.torch.op(square, 4, outputs=[])(x)
    with pytest.raises(kc.WrongArity, match="takes 2 arguments"):
        kc.torch.op(square, 4, outputs=[4])(x, x)
    with pytest.raises(kc.WrongRank, match="'y'"):
        kc.torch.op(square, 4, outputs=[(4, 2)])(x)
    with pytest.raises(kc.MixedLaunch):
        kc.torch.op(combine, 4, outputs=[4])(x, x.float(), 1.0)
    with pytest.raises(kc.WrongDim):
        kc.torch.op(square, (2, 2), outputs=[4])(x)
    with pytest.raises(TypeError, match=r"kc\.torch\.function"):
        kc.torch.op(squared, 4, outputs=[4])
    with pytest.raises(TypeError, match=r"kc\.torch\.op"):
        kc.torch.function(square)


def test_large_operations_give_the_bits_of_launches():
    @kc.kernel
    def histogram(x: kc.Array[float], bins: kc.Array[float]):
        i = kc.tid()
        kc.atomic_add(bins, i % 7, kc.exp(x[i]))

    x = torch.randn(20000, dtype=torch.float32, requires_grad=True)
    y = kc.torch.op(histogram, 20000, outputs=[7])(x)
    bins = kc.zeros(7)
    kc.launch(histogram, 20000, [x.detach()], [bins])
    np.testing.assert_array_equal(y.detach().numpy(), bins.numpy())
    y.sum().backward()
    torch.testing.assert_close(x.grad, x.detach().exp())


# -- without gradients
@SQUARES
def test_under_no_grad_nothing_is_recorded(f, monkeypatch):
    monkeypatch.setattr("kernelc.torch.calls.CallTape", None)
    monkeypatch.setattr("kernelc.torch.calls.ticket_for", None)
    x = leaf(5)
    with torch.no_grad():
        y = f(x)
    assert not y.requires_grad and y.grad_fn is None
    assert not f(x.detach()).requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(f(x), x * x)


@SQUARES
def test_inference_tensors_are_inputs(f):
    with torch.inference_mode():
        w = torch.ones(4, dtype=torch.float64)
    assert (f(w) == 1).all()
    x = leaf(4)
    kc.torch.function(lambda x, w: _both(x, w))(x, w)[1].sum().backward()
    torch.testing.assert_close(x.grad, torch.ones(4).double())


def test_an_open_tape_sees_launches_under_no_grad():
    x = kc.array(np.array([1.0, 2.0]), requires_grad=True)
    y = kc.zeros(2, real=kc.float64)

    def f(t):
        kc.launch(both, 2, [x, t], [kc.zeros(2, real=kc.float64), y])
        return t

    with kc.Tape() as tape:
        kc.torch.function(f)(torch.tensor([3.0, 4.0], dtype=torch.float64))
    tape.backward(grads={y: [1, 1]})
    np.testing.assert_array_equal(x.grad.numpy(), [3, 4])


def test_calls_inside_an_open_tape_have_their_own():
    x = leaf(3)
    with kc.Tape() as tape:
        y = square_function(x)
        z = square_op(x)
    assert not tape.entries
    (y.sum() + z.sum()).backward()
    torch.testing.assert_close(x.grad, 4 * x.detach())


# -- errors
@pytest.mark.parametrize("f", [square_function, square_op])
def test_tensors_on_other_devices_are_refused(f):
    with pytest.raises(kc.WrongDevice, match="meta"):
        f(torch.zeros(3, device="meta"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.complex64, torch.int8])
def test_other_types_are_refused(dtype):
    for f in (square_function, square_op):
        with pytest.raises(kc.WrongDtype):
            f(torch.zeros(3, dtype=dtype))


def test_a_second_derivative_of_a_function_is_refused():
    x = leaf(3)
    (g,) = torch.autograd.grad(square_function(x).sum(), x, create_graph=True)
    torch.testing.assert_close(g.detach(), 2 * x.detach())
    for again in (lambda: g.sum().backward(), lambda: torch.autograd.grad((g + x**3).sum(), x)):
        with pytest.raises(kc.TapeError, match="first derivative only"):
            again()
    with pytest.raises(kc.TapeError, match="first derivative only"):
        torch.autograd.gradgradcheck(square_function, (x,))


def test_a_second_derivative_through_torch_is_refused_too():
    """Not silently without the part that goes through the kernel."""
    x = leaf(3)
    h = torch.sin(x)
    (g,) = torch.autograd.grad(square_function(h).sum(), x, create_graph=True)
    with pytest.raises(kc.TapeError):
        torch.autograd.grad(g.sum(), x)


def test_forward_mode_of_a_function_is_refused():
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(3).double(), torch.ones(3).double())
        with pytest.raises((RuntimeError, NotImplementedError)):
            square_function(x)


@SQUARES
def test_an_argument_that_changes_before_backward_is_found(f):
    x = leaf(4).clone()
    y = f(x)
    x.mul_(2.0)
    with pytest.raises(kc.Overwritten, match="in place"):
        y.sum().backward()


def test_an_output_that_changes_before_backward_is_found():
    def f(x):
        y = squared(x)
        return y, squared(y)

    x = leaf(4)
    y, z = kc.torch.function(f)(x)
    with torch.no_grad():
        y.mul_(2.0)
    with pytest.raises(kc.Overwritten, match="output 0"):
        z.sum().backward()


def test_changes_that_do_not_matter_are_allowed():
    @kc.kernel
    def thrice(x: kc.Array[float], y: kc.Array[float]):
        y[kc.tid()] = 3.0 * x[kc.tid()]

    def f(x):
        y = kc.zeros(4, real=x.real)
        kc.launch(thrice, 4, [x], [y])
        return y

    for call in (kc.torch.function(f), kc.torch.op(thrice, 4, outputs=[4])):
        x = leaf(4)
        h = x.clone()
        y = call(h)
        h.mul_(2.0)
        y.mul_(2.0)
        y.sum().backward()
        torch.testing.assert_close(x.grad, torch.full((4,), 6.0).double())


def test_errors_of_the_function_are_the_callers():
    def broken(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        kc.torch.function(broken)(leaf(3))
    with kc.Tape() as tape:
        kc.launch(square, 3, [kc.ones(3)], [kc.zeros(3)])
    assert len(tape.entries) == 1
