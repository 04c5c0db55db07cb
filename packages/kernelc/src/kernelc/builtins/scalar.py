"""Scalar rows: operators and mathematical functions, each with its derivative and its subgradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .algebra import TIE, fn, where
from .registry import scalar

_erf = np.vectorize(math.erf, otypes=[float])


def _python_mod(a: Any, b: Any) -> Any:
    return np.mod(a, b)


def _pow(x: Any, p: Any) -> Any:
    # NumPy takes the square root for a power of 1/2; a power differs from it at -inf and -0.
    return np.where((np.asarray(p) == 0.5) & (np.isneginf(x) | (np.asarray(x) == 0)), np.abs(x), np.power(x, p))[()]


def _sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(np.asarray(x) < 0, e, 1) / (1 + e)


def _fma(a: Any, b: Any, c: Any) -> Any:
    # float64 holds the product of two float32 exactly; for float64 the result may differ by one rounding.
    return np.asarray(np.float64(a) * np.float64(b) + np.float64(c), np.result_type(a))


# Operators. Their names are those of the intermediate representation; they are not public functions.
_OPERATOR: dict[str, Any] = {"public": False}
scalar("add", "a + b", np.add, params="a b", cpp="({0} + {1})", kind="number", d=lambda a, b: (1, 1), **_OPERATOR)
scalar("sub", "a - b", np.subtract, params="a b", cpp="({0} - {1})", kind="number", d=lambda a, b: (1, -1), **_OPERATOR)
scalar("mul", "a * b", np.multiply, params="a b", cpp="({0} * {1})", kind="number", d=lambda a, b: (b, a), **_OPERATOR)
scalar("neg", "-a", np.negative, params="a", cpp="(-{0})", kind="number", d=lambda a: (-1,), **_OPERATOR)
scalar("div", "a / b", np.divide, params="a b", cpp="({0} / {1})", domain=((-2.0, 2.0), (0.5, 2.0)), guard=True,
       d=lambda a, b, y: (1 / b, -y / b), pull=lambda a, b, y, g: (t := g / b, -(t * y)), **_OPERATOR)  # fmt: skip
scalar("fma", "a * b + c with one rounding", _fma, params="a b c", cpp="kc_fma({0}, {1}, {2})",
       d=lambda a, b, c: (b, a, 1), **_OPERATOR)  # fmt: skip
scalar("floordiv", "a // b, rounded towards minus infinity", np.floor_divide, params="a b", kind="number",
       cpp="kc_floordiv({0}, {1})", domain=((-9.0, 9.0), (0.5, 2.0)), **_OPERATOR)  # fmt: skip
scalar("mod", "a - b * floor(a / b): the remainder with the sign of the divisor", _python_mod, params="a b",
       kind="number", cpp="kc_mod({0}, {1})", domain=((0.1, 0.9), (1.0, 2.0)),
       d=lambda a, b: (1, -fn.floor(a / b)))  # fmt: skip
for _name, _sign, _function in (
    ("lt", "<", np.less), ("le", "<=", np.less_equal), ("gt", ">", np.greater), ("ge", ">=", np.greater_equal),
    ("eq", "==", np.equal), ("ne", "!=", np.not_equal),
):  # fmt: skip
    scalar(_name, f"a {_sign} b", _function, params="a b", cpp=f"({{0}} {_sign} {{1}})", kind="compare", **_OPERATOR)
scalar("and", "a and b", np.logical_and, params="a b", cpp="({0} & {1})", kind="logic", **_OPERATOR)
scalar("or", "a or b", np.logical_or, params="a b", cpp="({0} | {1})", kind="logic", **_OPERATOR)
scalar("not", "not a", np.logical_not, params="a", cpp="(!{0})", kind="logic", **_OPERATOR)
for _name, _sign, _bits in (
    ("bitand", "&", np.bitwise_and), ("bitor", "|", np.bitwise_or), ("bitxor", "^", np.bitwise_xor),
):  # fmt: skip
    scalar(_name, f"a {_sign} b", _bits, params="a b", cpp=f"({{0}} {_sign} {{1}})", kind="int", **_OPERATOR)
scalar("shl", "a << b", np.left_shift, params="a b", cpp="kc_shl({0}, {1})", kind="int", domain=(0.0, 9.0), **_OPERATOR)
scalar(
    "shr", "a >> b", np.right_shift, params="a b", cpp="kc_shr({0}, {1})", kind="int", domain=(0.0, 9.0), **_OPERATOR
)
scalar("invert", "~a", np.invert, params="a", cpp="(~{0})", kind="int", **_OPERATOR)

scalar("stop_grad", "x without its gradient", np.positive, params="x", cpp="({0})", kind="number", domain=(0.2, 2.0),
       **_OPERATOR)  # fmt: skip

# Choice and rounding.
scalar("abs", "absolute value; derivative 0 at 0", np.abs, params="x", cpp="kc_abs({0})", kind="number",
       d=lambda x: (fn.sign(x),), singular=((0.0,),))  # fmt: skip
scalar("sign", "-1, 0 or 1", np.sign, params="x", cpp="kc_sign({0})", kind="number", domain=(0.2, 2.0))
scalar("copysign", "the magnitude of x with the sign of s", np.copysign, params="x s", cpp="kc_copysign({0}, {1})",
       domain=((0.2, 2.0), (-2.0, 2.0)), d=lambda x, s: (fn.sign(x) * fn.copysign(1.0, s), None))  # fmt: skip
scalar("min", "the smaller one; at a tie half the derivative to each side that carries one", np.minimum, params="a b",
       cpp="kc_min({0}, {1})", kind="number", singular=((0.5, 0.5),),
       d=lambda a, b: (where(a < b, 1, where(a > b, 0, TIE)), where(b < a, 1, where(b > a, 0, TIE))))  # fmt: skip
scalar("max", "the larger one; at a tie half the derivative to each side that carries one", np.maximum, params="a b",
       cpp="kc_max({0}, {1})", kind="number", singular=((0.5, 0.5),),
       d=lambda a, b: (where(a > b, 1, where(a < b, 0, TIE)), where(b > a, 1, where(b < a, 0, TIE))))  # fmt: skip
scalar("clamp", "x moved into [low, high]; derivative by x is 1 at the bounds",
       lambda x, low, high: np.minimum(np.maximum(x, low), high), params="x low high",
       cpp="kc_clamp({0}, {1}, {2})", kind="number", domain=((-2.0, 2.0), (-1.0, -0.2), (0.2, 1.0)),
       singular=((1.0, -1.0, 1.0), (-1.0, -1.0, 1.0)),
       d=lambda x, low, high: (where((x >= low) & (x <= high), 1, 0), where((x < low) & (low <= high), 1, 0),
                               where((x > high) | (low > high), 1, 0)))  # fmt: skip
scalar("floor", "largest whole number not above x", np.floor, params="x", cpp="floor{f}({0})", domain=(0.1, 0.9))
scalar("ceil", "smallest whole number not below x", np.ceil, params="x", cpp="ceil{f}({0})", domain=(0.1, 0.9))
scalar("round", "nearest whole number, halves to even", np.round, params="x", cpp="rint{f}({0})", domain=(0.6, 1.4))
scalar("trunc", "x without its fraction", np.trunc, params="x", cpp="trunc{f}({0})", domain=(0.1, 0.9))
scalar("frac", "x - floor(x)", lambda x: x - np.floor(x), params="x", cpp="({0} - floor{f}({0}))", domain=(0.1, 0.9),
       d=lambda x: (1,))  # fmt: skip
scalar("step", "1 for x > 0, else 0", lambda x: np.where(np.asarray(x) > 0, 1.0, 0.0), params="x", cpp="kc_step({0})",
       domain=(0.2, 2.0))  # fmt: skip
scalar("isnan", "whether x is not a number", np.isnan, params="x", cpp="({0} != {0})", kind="test")
scalar("isfinite", "whether x is neither infinite nor not a number", np.isfinite, params="x", cpp="kc_isfinite({0})",
       kind="test")  # fmt: skip

# Powers and roots.
scalar("sqrt", "square root; derivative 0 at 0", np.sqrt, params="x", cpp="sqrt{f}({0})", domain=(0.3, 3.0), guard=True,
       d=lambda x, y: (0.5 / y,), regular=lambda x: x > 0, singular=((0.0,),))  # fmt: skip
scalar("rsqrt", "1 / sqrt(x)", lambda x: 1 / np.sqrt(x), params="x", cpp="(1 / sqrt{f}({0}))", domain=(0.3, 3.0),
       guard=True, d=lambda x, y: (-0.5 * y / x,), regular=lambda x: x > 0)  # fmt: skip
scalar("cbrt", "cube root; derivative 0 at 0", np.cbrt, params="x", cpp="kc_cbrt({0})", domain=(0.3, 3.0), guard=True,
       d=lambda x, y: (1 / (3 * y * y),), regular=lambda x: fn.ne(x, 0), singular=((0.0,),))  # fmt: skip
scalar("pow", "x to the power p; at x = 0 the true slope for p >= 1, else 0; by p: 0", _pow, params="x p",
       cpp="kc_pow({0}, {1})", domain=((0.3, 2.0), (-2.0, 2.0)), guard=True, singular=((0.0, 2.0), (0.0, 0.5)),
       regular=lambda x, p: fn.ne(x, 0) | (p >= 1) | fn.eq(p, 0),
       d=lambda x, p, y: (where((fn.ne(x, 0)) | (p >= 1), where(fn.eq(p, 0), 0, p * fn.pow(x, p - 1)), 0),
                          where(x > 0, y * fn.log(where(x > 0, x, 1)), 0)))  # fmt: skip
scalar("hypot", "sqrt(a * a + b * b) without overflow; derivative 0 at (0, 0)", np.hypot, params="a b",
       cpp="kc_hypot({0}, {1})", guard=True, d=lambda a, b, y: (a / y, b / y), regular=lambda a, b, y: y > 0,
       singular=((0.0, 0.0),))  # fmt: skip

# Exponentials and logarithms.
scalar("exp", "exponential", np.exp, params="x", cpp="kc_exp({0})", d=lambda x, y: (y,))
scalar("expm1", "exp(x) - 1, exact near 0", np.expm1, params="x", cpp="kc_expm1({0})", d=lambda x, y: (y + 1,))
scalar(
    "log",
    "natural logarithm",
    np.log,
    params="x",
    cpp="kc_log({0})",
    domain=(0.3, 3.0),
    guard=True,
    d=lambda x: (1 / x,),
)
scalar("log1p", "log(1 + x), exact near 0", np.log1p, params="x", cpp="kc_log1p({0})", domain=(-0.5, 3.0), guard=True,
       d=lambda x: (1 / (1 + x),))  # fmt: skip
scalar("log2", "logarithm to base 2", np.log2, params="x", cpp="kc_log2({0})", domain=(0.3, 3.0), guard=True,
       d=lambda x: (1 / (x * math.log(2)),))  # fmt: skip
scalar("log10", "logarithm to base 10", np.log10, params="x", cpp="kc_log10({0})", domain=(0.3, 3.0), guard=True,
       d=lambda x: (1 / (x * math.log(10)),))  # fmt: skip
scalar("sigmoid", "1 / (1 + exp(-x)), without overflow", _sigmoid, params="x",
       cpp="kc_sigmoid({0})", d=lambda x, y: (y * (1 - y),))  # fmt: skip
scalar("softplus", "log(1 + exp(x)), without overflow", lambda x: np.logaddexp(0, x), params="x",
       cpp="kc_softplus({0})",       d=lambda x: (fn.sigmoid(x),))  # fmt: skip
scalar(
    "erf", "error function", _erf, params="x", cpp="kc_erf({0})", d=lambda x: (2 / math.sqrt(math.pi) * fn.exp(-x * x),)
)

# Trigonometry.
scalar("sin", "sine", np.sin, params="x", cpp="kc_sin({0})", d=lambda x: (fn.cos(x),))
scalar("cos", "cosine", np.cos, params="x", cpp="kc_cos({0})", d=lambda x: (-fn.sin(x),))
scalar("tan", "tangent", np.tan, params="x", cpp="kc_tan({0})", domain=(-1.2, 1.2), d=lambda x, y: (1 + y * y,))
scalar("asin", "arc sine; derivative 0 at -1 and 1", np.arcsin, params="x", cpp="kc_asin({0})", domain=(-0.9, 0.9),
       guard=True, d=lambda x: (1 / fn.sqrt((1 - x) * (1 + x)),), regular=lambda x: (x < 1) & (x > -1),
       singular=((1.0,), (-1.0,)))  # fmt: skip
scalar("acos", "arc cosine; derivative 0 at -1 and 1", np.arccos, params="x", cpp="kc_acos({0})", domain=(-0.9, 0.9),
       guard=True, d=lambda x: (-1 / fn.sqrt((1 - x) * (1 + x)),), regular=lambda x: (x < 1) & (x > -1),
       singular=((1.0,), (-1.0,)))  # fmt: skip
scalar("atan", "arc tangent", np.arctan, params="x", cpp="kc_atan({0})", d=lambda x: (1 / (1 + x * x),))
scalar("atan2", "angle of the point with y = a and x = b; derivative 0 at (0, 0)", np.arctan2, params="a b",
       cpp="kc_atan2({0}, {1})", domain=(0.3, 2.0), guard=True,
       d=lambda a, b: (b / (a * a + b * b), -a / (a * a + b * b)),
       regular=lambda a, b: a * a + b * b > 0, singular=((0.0, 0.0),))  # fmt: skip
scalar("sinh", "hyperbolic sine", np.sinh, params="x", cpp="kc_sinh({0})", d=lambda x: (fn.cosh(x),))
scalar("cosh", "hyperbolic cosine", np.cosh, params="x", cpp="kc_cosh({0})", d=lambda x: (fn.sinh(x),))
scalar("tanh", "hyperbolic tangent", np.tanh, params="x", cpp="kc_tanh({0})", d=lambda x, y: (1 - y * y,))
scalar(
    "asinh", "inverse hyperbolic sine", np.arcsinh, params="x", cpp="kc_asinh({0})", d=lambda x: (1 / fn.hypot(x, 1.0),)
)
scalar("acosh", "inverse hyperbolic cosine; derivative 0 at 1", np.arccosh, params="x", cpp="kc_acosh({0})",
       domain=(1.2, 3.0), guard=True, d=lambda x: (1 / fn.sqrt((x - 1) * (x + 1)),), regular=lambda x: x > 1,
       singular=((1.0,),))  # fmt: skip
scalar("atanh", "inverse hyperbolic tangent", np.arctanh, params="x", cpp="kc_atanh({0})", domain=(-0.8, 0.8),
       guard=True,       d=lambda x: (1 / ((1 - x) * (1 + x)),))  # fmt: skip
