"""What must hold for every random program, and how it is found out.

Forward: CPython, the interpreter and the compiled kernel agree. Backward: the adjoint equals central differences of
what CPython computes, the loop tapes agree, forward mode is its transpose, and compiled it is the same again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np
from fuzz.layouts import BITS, HALVES, array, choose, rounded
from fuzz.plain import Plain
from fuzz.programs import Program

import kernelc as kc
from kernelc.runtime.compile import Options, prebuild, tangent_name
from kernelc.runtime.curvature import Curve
from kernelc.runtime.kernels import Kernel

THREADS = 3
SHAPES = {"x": (5,), "v": (4, 3), "idx": (6,), "n": None, "s": (3, 4), "t": (3, 2, 3), "sums": (3,), "lows": (2,),
          "highs": (2,), "tally": (2,), "flags": (6,), "bits": (3, 4), "half": (3, 4), "out": (3, 3)}  # fmt: skip
RANKS = {"x": 1, "v": 1, "idx": 1, "n": 0, "s": 2, "t": 2, "sums": 1, "lows": 1, "highs": 1, "tally": 1, "flags": 1,
         "bits": 2, "half": 2, "out": 2}  # fmt: skip
TYPES = {"v": kc.float3, "t": kc.float3, "idx": int, "tally": int, "flags": bool}
REALS = ["x", "v", "s", "t", "sums", "lows", "highs", "out"]
RESULTS = REALS[2:]
WRITTEN = [*RESULTS, "tally", "bits", "half"]
STEPS = (1e-5, 1e-6)


class Wrong(AssertionError):
    """A law is broken."""


class Unclear(Exception):
    """Differences say nothing here: a branch changes sides within the step."""


class Case:
    """A program with its inputs, its weights, and everything that was computed for it."""

    def __init__(self, program: Program, folder: Path):
        self.program = program
        random = np.random.default_rng(program.seed)
        self.inputs = {name: random.uniform(-1, 1, shape) for name, shape in SHAPES.items() if name in REALS}
        # Neighbours differ by one: threads that run side by side in lanes go different ways.
        self.inputs["idx"] = np.roll(np.arange(6, dtype=np.int32), program.seed)
        self.inputs["tally"] = np.array([0, 3], np.int32)
        # Masks of others hold any byte.
        self.inputs["flags"] = np.roll(np.array([0, 255, 1, 0, 2, 128], np.uint8), program.seed).view(bool)
        self.inputs["n"] = 5
        limits = np.iinfo(BITS[program.kind("bits")])
        self.inputs["bits"] = random.integers(limits.min, limits.max, SHAPES["bits"], limits.dtype, endpoint=True)
        self.types = TYPES | {"bits": getattr(kc, program.kind("bits")[3:]), "half": HALVES[program.kind("half")]}
        halves = np.vectorize(lambda number: rounded(number, self.types["half"]))
        self.inputs["half"] = halves(random.uniform(-1, 1, SHAPES["half"]))
        self.layouts = choose(program.layout, SHAPES)
        # Minima start above and maxima below what the threads bring, mostly.
        self.inputs["lows"] += [0.5, 0]
        self.inputs["highs"] -= [0.5, 0]
        self.weights = {name: random.uniform(0.5, 1.5, SHAPES[name]) for name in RESULTS}
        self.direction = {name: random.uniform(-1, 1, SHAPES[name]) for name in REALS}
        self.module = self.load(folder)

    def load(self, folder: Path):
        """Kernels need source files."""
        name = f"fuzz_{hashlib.sha256(self.program.source.encode()).hexdigest()[:16]}"
        path = folder / f"{name}.py"
        path.write_text(self.program.source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    @property
    def kernel(self) -> Kernel:
        return self.module.program

    @cached_property
    def with_roots(self) -> Kernel:
        """The same kernel with the other loop tape."""
        return Kernel(self.kernel.source.function, Options("sqrt"))

    @cached_property
    def in_lanes(self) -> Kernel:
        """The same kernel, compiled for two threads side by side: three make one group and a rest."""
        return Kernel(self.kernel.source.function, Options("all", 2))

    # -- forward
    @cached_property
    def plain(self) -> Plain:
        return Plain(self.program.source)

    def python(self, step: float = 0.0) -> dict[str, np.ndarray]:
        """What CPython computes, from the inputs moved by a step in the direction."""
        arrays = {}
        for name, value in self.inputs.items():
            moved = value + step * self.direction[name] if step and name in REALS else value
            arrays[name] = moved.copy() if isinstance(moved, np.ndarray) else moved
        halves = [self.types["half"] if name == "half" else None for name in SHAPES]
        self.plain(THREADS, [arrays[name] for name in SHAPES], [RANKS[name] for name in SHAPES], halves)
        return arrays

    def loss(self, arrays: dict[str, np.ndarray]) -> float:
        return sum(float((self.weights[name] * arrays[name]).sum()) for name in RESULTS)

    def arrays(self, requires_grad: bool = True) -> list:
        return [
            array(self.stored(n), self.types.get(n, float), self.layouts[n], requires_grad and n in REALS)
            if RANKS[n] else self.inputs[n] for n in SHAPES
        ]  # fmt: skip

    def stored(self, name: str) -> np.ndarray:
        """What an array of a launch holds at first."""
        return self.inputs[name].astype(np.float16) if self.types.get(name) is kc.float16 else self.inputs[name]

    def forward(self, device: str, kernel: Kernel | None = None) -> dict[str, np.ndarray]:
        """What a device computes."""
        args = self.arrays(requires_grad=False)
        kc.launch(kernel or self.kernel, THREADS, args, device=device)
        return {n: a.numpy() for n, a in zip(SHAPES, args) if n in WRITTEN}

    # -- backward
    def backward(self, device: str, kernel: Kernel | None = None) -> dict[str, np.ndarray]:
        """The gradients of the loss by every real array, on a device."""
        args = self.arrays()
        named = dict(zip(SHAPES, args))
        with kc.Tape() as tape:
            kc.launch(kernel or self.kernel, THREADS, args, device=device)
        touched = {n: named[n] for n in RESULTS if tape._carries(named[n]) and named[n]._storage in tape._versions}
        tape.backward(grads={a: self.weights[n] for n, a in touched.items()})
        return {n: named[n].grad.numpy() for n in REALS}

    def along(self, device: str, kernel: Kernel | None = None) -> dict[str, np.ndarray]:
        """Two tangents of every result, on a tape that the launch was recorded on."""
        args = self.arrays()
        named = dict(zip(SHAPES, args))
        with kc.Tape() as tape:
            kc.launch(kernel or self.kernel, THREADS, args, device=device)
        given = {named[n]: np.stack([self.direction[n], self.inputs[n]]) for n in REALS}
        known = {a: d for a, d in given.items() if a._storage in tape._versions}
        found = tape.jvp(known, [named[n] for n in RESULTS if named[n]._storage in tape._versions])
        return {n: found[named[n]].numpy() if named[n] in found else given[named[n]] for n in RESULTS}

    def bent(self, device: str, direction: dict, kernel: Kernel | None = None) -> dict[str, np.ndarray]:
        """How the gradients of the loss change along a direction."""
        args = self.arrays()
        named = dict(zip(SHAPES, args))
        with kc.Tape() as tape:
            kc.launch(kernel or self.kernel, THREADS, args, device=device)
        known = [n for n in REALS if named[n]._storage in tape._versions and tape._carries(named[n])]
        curve = Curve(tape, {named[n]: self.weights[n] for n in known if n in RESULTS}, [named[n] for n in known], 1)
        curve.give({named[n]: direction[n][None] for n in known})
        tape._report(curve.program.run(), curve.codes)
        return {n: curve.take(named[n])[0].copy() for n in known}

    def begun(self) -> dict[str, np.ndarray]:
        """How gradients move, interpreted, where all weights begin at zero and move as the weights of the loss are."""
        args = self.arrays()
        named = dict(zip(SHAPES, args))
        with kc.Tape() as tape:
            kc.launch(self.kernel, THREADS, args, device="python")
        known = [n for n in REALS if named[n]._storage in tape._versions and tape._carries(named[n])]
        weights = {named[n]: self.weights[n] for n in known if n in RESULTS}
        curve = Curve(tape, {a: np.zeros_like(w) for a, w in weights.items()}, [named[n] for n in known], 1,
                      {a: np.asarray(w)[None] for a, w in weights.items()})  # fmt: skip
        curve.give({named[n]: np.asarray(self.direction[n])[None] for n in known})
        tape._report(curve.program.run(), curve.codes)
        return {n: curve.take(named[n])[0].copy() for n in known}

    @cached_property
    def gradients(self) -> dict[str, np.ndarray]:
        return self.backward("python")

    def slope(self) -> float:
        """The derivative of the loss along the direction, by the adjoint."""
        return sum(float((self.gradients[n] * self.direction[n]).sum()) for n in REALS)

    def jobs(self, kernel: Kernel):
        """What `prebuild` needs to compile the forward and the adjoint kernel."""
        plan, _ = kernel.plan(self.arrays())
        seeds = frozenset(i for i, n in enumerate(SHAPES) if n in REALS)
        made = [(plan.variant, "forward", frozenset(), plan.contiguous)]
        with contextlib.suppress(kc.NotDifferentiable):
            plan.variant.adjoint(seeds)
            made.append((plan.variant, "adjoint", seeds, plan.contiguous))
            made.append((plan.variant, "tangent4", seeds, plan.contiguous))
            moving = plan.variant.adjoint_reads(seeds)[1] & seeds
            made.append((plan.variant, tangent_name(1, seeds), moving, plan.contiguous))
        return made


def compile_together(cases: list[Case], size: int = 10) -> None:
    """Machine code for many programs at once: modules of ten programs, two at a time."""
    jobs = [case.jobs(case.kernel) + case.jobs(case.in_lanes) for case in cases]
    parts = [[job for made in jobs[k : k + size] for job in made] for k in range(0, len(jobs), size)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda part: prebuild(part, total=THREADS), parts))


# -- laws
def check_meaning(case: Case) -> None:
    """The interpreter computes what CPython computes."""
    _same(case, "the interpreter differs from Python", case.forward("python"), case.python(), 1e-9)


def check_adjoint(case: Case) -> None:
    """The adjoint, interpreted, equals central differences along a random direction."""
    adjoint, (slope, doubt) = case.slope(), _differences(case)
    size = max(1.0, abs(adjoint), *(float(np.abs(g).max()) for g in case.gradients.values()))
    if not abs(adjoint - slope) <= 1e-6 * size + 10 * doubt:
        raise Wrong(f"the adjoint {adjoint:.12g} differs from central differences {slope:.12g}\n{_entries(case)}")


def check_loop_tapes(case: Case) -> None:
    """`loop_tape="sqrt"` gives the same gradient."""
    want, got = case.gradients, case.backward("python", case.with_roots)
    _same(case, "the gradients of the two loop tapes differ", got, want, 1e-10)


def check_transpose(case: Case) -> None:
    """⟨Jv, w⟩ = ⟨v, Jᵀw⟩, both interpreted."""
    reverse = case.slope()
    args = case.arrays(requires_grad=False)
    named = dict(zip(SHAPES, args))
    dots = kc.jvp(case.kernel, THREADS, args, tangents={named[n]: case.direction[n] for n in REALS}, device="python")
    tape, size = case.along("python"), max(1.0, *(float(np.abs(g).max()) for g in case.gradients.values()))
    pushed = sum(float((case.weights[n] * tape[n][0]).sum()) for n in RESULTS)
    if not abs(pushed - reverse) <= 1e-12 * 100 * size:
        raise Wrong(f"tape.jvp is not the transpose of backward: {pushed:.17g} and {reverse:.17g}")
    forward = 0.0
    for n in RESULTS:
        dot = dots[named[n]].numpy() if named[n] in dots else case.direction[n]
        forward += float((case.weights[n] * dot).sum())
    if not abs(forward - reverse) <= 1e-9 * max(1.0, abs(forward), abs(reverse)):
        raise Wrong(f"forward and reverse mode are not transposed: ⟨Jv, w⟩ {forward:.12g}, ⟨v, Jᵀw⟩ {reverse:.12g}")


def check_curvature(case: Case) -> None:
    """The Hessian of the loss, interpreted, is symmetric."""
    directions = [case.direction, {n: np.roll(d, 1) for n, d in case.direction.items()}]
    along, across = (case.bent("python", d) for d in directions)
    pairs = [[d[n] * h[n] for n in h] for d, h in ((directions[1], along), (directions[0], across))]
    left, right = (sum(float(t.sum()) for t in terms) for terms in pairs)
    size = max(1.0, *(float(np.abs(t).sum()) for terms in pairs for t in terms))
    if not abs(left - right) <= 1e-10 * size:
        raise Wrong(f"the Hessian is not symmetric: ⟨w, Hv⟩ {left:.17g}, ⟨v, Hw⟩ {right:.17g}")
    _same(case, "from zero, the gradient does not move as its weights do", case.begun(), case.gradients, 1e-9)


def check_compiled(case: Case) -> None:
    """Compiled, values and gradients are those of the interpreter."""
    want = case.forward("python")
    _same(case, "the compiled kernel differs from the interpreter", case.forward("cpu"), want, 1e-9)
    _same(case, "compiled for lanes, it differs from the interpreter", case.forward("cpu", case.in_lanes), want, 1e-9)
    want = case.gradients
    _same(case, "the compiled adjoint differs from the interpreted one", case.backward("cpu"), want, 1e-8)
    _same(case, "compiled for lanes, the adjoint differs", case.backward("cpu", case.in_lanes), want, 1e-8)
    want = case.bent("python", case.direction)
    _same(case, "the compiled Hessian differs", case.bent("cpu", case.direction), want, 1e-7)
    _same(case, "compiled for lanes, the Hessian differs", case.bent("cpu", case.direction, case.in_lanes), want, 1e-7)
    want = case.along("python")
    _same(case, "the compiled tangents differ from the interpreted ones", case.along("cpu"), want, 1e-8)
    _same(case, "compiled for lanes, the tangents differ", case.along("cpu", case.in_lanes), want, 1e-8)


def _same(case: Case, law: str, got: dict, want: dict, rtol: float) -> None:
    for name in got:
        if name in ("bits", "half"):
            size, off = 1.0, (got[name] != want[name]).astype(float)
        else:
            size, off = max(1.0, float(np.abs(want[name]).max(initial=0))), np.abs(got[name] - want[name])
        if not (off <= rtol * size).all():
            if _is_edge(case):
                raise Unclear
            at = np.unravel_index(int(np.argmax(np.nan_to_num(off, nan=np.inf))), off.shape)
            where = f"{name}[{', '.join(map(str, at))}]"
            raise Wrong(f"{law}: {where} is {got[name][at]!r}, not {want[name][at]!r}")


def _is_edge(case: Case) -> bool:
    """Whether the last bits of the inputs decide a branch: then two roundings of one program may differ."""
    there = [case.loss(case.python(step)) for step in (-1e-12, 0.0, 1e-12)]
    return max(there) - min(there) > 1e-8


def _differences(case: Case) -> tuple[float, float]:
    """The slope of the loss along the direction, and how far two step sizes are apart."""
    middle = case.loss(case.python())
    slopes, sides = [], []
    for h in STEPS:
        above, below = case.loss(case.python(h)), case.loss(case.python(-h))
        slopes.append((above - below) / (2 * h))
        sides += [(above - middle) / h, (middle - below) / h]
    size = max(1.0, *map(abs, slopes))
    if abs(slopes[0] - slopes[1]) > 1e-6 * size or max(sides) - min(sides) > 1e-3 * size:
        raise Unclear
    return slopes[0], abs(slopes[0] - slopes[1])


def _entries(case: Case) -> str:
    """Which entries differ: for the reader of a failure."""
    lines, saved, gradients = [], case.direction, case.gradients
    for name in REALS:
        for at in np.ndindex(SHAPES[name]):
            case.direction = {n: np.zeros(SHAPES[n]) for n in REALS}
            case.direction[name][at] = 1
            try:
                slope, _ = _differences(case)
            except Unclear:
                continue
            if abs(slope - gradients[name][at]) > 1e-5 * max(1.0, abs(slope)):
                where = f"d loss / d {name}[{', '.join(map(str, at))}]"
                lines.append(f"  {where}: adjoint {gradients[name][at]:.9g}, differences {slope:.9g}")
    case.direction = saved
    return "\n".join(lines[:8])
