"""The corpus of the laws on a GPU: generated CUDA gives the results and the gradients of the interpreter.

The back end of the CPU is held to the same (laws/test_laws.py). On the stand-in, threads run backwards, so that nothing
depends on their order by accident.
"""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from gpu import standin
from gpu.conftest import REAL
from laws import bench
from laws.bench import CASES, Argument, Case, Look, Push, apart, forward_and_backward, record, spread
from laws.corpus import all as _all  # noqa: F401

import kernelc as kc
from kernelc.runtime import Array
from kernelc.runtime.cuda.launching import facts, forward_job, prebuild
from kernelc.runtime.curvature import Curve

pytestmark = pytest.mark.usefixtures("built")
cases = pytest.mark.parametrize("case", CASES.values(), ids=repr)
large_cases = pytest.mark.parametrize("case", [c for c in CASES.values() if c.sizes], ids=repr)
BY_ORDER = {"compaction: a count as index", "counts in cells, several for each thread",
            "a count decides how long a loop runs", "indices found anew in every step",
            "swaps that threads compete in"}  # fmt: skip
"""Cases whose results depend on the order of the threads, because they use what atomics return."""


class LookOnGpu(Look):
    """Notes which kernels of the GPU a case will need."""

    def __call__(self, kernel, dim, inputs, outputs=()):
        plan, args = (bench.twin(kernel) if self.sqrt else kernel).plan([*inputs, *outputs])
        carry = [i for i in plan.arrays if args[i].requires_grad or args[i]._storage in self.carried]
        seeds = frozenset(i for i in carry if args[i].real is not None)
        dim = dim if isinstance(dim, tuple) else (dim,)
        for which in self.whiches:
            if which == "forward":
                job, _ = forward_job(plan, seeds, facts(plan, args, dim))
                self.jobs.append((plan.variant, job))
            elif seeds:
                self.jobs.append((plan.variant, (which, seeds, plan.contiguous, False)))
        if seeds:
            self.carried.update(args[i]._storage for i in plan.variant.adjoint(seeds).activity.arrays)


def _jobs(case, names):
    """What the laws of these names will launch, case by case: kernels depend on precision, loop tape and strides."""
    wanted = [(("forward", "adjoint", "tangent"), {}, {})]
    if "test_single_precision" in names:
        wanted.append((("forward", "adjoint"), {}, {"real": "f32"}))
    if "test_the_other_loop_tape" in names:
        wanted.append((("forward", "adjoint"), {"sqrt": True}, {}))
    if "test_strided_views" in names and case.strided:
        wanted.append((("forward", "adjoint"), {}, {"strided": True}))
    for whiches, options, made in wanted:
        look = LookOnGpu(whiches, **options)
        case.program(look, *case.make(**made).values())
        yield from look.jobs


@pytest.fixture(scope="session")
def built(request):
    """Compiles what the selected cases need, in modules for two cores."""
    params = [getattr(item, "callspec", None) and item.callspec.params for item in request.session.items]
    chosen = dict.fromkeys(p["case"] for p in params if p and isinstance(p.get("case"), Case))
    names = {item.originalname for item in request.session.items if item.path == Path(__file__)}
    jobs = []
    with contextlib.nullcontext() if REAL else standin.installed(), standin.default_device():
        for case in chosen:
            # What does not compile fails in its own tests.
            with contextlib.suppress(kc.KernelError):
                jobs.append(list(_jobs(case, names)))
        parts = [[job for made in jobs[k::8] for job in made] for k in range(8)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(prebuild, parts))


@pytest.fixture
def fair(gpu, case):
    """The GPU, with its threads in the order of the CPU where results depend on it."""
    if gpu is None and case.name in BY_ORDER:
        pytest.skip("the result depends on the order of the threads, which a GPU does not promise")
    if gpu is not None:
        gpu.set(order=0 if case.name in BY_ORDER else 1)
    return gpu


