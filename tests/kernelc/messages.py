"""Errors are tested on their text: what Python prints for them, line, carets and advice included."""

import importlib.util
import itertools
import textwrap
import traceback

import kernelc as kc

PRELUDE = """
import math
import numpy as np
import kernelc as kc

gravity = 9.81
"""

_numbers = itertools.count()


def load(folder, text):
    """A module with the given text. «…» marks where the carets of an error are expected; the marks are removed."""
    name = f"module_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text.replace("«", "").replace("»", ""), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def module_text(body, params="x: kc.Array[float], n: int, out: kc.Array[float]", before=""):
    """A module with one kernel `k`."""
    return (
        PRELUDE
        + textwrap.dedent(before)
        + f"\n\n@kc.kernel\ndef k({params}):\n    i = kc.tid()\n"
        + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
        + "\n"
    )


def shown(error):
    """What Python prints below the traceback."""
    return "".join(traceback.format_exception_only(error))


def expected(path, text, kind, says, advice):
    """What Python ought to print."""
    for number, line in enumerate(text.splitlines(), start=1):
        if "«" in line:
            before, rest = line.split("«", 1)
            marked = rest.split("»", 1)[0] if "»" in rest else rest
            plain = line.replace("«", "").replace("»", "").strip()
            carets = " " * len(before.lstrip()) + "^" * len(marked)
            lines = [f'  File "{path}", line {number}', f"    {plain}", f"    {carets}"]
            lines.append(f"kernelc.errors.{kind.__name__}: [{kind.code}] {says}")
            return "\n".join([*lines, *([f"help: {advice}"] if advice else [])]) + "\n"
    raise AssertionError("no «mark» in the text")


def refusal(module, kernel="k", **options):
    """The error that compiling a kernel gives."""
    try:
        kc.inspect(getattr(module, kernel), **options)
    except kc.KernelError as error:
        return error
    raise AssertionError("it was accepted")
