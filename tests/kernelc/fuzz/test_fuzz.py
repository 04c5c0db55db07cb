"""Random programs through every law. A failure is shrunk, and its source printed.

The interpreter runs the same intermediate representation as the compiler, so most laws need no C++: mistakes of the
front end and of the adjoint shrink quickly. The programs are then compiled together, in modules of ten.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from fuzz import checks
from fuzz.programs import Program, programs
from hypothesis import HealthCheck, Phase, given, seed, settings


@pytest.fixture(scope="module")
def case_of(tmp_path_factory):
    """Program to case; a case keeps what was computed for it."""
    folder = tmp_path_factory.mktemp("programs")
    return cache(lambda program: checks.Case(program, folder))


@pytest.fixture(scope="module")
def first():
    """The seed of all programs: the same in CI, another one otherwise; it is printed when a test fails."""
    return 0 if settings.default.derandomize else random.SystemRandom().randrange(2**32)


def for_all_programs(first, check, times=1):
    """Run a check on as many programs as the profile says, or a multiple; the same ones for the same seed."""
    own = settings(
        max_examples=times * settings.default.max_examples, phases=[Phase.generate, Phase.shrink], database=None,
        suppress_health_check=list(HealthCheck), print_blob=False, report_multiple_bugs=False,
    )  # fmt: skip
    seed(first)(own(given(programs())(check)))()


def laws(*checked):
    """A check of several laws, which counts where differences say nothing."""
    skipped = []

    def check(program, case_of):
        for law in checked:
            try:
                law(case_of(program))
            except checks.Unclear:
                skipped.append(program)

    check.skipped = skipped
    return check


def test_interpreted_programs_are_what_python_says_with_their_gradient(case_of, first):
    check = laws(checks.check_meaning, checks.check_adjoint, checks.check_loop_tapes, checks.check_transpose,
                 checks.check_curvature)  # fmt: skip
    for_all_programs(first, lambda program: check(program, case_of), times=3)
    assert len(check.skipped) <= 0.6 * settings.default.max_examples, "too many branches are near their thresholds"


def test_compiled_programs_are_what_the_interpreter_says(case_of, first):
    found: list[Program] = []
    for_all_programs(first, lambda program: found.append(program))
    checks.compile_together([case_of(program) for program in dict.fromkeys(found)])
    check = laws(checks.check_compiled)
    for_all_programs(first, lambda program: check(program, case_of))
