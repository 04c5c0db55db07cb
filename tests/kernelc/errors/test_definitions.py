"""Errors of a definition as a whole: its parameters, its annotations, its source."""

import os
import pickle
import textwrap
import traceback

import numpy as np
import pytest
from messages import PRELUDE, expected, load, module_text, refusal, shown

import kernelc as kc
from kernelc.frontend.operators import Operators
from kernelc.ir import MalformedIR

SIGNATURES = [
    ("def k(«x», out: kc.Array[float]):", kc.MissingAnnotation, "parameter 'x' of kernel k has no type",
     "annotate every parameter of a kernel, for example `x: kc.Array[float]` or `n: int`"),
    ("def k(«x: list», out: kc.Array[float]):", kc.MissingAnnotation, "list is no type of the kernel language",
     "annotate every parameter of a kernel, for example `x: kc.Array[float]` or `n: int`"),
    ("def k(«x: 3»):", kc.MissingAnnotation, "3 is no type of the kernel language",
     "annotate every parameter of a kernel, for example `x: kc.Array[float]` or `n: int`"),
    ("def k(«x: tuple[int, int]»):", kc.MissingAnnotation, "parameter 'x' of kernel k cannot be a tuple",
     "use a vector such as kc.int2, or two parameters"),
    ("«def k»(*x: kc.Array[float]):", kc.Unsupported, "kernel k has *args, **kwargs or keyword-only parameters",
     "name its parameters one by one; launches pass them by position"),
    ("«def k»(x: kc.Array[float], *, n: int):", kc.Unsupported,
     "kernel k has *args, **kwargs or keyword-only parameters",
     "name its parameters one by one; launches pass them by position"),
]  # fmt: skip


@pytest.mark.parametrize(("head", "kind", "says", "advice"), SIGNATURES, ids=[s[0] for s in SIGNATURES])
def test_parameters_have_types(head, kind, says, advice, tmp_path):
    text = f"{PRELUDE}\n\n@kc.kernel\n{head}\n    pass\n"
    module = load(tmp_path, text)
    assert shown(refusal(module)) == expected(module.__file__, text, kind, says, advice)


def test_a_postponed_annotation_that_means_nothing_is_marked(tmp_path):
    text = f"from __future__ import annotations\n{PRELUDE}\n\n@kc.kernel\ndef k(x: «kc.Arry[float]»):\n    pass\n"
    module = load(tmp_path, text)
    says = "the annotation cannot be evaluated: module 'kernelc' has no attribute 'Arry'"
    advice = kc.MissingAnnotation.hint
    assert shown(refusal(module)) == expected(module.__file__, text, kc.MissingAnnotation, says, advice)


def test_postponed_annotations_do_not_see_the_function_around(tmp_path):
    text = (
        f"from __future__ import annotations\n{PRELUDE}\n\ndef make(T):\n    @kc.kernel\n"
        "    def k(x: «kc.Array[T]»):\n        pass\n    return k\n\n\nk = make(float)\n"
    )
    module = load(tmp_path, text)
    says = "the annotation cannot be evaluated: name 'T' is not defined"
    advice = (
        "postponed annotations do not see names of the function around: make the type a global, or remove "
        "`from __future__ import annotations`"
    )
    assert shown(refusal(module)) == expected(module.__file__, text, kc.MissingAnnotation, says, advice)


def test_a_result_annotation_that_means_nothing_is_marked(tmp_path):
    text = module_text("out[i] = f(x[i])", before="@kc.func\ndef f(a) -> «list»:\n    return a\n")
    module = load(tmp_path, text)
    advice = "types are float, int, bool, kc.float3, kc.mat33, a @kc.struct, …"
    says = "list is no type of the kernel language"
    assert shown(refusal(module)) == expected(module.__file__, text, kc.TypeMismatch, says, advice)


def test_a_parameter_of_a_function_has_a_type_or_none(tmp_path):
    text = module_text("out[i] = f(x[i])", before="@kc.func\ndef f(a: «list»):\n    return a\n")
    module = load(tmp_path, text)
    advice = "types are float, int, bool, kc.float3, kc.mat33, a @kc.struct, …"
    says = "list is no type of the kernel language"
    assert shown(refusal(module)) == expected(module.__file__, text, kc.TypeMismatch, says, advice)


# -- source
def test_source_that_cannot_be_read_is_said():
    scope = {"kc": kc}
    exec("@kc.kernel\ndef k(x: kc.Array[float]):\n    x[0] = 1.0\n", scope)
    with pytest.raises(kc.NoSource, match=r"\[KC113\] the source of 'k' cannot be read \(<string>:1\)") as caught:
        kc.inspect(scope["k"])
    assert shown(caught.value) == (
        '  File "<string>", line 1\n'
        "kernelc.errors.NoSource: [KC113] the source of 'k' cannot be read\n"
        "help: define the kernel in a file or a notebook cell, so that its source can be read\n"
    )
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in frames if f.filename != __file__] == []
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_lambda_is_no_kernel():
    anything = kc.kernel(lambda x: x)
    with pytest.raises(kc.NoSource, match="'<lambda>' is not a plain `def`"):
        kc.inspect(anything)