@contextlib.contextmanager
def cpu():
    before, kc.config.device = kc.config.device, "cpu"
    try:
        yield
    finally:
        kc.config.device = before


def same_as_interpreted(case, rtol=1e-12, **options):
    results, gradients = forward_and_backward(case, device="cuda", **options)
    with cpu():
        want, want_gradients = forward_and_backward(case, device="python", **options)
    assert not apart(results, want, rtol)
    assert not apart(gradients, want_gradients, 100 * rtol)


@cases
def test_the_gpu_gives_what_the_interpreter_gives(case, fair):
    same_as_interpreted(case)


@large_cases
def test_threads_in_any_order_on_two_cores(case, gpu):
    if case.name in BY_ORDER:
        pytest.skip("the result depends on the order of the threads")
    if gpu is not None:
        gpu.set(order=2, workers=2)
    same_as_interpreted(case, n=140)  # more than one block


@cases
def test_single_precision(case, fair):
    same_as_interpreted(case, case.f32 / 100, real="f32")


@pytest.mark.nightly
@cases
def test_the_other_loop_tape(case, fair):
    same_as_interpreted(case, sqrt=True)


@pytest.mark.nightly
@pytest.mark.parametrize("case", [c for c in CASES.values() if c.strided], ids=repr)
def test_strided_views(case, fair):
    same_as_interpreted(case, strided=True)


@cases
def test_forward_mode(case, fair):
    dots = []
    for device in ("cuda", "python"):
        with cpu() if device == "python" else contextlib.nullcontext():
            args = case.make()
            leaves = [name for name, what in case.arguments.items() if isinstance(what, Argument) and what.grad]
            random = np.random.default_rng(3)
            v = {name: spread(args[name], random.uniform(-1, 1, args[name].shape)) for name in leaves}
            push = Push({args[name]: v[name] for name in leaves}, bench.SMALL)
            push.device = device
            case.program(push, *args.values())
            dots.append({n: push.tangent(a) for n, a in args.items() if isinstance(a, Array) and a.real is not None})
    assert not apart(*dots, 1e-10)


def _derivatives(case, device):
    """Two tangents of every result, and one product with the Hessian, of a recorded case."""
    recorded = record(case, device=device)
    random = np.random.default_rng(3)
    leaves = {n: recorded.args[n] for n in case.leaves if recorded.args[n]._storage in recorded.tape._versions}
    given = {a: np.array([spread(a, random.uniform(-1, 1, a.shape)) for _ in range(2)]) for a in leaves.values()}
    weights = recorded.weights()
    dots = recorded.tape.jvp(given, [recorded.args[n] for n in weights])
    curve = Curve(recorded.tape, {recorded.args[n]: w for n, w in weights.items()}, list(given), 1)
    curve.give({a: d[:1] for a, d in given.items()})
    recorded.tape._report(curve.program.run(), curve.codes)
    bends = {n: np.array(curve.take(a)[0]) for n, a in leaves.items()}
    return {n: dots[recorded.args[n]].numpy() for n in weights}, bends


@pytest.mark.parametrize("case", list(CASES.values())[::6], ids=repr)
def test_tangents_and_hessian_products_on_tapes(case, fair):
    dots, bends = _derivatives(case, "cuda")
    with cpu():
        want, want_bends = _derivatives(case, "python")
    assert not apart(dots, want, 1e-10)
    assert not apart(bends, want_bends, 1e-9)


@cases
def test_a_replay_with_other_contents(case, fair):
    recorded = record(case, device="cuda")
    recorded.backward()
    with cpu():
        others = case.make(shift=1)
    for name, a in others.items():
        if isinstance(a, Array):
            recorded.args[name].assign(a)
    recorded.tape.replay()
    recorded.tape.zero()
    again = recorded.results()
    recorded.backward()
    with cpu():
        fresh, gradients = forward_and_backward(case, shift=1, device="python")
    assert not apart({n: again[n] for n in fresh}, fresh, 1e-12)
    assert not apart(recorded.gradients(), gradients, 1e-10)
