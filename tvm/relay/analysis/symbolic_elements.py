"""The elements of integer tensors that symbolic shapes tell.

%s = take(shape_of(%x), 0); %r = concatenate((expand_dims(%s, 0), [-1]))
with %x: Tensor[(n, 8), float32]    ->    [n, -1]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tvm import tir
from tvm.arith import Analyzer
from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.type import TensorType
from tvm.relay.expr import Call

MOST = 64  # elements of what may be a shape
Elements = np.ndarray[Any, Any]  # of dtype object: integers and symbolic expressions

# operators that give elements of their arguments, computed as they compute numbers
_MOVEMENTS = (
    "take",
    "strided_slice",
    "concatenate",
    "expand_dims",
    "reshape",
    "squeeze",
    "stack",
    "broadcast_to",
    "tile",
    "transpose",
    "reverse",
    "gather",
    "full",
)


class _Undecided(Exception):
    """A condition depends on what a symbolic variable is."""


def _decided(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], int]:
    def decide(a: Any, b: Any) -> int:
        found = compare(a, b)
        if not isinstance(found, PrimExpr):
            return int(found)
        simple = Analyzer().simplify(found)
        if not isinstance(simple, tir.IntImm):
            raise _Undecided
        return int(simple.value)

    return decide


def _simplified(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        return as_number(Analyzer().simplify(_as_prim(function(_as_prim(a), _as_prim(b)))))

    return apply


def _as_prim(value: Any) -> PrimExpr:
    if isinstance(value, tir.EQ):
        raise _Undecided
    return value if isinstance(value, PrimExpr) else tir.IntImm("int64", int(value))


def _equal(a: Any, b: Any) -> Any:
    """1 or 0, or the question itself where it depends on variables."""
    try:
        return _decided(tir.EQ)(a, b)
    except _Undecided:
        return tir.EQ(_as_prim(a), _as_prim(b))


def _chosen(condition: Any, yes: Any, no: Any) -> Any:
    """One of two elements: where a == b, b is a."""
    if not isinstance(condition, tir.EQ):
        return yes if bool(as_number(condition)) else no
    sides = (condition.a, condition.b)
    for one, other in (sides, sides[::-1]):
        if _is_same(one, yes) and _is_same(other, no):
            return no
    if _is_same(_as_prim(yes), no):
        return no
    raise _Undecided


def _is_same(a: PrimExpr, b: Any) -> bool:
    return bool(Analyzer().can_prove_equal(a, _as_prim(b)))


def as_number(value: Any) -> Any:
    """An integer if it is known, else the expression, in 64 bits."""
    if isinstance(value, tir.IntImm):
        return int(value.value)
    if isinstance(value, PrimExpr):
        return value if value.dtype == "int64" else value.astype("int64")
    return int(value)


_ELEMENTWISE: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": _simplified(operator.add),
    "subtract": _simplified(operator.sub),
    "multiply": _simplified(operator.mul),
    "divide": _simplified(tir.truncdiv),
    "trunc_divide": _simplified(tir.truncdiv),
    "floor_divide": _simplified(tir.floordiv),
    "floor_mod": _simplified(tir.floormod),
    "mod": _simplified(tir.truncmod),
    "maximum": _simplified(tir.max),
    "minimum": _simplified(tir.min),
    "equal": _equal,
    "not_equal": _decided(tir.NE),
    "less": _decided(tir.LT),
    "less_equal": _decided(tir.LE),
    "greater": _decided(tir.GT),
    "greater_equal": _decided(tir.GE),
    "logical_and": lambda a, b: int(bool(a) and bool(b)),
    "logical_or": lambda a, b: int(bool(a) or bool(b)),
}
# operators whose elements may be questions that are not decided
_OF_QUESTIONS = ("equal", *_MOVEMENTS)
_REDUCTIONS = {"prod": "multiply", "sum": "add", "max": "maximum", "min": "minimum"}


def elements_of_call(call: Call, ty: Any, args: Sequence[Elements | None]) -> Elements | None:
    """The elements of an operator's result, from those of its arguments, a tuple's in its place."""
    if any([arg is None for arg in args]) or not args or not _may_be_shape(ty):
        return None
    given: list[Any] = list(args)
    try:
        found = _computed(call, call.operator.name, given, ty)
    except (_Undecided, TVMError, TypeError, ValueError):
        return None
    if found is None or found.size > MOST:
        return None
    is_question = any([isinstance(element, tir.EQ) for element in found.flat])
    return None if is_question and call.operator.name not in _OF_QUESTIONS else found


def _may_be_shape(ty: Any) -> bool:
    return isinstance(ty, TensorType) and not ty.dtype.is_float


def _computed(call: Call, name: str, args: list[Any], ty: TensorType) -> Elements | None:
    if name in _ELEMENTWISE:
        compute = np.frompyfunc(_ELEMENTWISE[name], 2, 1)
        return np.asarray(compute(*args), object)
    if name in _REDUCTIONS and args[0].ndim == 1 and not call.attrs.exclude:
        combine = _ELEMENTWISE[_REDUCTIONS[name]]
        total = reduce(combine, args[0].tolist()) if args[0].size else int(name == "prod")
        return np.array([total] if call.attrs.keepdims else total, object)
    if name in ("cast", "copy"):
        return args[0]  # type: ignore[no-any-return]
    if name == "where":
        return np.asarray(np.frompyfunc(_chosen, 3, 1)(*args), object)
    if name in _MOVEMENTS and call.operator.fold is not None:
        if name in ("take", "gather"):
            args[1] = args[1].astype("int64")
        results = call.operator.fold(call.attrs, args, ty)
        return None if results is None else np.asarray(results[0], object)
    return None
