"""Compiles all kernels of the cases that were selected at once, in modules for two cores, before the first law."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from laws.bench import MIDDLE, WIDTHS, Case, Look

import kernelc as kc
from kernelc.runtime.compile import prebuild


def _in_lanes(case):
    """What the law of lanes alone will launch."""
    look = Look(("forward", "adjoint"), n=MIDDLE)
    case.program(look, *case.make(n=MIDDLE).values())
    yield from ((MIDDLE, job) for job in look.jobs)


def _jobs(case):
    """Everything that the laws will launch: grids, precisions, loop tapes, modes, strides."""
    looks = [
        (1, Look(("forward", "adjoint", "tangent", "tangent4")), {}),
        (1, Look(("forward", "adjoint", "tangent4")), {"real": "f32"}),
        (1, Look(("forward", "adjoint"), sqrt=True), {}),
        (1, Look((), served=True), {}),
    ]
    if len(case.leaves) > 1:
        looks.append((1, Look(("adjoint",)), {"alone": True}))
    if case.strided:
        looks.append((1, Look(("forward", "adjoint", "tangent4")), {"strided": True}))
    if case.sizes:
        looks.append((MIDDLE, Look(("forward", "adjoint", "tangent", "tangent4"), n=MIDDLE), {"n": MIDDLE}))
    for total, look, options in looks:
        case.program(look, *case.make(**options).values())
        yield from ((total, job) for job in look.jobs)


@pytest.fixture(scope="session")
def built(request):
    items = [item for item in request.session.items if isinstance(_case(item), Case)]
    chosen = dict.fromkeys(map(_case, items))
    lanes_alone = all(item.originalname == "test_lanes_equal_interpreted" for item in items)
    before = kc.config.lanes
    try:
        for width in sorted(set(WIDTHS)):
            kc.config.lanes = width
            _build([case for case in chosen if case.width == width], _in_lanes if lanes_alone else _jobs)
    finally:
        kc.config.lanes = before


def _case(item):
    return getattr(item, "callspec", None) and item.callspec.params.get("case")


def _build(chosen, needed):
    jobs = []
    for case in chosen:
        # What does not compile fails in its own tests.
        with contextlib.suppress(kc.KernelError):
            jobs.append(list(needed(case)))
    with ThreadPoolExecutor(2) as pool:
        for total in (1, MIDDLE):
            parts = [[job for made in jobs[k::2] for t, job in made if t == total] for k in range(2)]
            list(pool.map(lambda part, total=total: prebuild(part, total=total), parts))


@pytest.fixture(autouse=True)
def lanes(request, monkeypatch):
    """A case runs in as many lanes as it says."""
    case = _case(request.node)
    if isinstance(case, Case):
        monkeypatch.setattr(kc.config, "lanes", case.width)