def test_an_async_function_is_no_kernel(tmp_path):
    text = f"{PRELUDE}\n\n@kc.kernel\nasync def k(x: kc.Array[float]):\n    await x\n"
    with pytest.raises(kc.NoSource, match="'k' is an `async def`"):
        kc.inspect(load(tmp_path, text).k)


def test_a_file_that_changed_since_its_import_is_noticed(tmp_path):
    module = load(tmp_path, module_text("out[i] = x[i]"))
    other = module_text("out[i] = x[i]").replace("def k(", "def completely_different(")
    with open(module.__file__, "w") as file:
        file.write(other)
    os.utime(module.__file__, (1, 1))
    with pytest.raises(kc.NoSource, match="has changed since it was imported") as caught:
        kc.inspect(module.k)
    assert caught.value.advice == "import the module again, or restart Python"


def test_comments_and_strings_may_stand_left_of_a_kernel(tmp_path):
    text = PRELUDE + textwrap.dedent(
        '''
        def make():
            @kc.kernel
            def k(x: kc.Array[float]):
        # a comment at the margin
                """A text
        with lines at the margin."""
                x[0] = «unknown»
            return k

        k = make()
        '''
    )
    module = load(tmp_path, text)
    advice = kc.UnknownName.hint
    assert shown(refusal(module)) == expected(module.__file__, text, kc.UnknownName, "unknown name 'unknown'", advice)


def test_carets_count_characters_not_bytes(tmp_path):
    text = module_text("größe = 1.0; out[i] = größe * «höhe»")
    module = load(tmp_path, text)
    says, advice = "unknown name 'höhe'", kc.UnknownName.hint
    assert shown(refusal(module)) == expected(module.__file__, text, kc.UnknownName, says, advice)


def test_an_error_over_several_lines_is_marked_on_its_first(tmp_path):
    text = module_text("out[i] = kc.sin(«kc.float3(x[i],»\n    x[i]))")
    module = load(tmp_path, text)
    says = "float3 is made of 3 numbers, not of (float32, float32)"
    advice = "give 3 numbers, or none for zeros"
    assert shown(refusal(module)) == expected(module.__file__, text, kc.NoOverload, says, advice)


def test_an_expression_that_is_too_deep_is_refused(tmp_path):
    module = load(tmp_path, module_text("out[i] = " + "-" * 2000 + "x[i]"))
    with pytest.raises(kc.Unsupported, match=r"k is nested too deeply") as caught:
        kc.inspect(module.k)
    assert caught.value.advice == "split long expressions over several lines"


def test_errors_keep_everything_when_they_cross_a_process(tmp_path):
    error = refusal(load(tmp_path, module_text("out[i] = gravty")))
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kc.UnknownName
    assert (shown(copy), str(copy), copy.span, copy.code) == (shown(error), str(error), error.span, error.code)
    plain = kc.WrongArity("two, not one", advice="add one")
    copy = pickle.loads(pickle.dumps(plain))
    assert (shown(copy), copy.advice) == (shown(plain), "add one")
    failed = kc.CompilerFailed("no", output="text", source=None)
    assert pickle.loads(pickle.dumps(failed)).output == "text"


def test_a_mistake_of_the_compiler_names_the_line(tmp_path, monkeypatch):
    text = module_text("y = 1.0\nout[i] = «x[i] * y»")
    module = load(tmp_path, text)

    def stumble(*_):
        raise KeyError("nothing there")

    monkeypatch.setattr(Operators, "scalar_binary", stumble)
    error = refusal(module)
    says = "the compiler failed: KeyError: 'nothing there'"
    assert shown(error) == expected(module.__file__, text, kc.CompilerBug, says, kc.CompilerBug.hint)
    assert isinstance(error.__cause__, KeyError)
    assert issubclass(MalformedIR, kc.CompilerBug)


# -- what is called or captured
def test_objects_that_are_no_functions_are_refused(tmp_path):
    class Odd:
        __hash__ = None

        def __eq__(self, other):
            raise RuntimeError("must not be asked")

    module = load(tmp_path, module_text("out[i] = odd(x[i])"))
    module.odd = Odd()
    assert "cannot be called in a kernel" in str(refusal(module))
    module.odd = np.zeros(3)
    assert "cannot be called in a kernel" in str(refusal(module))
    module.odd = None
    assert "cannot be called in a kernel" in str(refusal(module))
