"""Constants, and Python values made expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tvm._ffi.registry import register_func
from tvm.error import RuntimeTypeError, RuntimeValueError, TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, child, derived, leaf
from tvm.support.dtype import DType, ScalableLanes
from tvm.support.dtype import dtype as as_dtype

from .operators import NotAnOperand, PrimExprWithOp

if TYPE_CHECKING:
    from tvm.ir.span import Span

BOOL = as_dtype("bool")
INT32 = as_dtype("int32")
INT64 = as_dtype("int64")
FLOAT32 = as_dtype("float32")
FLOAT64 = as_dtype("float64")
HANDLE = as_dtype("handle")


class ConstExpr(PrimExprWithOp):
    """A constant."""


class IntImm(ConstExpr, key="IntImm"):
    """An integer constant, or a truth value of dtype bool."""

    value: int

    def __init__(self, dtype: Any, value: int, span: Span | None = None) -> None:
        kind = as_dtype(dtype)
        number = int(value)
        if not fits(number, kind):
            raise RuntimeValueError(f"IntImm requires a value of {kind}, got {number}")
        self._init(kind, number, span)

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


def fits(value: int, dtype: DType) -> bool:
    """Whether a scalar of ``dtype`` can hold the value."""
    low, high = limits(dtype)
    return low <= value <= high


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number that a scalar of ``dtype`` can hold."""
    bits = dtype.bits
    if dtype.is_uint or dtype.is_handle:
        return 0, (1 << bits) - 1
    if not dtype.is_int or dtype.lanes != 1:
        raise TVMError(f"IntImm requires a scalar integer dtype, got {dtype}")
    if bits == 1:  # a truth value
        return 0, 1
    return -(1 << bits - 1), (1 << bits - 1) - 1


class FloatImm(ConstExpr, key="FloatImm"):
    """A floating-point constant."""

    value: float

    def __init__(self, dtype: Any, value: float, span: Span | None = None) -> None:
        kind = as_dtype(dtype)
        if not kind.is_float or kind.lanes != 1:
            raise TVMError(f"FloatImm requires a scalar floating-point dtype, got {kind}")
        self._init(kind, float(value), span)

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


class StringImm(ConstExpr):
    """A text, as an argument of calls and in annotations."""

    value: str
    dtype: DType = derived("HANDLE")

    def __eq__(self, other: Any) -> bool:
        return self.value == (other.value if isinstance(other, StringImm) else other)

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return repr(self)

    def __bool__(self) -> bool:
        return bool(self.value)


class Kind(IntEnum):
    """What a Python class is to the constructors of expressions."""

    ORDINARY = 0  # an expression
    CONSTANT = 1  # an expression that may fold
    FOREIGN = 2  # something to convert


class _Kinds(dict[type, Kind]):
    """The kind of each class; cheaper to ask than ``isinstance``."""

    def __missing__(self, cls: type) -> Kind:
        if not issubclass(cls, PrimExpr):
            kind = Kind.FOREIGN
        else:
            kind = Kind.CONSTANT if cls in (IntImm, FloatImm) else Kind.ORDINARY
        self[cls] = kind
        return kind


KINDS = _Kinds()


_int_imm: Callable[..., IntImm] = IntImm._make
# small integers, one table for each dtype
_SMALL = range(-16, 257)
SMALL_INTS: dict[DType, dict[int, IntImm]] = {}


def const(value: Any, dtype: Any = None, span: Span | None = None) -> PrimExpr:
    """A constant of the given dtype; by default int32 (int64 if it needs to), float32 or bool.

    An integer that the dtype cannot hold is rejected. Small ones are the same object each time.
    """
    kind = infer_dtype(value) if dtype is None else as_dtype(dtype)
    if kind.lanes > 1:
        return Broadcast(const(value, kind.element), kind.lanes, span=span)
    if kind.is_float:
        return FloatImm(kind, float(value), span=span)
    if kind.is_int or kind.is_uint:
        number = int(value)
        # any other number is the truth value True
        if number not in SMALL_INTS.get(kind, ()) and not kind.is_bool and not fits(number, kind):
            low, high = limits(kind)
            raise RuntimeValueError(
                f"const requires a number in [{low}, {high}] for {kind}, got {number}"
            )
        return int_imm(kind, number)
    raise TVMError(f"const requires an integer, floating-point or bool dtype, got {kind}")


register_func("node._const", const, override=True)


def int_imm(dtype: DType, value: int) -> IntImm:
    """The integer constant of a scalar dtype, wrapped around to fit."""
    try:
        return SMALL_INTS[dtype][value]
    except KeyError:
        if dtype in SMALL_INTS:
            return _int_imm(dtype, wrap(value, dtype), None)
        SMALL_INTS[dtype] = {
            number: _int_imm(dtype, number, None)
            for number in _SMALL
            if wrap(number, dtype) == number
        }
        return int_imm(dtype, value)


