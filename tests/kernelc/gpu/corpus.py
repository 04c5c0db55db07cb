"""The CUDA of the kernels that tests bring: the corpus of the laws, and programs that the fuzzer draws."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuzz import checks
from fuzz.programs import Program, programs
from hypothesis import HealthCheck, Phase, given, seed, settings
from laws.bench import CASES, Case, Look
from laws.corpus import all as _all  # noqa: F401

from kernelc.codegen import Code

PLAIN: list[Any] = [({}, {})]
EVERY: list[Any] = [({}, {}), ({"real": "f32"}, {}), ({}, {"sqrt": True}), ({"strided": True}, {})]
"""How a case is run: the options of `Case.make`, and those of `Run`."""


def codes_of_the_laws(cases: Iterable[Case] | None = None, variants: list[Any] = EVERY) -> list[Code]:
    """Forward, adjoint, tangent and counting kernels of cases, each text once."""
    made = {}
    for case, (options, how) in itertools.product(cases or CASES.values(), variants):
        if options.get("strided") and not case.strided:
            continue
        look = Look(("forward", "adjoint", "tangent", "counted"), **how)
        case.program(look, *case.make(**options).values())
        for variant, which, seeds, contiguous in look.jobs:
            key = (id(variant), which, seeds, contiguous)
            if key not in made:
                made[key] = variant.device_code(which, seeds, contiguous, suffix=f"_{len(made)}")
    return list(made.values())


def random_programs(count: int) -> list[Program]:
    """Programs that the fuzzer draws, the same on every run."""
    found: list[Program] = []
    own = settings(
        max_examples=count, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    seed(0)(own(given(programs())(lambda program: found.append(program))))()
    return list(dict.fromkeys(found))


def codes_of_programs(count: int, folder: Path) -> list[Code]:
    """The CUDA of random programs; kernels need source files, which go to the folder."""
    codes = []
    for n, program in enumerate(random_programs(count)):
        case = checks.Case(program, folder)
        for variant, which, seeds, contiguous in case.jobs(case.kernel):
            codes.append(variant.device_code(which, seeds, contiguous, suffix=f"_{n}"))
    return codes
