"""Operators of one tensor, element by element."""

from __future__ import annotations

from typing import Any

from tvm import topi

from .infer import same, same_as_first, same_bool, same_float
from .legalize import topi_call
from .operator import Expr, documented, operator


def _unary(name: str, function: Any, what: str, infer: Any = same_float, hint: str = "") -> Any:
    def build(x: Expr) -> Expr: ...

    doc = f"""{what}

    Parameters
    ----------
    x : relax.Expr
        The tensor.

    Returns
    -------
    relax.Expr
        A tensor of its shape.
    """
    facets: dict[str, Any] = {"FElementwise": True}
    if function is not None:
        facets["FLegalize"] = topi_call(function, hint or f"tir_{name}")
    return operator(f"relax.{name}", infer=infer, **facets)(documented(build, name, __name__, doc))


abs = _unary("abs", topi.abs, "Absolute values.", same)
acos = _unary("acos", topi.acos, "Arc cosines.")
acosh = _unary("acosh", topi.acosh, "Inverse hyperbolic cosines.")
asin = _unary("asin", topi.asin, "Arc sines.")
asinh = _unary("asinh", topi.asinh, "Inverse hyperbolic sines.")
atan = _unary("atan", topi.atan, "Arc tangents.")
atanh = _unary("atanh", topi.atanh, "Inverse hyperbolic tangents.")
bitwise_not = _unary("bitwise_not", topi.bitwise_not, "Bits inverted.", same)
ceil = _unary("ceil", topi.ceil, "The next integers above.", same)
cos = _unary("cos", topi.cos, "Cosines.")
cosh = _unary("cosh", topi.cosh, "Hyperbolic cosines.")
exp = _unary("exp", topi.exp, "Exponentials.")
floor = _unary("floor", topi.floor, "The next integers below.", same)
log = _unary("log", topi.log, "Natural logarithms.")
logical_not = _unary("logical_not", topi.logical_not, "Negated truth values.", same)
negative = _unary("negative", topi.negative, "Values of the other sign.", same)
round = _unary("round", topi.round, "The nearest integers.", same)
rsqrt = _unary("rsqrt", topi.rsqrt, "One over square roots.")
sigmoid = _unary("sigmoid", topi.sigmoid, "The logistic function.")
sign = _unary("sign", topi.sign, "Signs: -1, 0 or 1.", same)
sin = _unary("sin", topi.sin, "Sines.")
sinh = _unary("sinh", topi.sinh, "Hyperbolic sines.")
sqrt = _unary("sqrt", topi.sqrt, "Square roots.")
tan = _unary("tan", topi.tan, "Tangents.")
tanh = _unary("tanh", topi.tanh, "Hyperbolic tangents.")
trunc = _unary("trunc", topi.trunc, "Integers, rounded towards zero.", same)
erf = _unary("erf", topi.erf, "The error function.")
square = _unary("square", lambda x: topi.multiply(x, x), "Squares.", same)
isfinite = _unary("isfinite", topi.isfinite, "Whether values are finite.", same_bool, "isfinite")
isinf = _unary("isinf", topi.isinf, "Whether values are infinite.", same_bool, "isinf")
isnan = _unary("isnan", topi.isnan, "Whether values are not a number.", same_bool, "isnan")


def _clip(bb: Any, call: Any) -> Any:
    low, high = [arg.value for arg in call.args[1:]]
    kind = call.args[0].struct_info.dtype
    bounds = [bound.astype(kind) if bound.dtype != kind else bound for bound in (low, high)]
    return bb.call_te(
        lambda x, a, b: topi.clip(x, a, b), call.args[0], *bounds, primfunc_name_hint="clip"
    )


@operator("relax.clip", infer=same_as_first, FLegalize=_clip, FElementwise=True)
def clip(x: Expr, min: Expr, max: Expr) -> Expr:
    """Values between two bounds; those outside become the nearer bound.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    min, max : float or PrimValue
        The bounds.
    """