def wrap(value: int, dtype: DType) -> int:
    """The value modulo the dtype's range, as two's complement does."""
    if dtype.is_bool:
        return int(value != 0)
    bits = dtype.bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.is_int and value >> bits - 1 else value


# the dtypes of loop variables and shapes
INDEX_DTYPES = frozenset([INT32, INT64])
for _dtype in (INT32, INT64):
    int_imm(_dtype, 0)


def infer_dtype(value: Any) -> DType:
    """The dtype a Python or numpy scalar has as a constant."""
    kind = type(value)
    if kind is bool:
        return BOOL
    if kind is int:
        return INT32 if -(1 << 31) <= value < 1 << 31 else INT64
    if kind is float:
        return FLOAT32
    if isinstance(value, PrimExpr):
        return value.dtype
    if hasattr(value, "dtype"):
        return as_dtype(value.dtype if isinstance(value.dtype, str) else str(value.dtype))
    if isinstance(value, int):
        return INT32
    raise RuntimeTypeError(f"const requires a number, got {kind.__name__}: {value!r}")


def as_expr(value: Any, dtype: DType | None = None) -> PrimExpr:
    """``value`` as an expression; Python numbers become constants (of ``dtype`` if given)."""
    cls = type(value)
    if KINDS[cls] is not Kind.FOREIGN:
        return value  # type: ignore[no-any-return]
    if cls is int and dtype is None:
        return int_imm(INT32 if -(1 << 31) <= value < 1 << 31 else INT64, value)
    if isinstance(value, str):
        return StringImm(value)
    if hasattr(value, "asobject"):
        found = value.asobject()
        # a buffer stands for the pointer to its elements
        return as_expr(getattr(found, "data", found), dtype)
    if cls is ScalableLanes:
        expr: PrimExpr = _SCALABLE[1](value)
        return expr
    try:
        return const(value, dtype)
    except TypeError:
        raise NotAnOperand(f"an expression is required, got {cls.__name__}: {value!r}") from None


def as_exprs(values: Iterable[Any]) -> tuple[PrimExpr, ...]:
    """Each value as an expression; a single one counts as a sequence of one."""
    if isinstance(values, (PrimExpr, int)):
        return (as_expr(values),)
    return tuple([as_expr(value) for value in values])


def convert(expr: Any) -> Any:
    """``expr`` as a node: numbers and texts become constants, lists tuples."""
    if isinstance(expr, (list, tuple)):
        return tuple([convert(item) for item in expr])
    if isinstance(expr, Mapping):
        return {key: convert(item) for key, item in expr.items()}
    if expr is None or isinstance(expr, Node) or callable(expr):
        return expr
    return as_expr(expr)


# how scalable lanes are read from an expression and written as one; tir.scalable sets them
_SCALABLE: list[Callable[[Any], Any]] = []


def register_scalable_lanes(
    read: Callable[[PrimExpr], ScalableLanes], write: Callable[[ScalableLanes], PrimExpr]
) -> None:
    """Tell how ``vscale() * n`` becomes lanes, and lanes become ``vscale() * n``."""
    _SCALABLE[:] = [read, write]


def as_lanes(value: Any) -> int:
    """The lanes of a vector: a number, or for ``vscale()`` times a number :class:`ScalableLanes`."""
    if isinstance(value, PrimExpr) and type(value) is not IntImm:
        lanes: int = _SCALABLE[0](value)  # int() of it would lose that it is scalable
        return lanes
    return value if type(value) is ScalableLanes else int(value)


class Broadcast(PrimExprWithOp):
    """A vector whose lanes are all ``value``."""

    value: PrimExpr = child(convert=as_expr)
    lanes: int = leaf(convert=as_lanes)
    dtype: DType = derived("value.dtype.with_lanes(lanes * value.dtype.lanes)")


def is_const(expr: object, value: int) -> bool:
    """Whether an expression is that integer."""
    return isinstance(expr, IntImm) and expr.value == value


def is_zero(expr: object) -> bool:
    """Whether an expression is the integer 0."""
    return is_const(expr, 0)


def is_one(expr: object) -> bool:
    """Whether an expression is the integer 1."""
    return is_const(expr, 1)


def is_true(condition: object) -> bool:
    """Whether a condition is known to hold."""
    return isinstance(condition, IntImm) and bool(condition.value)


__all__ = [
    "BOOL",
    "Broadcast",
    "ConstExpr",
    "FLOAT32",
    "FLOAT64",
    "FloatImm",
    "HANDLE",
    "INDEX_DTYPES",
    "INT32",
    "INT64",
    "IntImm",
    "KINDS",
    "Kind",
    "SMALL_INTS",
    "StringImm",
    "as_expr",
    "as_exprs",
    "as_lanes",
    "const",
    "convert",
    "fits",
    "infer_dtype",
    "int_imm",
    "is_const",
    "is_one",
    "is_true",
    "is_zero",
    "register_scalable_lanes",
    "wrap",
]
