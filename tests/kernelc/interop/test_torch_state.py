"""What a torch operation keeps, for how long, and that calls do not disturb each other."""

import gc
import threading
import weakref

import numpy as np
import pytest

import kernelc as kc

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck  # noqa: E402


@kc.kernel
def square(x: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i]


@kc.kernel
def pair(x: kc.Array[float], w: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = x[i] * x[i] * w[i]


@kc.kernel
def weigh(x: kc.Array[float], w: kc.Array[float], y: kc.Array[float]):
    i = kc.tid()
    y[i] = kc.exp(x[i] * w[i])


def leaf(n=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, generator=generator, dtype=torch.float64).requires_grad_()


class Watch:
    """A function that leaves weak references to the memory of its intermediate arrays."""

    def __init__(self):
        self.memory = []

    def __call__(self, x):
        made = [kc.zeros(x.shape, real=x.real) for _ in range(3)]
        for a, b in zip([x, *made[:-1]], made):
            kc.launch(square, x.shape[0], [a], [b])
        self.memory += [weakref.ref(a.numpy().base) for a in made[:-1]]
        return made[-1]

    def alive(self):
        return sum(r() is not None for r in self.memory)


@pytest.fixture(autouse=True)
def _without_collector():
    """Memory must not wait for Python's cycle collector, which does not know how large it is."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# -- for how long
def test_what_a_call_keeps_is_freed_after_backward():
    watch, x = Watch(), leaf()
    y = kc.torch.function(watch)(x)
    assert watch.alive() == 2
    loss = y.sum()
    loss.backward()
    assert watch.alive() == 0
    assert y.grad_fn is not None and loss is not None
    torch.testing.assert_close(x.grad, 8 * x.detach() ** 7)


def test_what_a_call_keeps_stays_as_long_as_the_graph_is_retained():
    watch, x = Watch(), leaf()
    y = kc.torch.function(watch)(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward(retain_graph=True)
    assert watch.alive() == 2
    y.sum().backward()
    assert watch.alive() == 0


def test_what_a_call_keeps_is_freed_with_its_graph():
    watch = Watch()
    y = kc.torch.function(watch)(leaf())
    assert watch.alive() == 2
    del y
    assert watch.alive() == 0


def test_nothing_is_kept_without_gradients():
    watch, x = Watch(), leaf()
    with torch.no_grad():
        y = kc.torch.function(watch)(x)
    z = kc.torch.function(watch)(x.detach())
    assert watch.alive() == 0 and y.grad_fn is None and z.grad_fn is None


def test_a_call_that_fails_keeps_nothing():
    watch = Watch()

    def broken(x):
        watch(x)
        raise ValueError

    for x in (leaf(), leaf().detach()):
        with pytest.raises(ValueError):  # noqa: PT011
            kc.torch.function(broken)(x)
    assert watch.alive() == 0


def test_graphs_that_refer_to_a_changed_input_are_freed():
    """x.add_(y) makes x depend on the operation that keeps x: no cycle may come of it."""
    watch, x = Watch(), leaf().clone()
    y = kc.torch.function(watch)(x)
    x.add_(y)
    assert watch.alive() == 2
    del x, y
    assert watch.alive() == 0


def test_a_second_derivative_that_is_refused_keeps_nothing():
    """The error is raised from inside of torch's graph, which Python's collector does not see through."""
    from kernelc.torch import kept

    def refused():
        x, f = leaf(), kc.torch.function(_squared)
        (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        for again in (lambda: g.sum().backward(), lambda: torch.autograd.grad((g + x**3).sum(), x)):
            with pytest.raises(kc.TapeError, match="first derivative only"):
                again()
        with pytest.raises(kc.TapeError, match="first derivative only"):
            torch.autograd.gradgradcheck(f, (x,))

    before = set(kept.tickets)
    refused()
    gc.collect()
    assert set(kept.tickets) <= before


def test_memory_does_not_grow_over_many_calls():
    from kernelc.torch import kept

    others = set(kept.tickets)  # of graphs that other tests left, if torch still holds them
    x = leaf()
    for f in (kc.torch.function(_squared), kc.torch.op(square, 5, outputs=[5])):
        f(x).sum().backward()
        before = len(gc.get_objects())
        for _ in range(50):
            x.grad = None
            f(x).sum().backward()
        assert len(gc.get_objects()) - before < 10
    assert set(kept.tickets) <= others


# -- buffers from outside
class Simulator:
    """Keeps its buffers between calls, as simulators do."""

    def __init__(self, n, lazy=False):
        self.state = None if lazy else kc.zeros(n, real=kc.float64)
        self.force = kc.zeros(n, real=kc.float64)

    def __call__(self, x, w):
        if self.state is None:
            self.state = kc.zeros(x.shape, real=x.real)
        self.state.assign(x)
        for _ in range(3):
            kc.launch(pair, x.shape[0], [self.state, w], [self.force])
            self.state.assign(self.force)
        return self.state


def test_buffers_that_calls_share_do_not_leak_between_them():
    f = kc.torch.function(Simulator(4))
    assert gradcheck(f, (leaf(4), leaf(4, seed=1)))
    x, z, w = leaf(4), leaf(4, seed=2), torch.ones(4, dtype=torch.float64)
    first, second = f(x, w), f(z, w)
    torch.testing.assert_close(first, x**8)
    torch.testing.assert_close(second, z**8)
    second.sum().backward()
    first.sum().backward()
    torch.testing.assert_close(x.grad, 8 * x.detach() ** 7)
    torch.testing.assert_close(z.grad, 8 * z.detach() ** 7)


def test_an_array_that_the_function_keeps_does_not_change_the_tensor_that_it_returned():
    for again in (torch.no_grad, torch.enable_grad):
        f = kc.torch.function(Simulator(4, lazy=True))
        x, w = leaf(4), torch.ones(4, dtype=torch.float64)
        first = f(x, w)
        with again():
            f(torch.zeros(4, dtype=torch.float64, requires_grad=True), w)
        torch.testing.assert_close(first, x**8)
        first.sum().backward()
        torch.testing.assert_close(x.grad, 8 * x.detach() ** 7)


def test_gradcheck_of_a_function_that_makes_its_buffers_in_its_first_call():
    class Lazy:
        """The buffer is no output: only the reverse sweep reads it."""

        buffer = None

        def __call__(self, x):
            if self.buffer is None:
                self.buffer = kc.zeros(x.shape, real=x.real)
            kc.launch(square, x.shape[0], [x], [self.buffer])
            return _squared(self.buffer)

    assert gradcheck(kc.torch.function(Lazy()), (leaf(3),))
    assert gradcheck(kc.torch.function(Simulator(3, lazy=True)), (leaf(3), leaf(3, seed=1)))
    lazy = Lazy()
    f, x = kc.torch.function(lazy), leaf(3)
    y = f(x)
    kc.launch(square, 3, [np.ones(3)], [lazy.buffer])
    with pytest.raises(kc.Overwritten):
        y.sum().backward()


def test_arrays_from_outside_that_are_written_after_the_call_are_found():
    w = kc.array(np.full(3, 2.0))

    def f(x):
        y = kc.zeros(3, real=x.real)
        kc.launch(pair, 3, [x, w], [y])
        return y

    x = leaf(3)
    y = kc.torch.function(f)(x)
    w.assign(np.zeros(3))
    with pytest.raises(kc.Overwritten):
        y.sum().backward()


def test_leaves_from_outside_collect_their_gradient():
    w = kc.array(np.full(3, 2.0), requires_grad=True)

    def f(x):
        y = kc.zeros(3, real=x.real)
        kc.launch(pair, 3, [x, w], [y])
        return y

    x = leaf(3)
    for n in (1, 2):
        kc.torch.function(f)(x).sum().backward()
        np.testing.assert_allclose(w.grad.numpy(), n * x.detach().numpy() ** 2)


def test_numpy_memory_that_the_function_keeps_is_not_given_away():
    buffer = np.zeros(4)

    def f(x):
        y = kc.array(buffer)
        kc.launch(square, 4, [x], [y])
        return y

    x = leaf(4)
    y = kc.torch.function(f)(x)
    buffer[:] = 0
    torch.testing.assert_close(y, x * x)


# -- threads
def test_many_threads_at_once():
    weights = torch.linspace(0.1, 1.0, 64, dtype=torch.float64)

    def rollout(x, w):
        for _ in range(3):
            y = kc.zeros(x.shape, real=x.real)
            kc.launch(weigh, x.shape[0], [x, w], [y])
            x = y
        return x

    def reference(x):
        for _ in range(3):
            x = torch.exp(x * weights)
        return x

    f, g = kc.torch.function(rollout), kc.torch.op(square, 64, outputs=[64])
    f(torch.zeros(64, dtype=torch.float64), weights)
    wrong = []

    def work(seed):
        for k in range(15):
            x = (0.1 * leaf(64, seed=100 * seed + k)).detach().requires_grad_()
            f(g(x), weights).sum().backward()
            z = x.detach().clone().requires_grad_()
            reference(z * z).sum().backward()
            if not torch.allclose(x.grad, z.grad, rtol=1e-10):
                wrong.append((seed, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_forward_and_backward_in_different_threads():
    x = leaf()
    y = kc.torch.function(Watch())(x).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    torch.testing.assert_close(x.grad, 8 * x.detach() ** 7)


def test_one_graph_backward_in_several_threads():
    x = leaf()
    y = kc.torch.function(Watch())(x)
    results = []

    def work():
        for _ in range(20):
            results.append(torch.autograd.grad(y.sum(), x, retain_graph=True)[0])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 60
    for g in results:
        torch.testing.assert_close(g, 8 * x.detach() ** 7)


def test_a_tape_of_another_thread_does_not_see_the_call():
    x, inside, leave = leaf(), threading.Event(), threading.Event()
    tapes = []

    def hold():
        with kc.Tape() as tape:
            inside.set()
            leave.wait(20)
        tapes.append(tape)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(20)
    kc.torch.function(Watch())(x).sum().backward()
    leave.set()
    thread.join()
    assert not tapes[0].entries
    torch.testing.assert_close(x.grad, 8 * x.detach() ** 7)


# -- torch's own machinery
@pytest.mark.parametrize("reentrant", [True, False])
def test_torch_checkpoint(reentrant):
    from torch.utils.checkpoint import checkpoint

    for f in (kc.torch.function(Watch()), kc.torch.op(square, 5, outputs=[5])):
        x = leaf()
        y = checkpoint(lambda x, f=f: f(torch.sin(x)), x, use_reentrant=reentrant)
        y.sum().backward()
        z = x.detach().clone().requires_grad_()
        f(torch.sin(z)).sum().backward()
        torch.testing.assert_close(x.grad, z.grad)


def test_hooks_that_copy_saved_tensors_work_or_say_why_not():
    for f in (kc.torch.function(_squared), kc.torch.op(square, 5, outputs=[5])):
        x = leaf()
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
            y = f(x)
        if f.__name__ == "square":
            y.sum().backward()
            torch.testing.assert_close(x.grad, 2 * x.detach())
        else:
            with pytest.raises(kc.TapeError, match="is gone"):
                y.sum().backward()


def test_optimizers():
    x, target = leaf().detach().requires_grad_(), torch.linspace(0.5, 1.5, 5, dtype=torch.float64)
    optimizer = torch.optim.Adam([x], lr=0.05)
    f = kc.torch.function(lambda x: _squared(x))
    for _ in range(400):
        optimizer.zero_grad()
        loss = ((f(x) - target) ** 2).sum()
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-6


def _squared(x):
    y = kc.zeros(x.shape, real=x.real)
    kc.launch(square, x.shape[0], [x], [y])
    return y


# -- checkpoints inside
@kc.kernel
def decay(w: kc.Array[float], s: kc.Array[float]):
    i = kc.tid()
    s[i] = s[i] * s[i] * 0.3 + w[i] * s[i]


def test_kc_checkpoint_inside_a_function():
    def on_a_state(x, w):
        s = kc.zeros(x.shape, real=x.real)
        s.assign(x)
        kc.checkpoint(lambda k: kc.launch(decay, x.shape[0], [w], [s]), [s], 7)
        return s

    def on_the_input(x, w):
        kc.checkpoint(lambda k: kc.launch(decay, x.shape[0], [w], [x]), [x], 7)
        return x

    for rollout in (on_a_state, on_the_input):
        f, x, w = kc.torch.function(rollout), leaf(3), leaf(3, seed=1)
        before, y = x.detach().clone(), f(x, w)
        value = y.detach().clone()
        y.sum().backward(retain_graph=True)
        assert torch.equal(y, value) and torch.equal(x, before)
        assert gradcheck(f, (x, w))


# -- the other way round: torch on a tape
def test_a_torch_module_on_a_tape():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).double()
    x = kc.array(np.linspace(-1.0, 1.0, 4), requires_grad=True)
    h, u, y = (kc.zeros(4, real=kc.float64) for _ in range(3))

    def forward():
        with torch.no_grad():
            u.torch().copy_(module(h.torch()))

    def backward():
        inner = h.torch().clone().requires_grad_()
        with torch.enable_grad():
            out = module(inner)
        out.backward(u.grad.torch())
        h.grad.torch().add_(inner.grad)

    with kc.Tape() as tape:
        kc.launch(square, 4, [x], [h])
        forward()
        tape.record(backward, reads=[h], writes=[u], forward=forward)
        kc.launch(square, 4, [u], [y])

    def reference(x):
        return (module(x * x) ** 2).sum()

    def check():
        z = torch.tensor(x.numpy(), requires_grad=True)
        module.zero_grad()
        reference(z).backward()
        expected = [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        tape.zero()
        tape.backward(grads={y: np.ones(4)})
        np.testing.assert_allclose(y.numpy().sum(), reference(z).item())
        np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=1e-10)
        for p, g in zip(module.parameters(), expected):
            torch.testing.assert_close(p.grad, g)

    check()
    x.assign(np.array([0.3, -0.2, 0.9, 0.1]))
    tape.replay()
    check()
