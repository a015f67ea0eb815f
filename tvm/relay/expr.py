"""The expressions of relay, the graph-level language.

An expression is a node of a data-flow graph: one node used twice is computed once. Functions
are in `function.py`; the operators a call may name are in `op/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.ir import extension
from tvm.ir.attrs import Attrs
from tvm.ir.expr import BaseExpr, GlobalVar, RelayExpr
from tvm.ir.node import binder, child, ignored, leaf
from tvm.ir.op import Op
from tvm.ir.span import Span
from tvm.ir.type import IncompleteType, TensorType, TupleType, Type
from tvm.relay.with_fields import (
    CallWithFields,
    ConstantWithFields,
    IfWithFields,
    LetWithFields,
    RefCreateWithFields,
    RefReadWithFields,
    RefWriteWithFields,
    TupleGetItemWithFields,
    TupleWithFields,
    VarWithFields,
)
from tvm.runtime.ndarray import NDArray
from tvm.support.dtype import dtype as as_dtype
from tvm.support.later import names_from_above

Expr = RelayExpr


def _apply(op_name: str, *args: RelayExpr, **attrs: object) -> Call:
    """A call of the operator registered as `op_name`."""
    call = Op.get(op_name)(*args, **attrs)
    assert isinstance(call, Call)
    return call


def _operand(other: object) -> RelayExpr:
    if isinstance(other, RelayExpr):
        return other
    if isinstance(other, (bool, int, float, np.generic)):
        raise TypeError(f"convert {other!r} with `relay.const` first: its dtype is not known here")
    raise TypeError(f"a relay expression is required here, got {type(other).__name__}")


class ExprWithOp(RelayExpr):
    """An expression on which Python's operators build calls of relay operators."""

    def astext(
        self, show_meta_data: bool = True, annotate: Callable[[RelayExpr], str] | None = None
    ) -> str:
        """The text form; `annotate` gives a comment for each expression."""
        return extension.expression_text.required(self, show_meta_data, annotate)

    def astype(self, dtype: str) -> RelayExpr:
        """Convert the elements to `dtype`."""
        return _apply("cast", self, dtype=as_dtype(dtype))

    def __neg__(self) -> RelayExpr:
        return _apply("negative", self)

    def __lt__(self, other: object) -> RelayExpr:
        return _apply("less", self, _operand(other))

    def __gt__(self, other: object) -> RelayExpr:
        return _apply("greater", self, _operand(other))

    def __le__(self, other: object) -> RelayExpr:
        return _apply("less_equal", self, _operand(other))

    def __ge__(self, other: object) -> RelayExpr:
        return _apply("greater_equal", self, _operand(other))

    def __add__(self, other: object) -> RelayExpr:
        return _apply("add", self, _operand(other))

    def __radd__(self, other: object) -> RelayExpr:
        return _apply("add", _operand(other), self)

    def __sub__(self, other: object) -> RelayExpr:
        return _apply("subtract", self, _operand(other))

    def __rsub__(self, other: object) -> RelayExpr:
        return _apply("subtract", _operand(other), self)

    def __mul__(self, other: object) -> RelayExpr:
        return _apply("multiply", self, _operand(other))

    def __rmul__(self, other: object) -> RelayExpr:
        return _apply("multiply", _operand(other), self)

    def __truediv__(self, other: object) -> RelayExpr:
        return _apply("divide", self, _operand(other))

    def __rtruediv__(self, other: object) -> RelayExpr:
        return _apply("divide", _operand(other), self)

    def __div__(self, other: object) -> RelayExpr:
        return self.__truediv__(other)

    def __call__(self, *args: RelayExpr) -> Call:
        """Call this expression as a function."""
        return Call(self, args)


class Constant(ExprWithOp, key="relay.Constant"):
    """A tensor known at compile time."""

    data: NDArray = leaf()

    if TYPE_CHECKING:

        def __init__(
            self,
            data: NDArray,
            span: Span | None = None,
        ) -> None: ...


def _exprs(values: Sequence[RelayExpr]) -> tuple[RelayExpr, ...]:
    return tuple([v.astuple() if isinstance(v, TupleWrapper) else v for v in values])


class Tuple(ExprWithOp, key="relay.Tuple"):
    """Several values as one."""

    fields: tuple[RelayExpr, ...] = child(convert=_exprs)

    if TYPE_CHECKING:

        def __init__(
            self,
            fields: Sequence[RelayExpr | TupleWrapper],
            span: Span | None = None,
        ) -> None: ...

    def __getitem__(self, index: int) -> RelayExpr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[RelayExpr]:
        return iter(self.fields)

    def astype(self, _: str) -> RelayExpr:
        raise TypeError("astype cannot be used on a tuple; convert its fields")


def _annotation(ty: Type | None) -> Type | None:
    return None if isinstance(ty, IncompleteType) else ty


class Var(ExprWithOp, key="relay.Var"):
    """A variable: a function's parameter or the name that a let binds."""

    structural: ClassVar[str] = "variable"
    name_hint: str = ignored()
    type_annotation: Type | None = child(default=None, convert=_annotation)

    if TYPE_CHECKING:

        def __init__(
            self,
            name_hint: str,
            type_annotation: Type | None = None,
            span: Span | None = None,
        ) -> None: ...

    @property
    def vid(self) -> Var:
        """The variable's identity (classic name)."""
        return self


def _call_args(args: Sequence[RelayExpr]) -> tuple[RelayExpr, ...]:
    return _exprs(args)


class InferredTypes(tuple[Type, ...]):
    """Types of the arguments of an operator, which inference noted; those a program gives are none."""

    # of the call with arguments of these types; a copy of it with others keeps the note
    found: tuple[Any, Any, Type] | None = (
        None  # the operator's relation, its attributes, the result
    )

    def __reduce__(self) -> tuple[Any, ...]:
        return InferredTypes, (tuple(self),)


def _type_args(types: Sequence[Type] | None) -> tuple[Type, ...]:
    return types if isinstance(types, InferredTypes) else tuple(types or ())


class Call(ExprWithOp, key="relay.Call"):
    """A call of an operator, a function or a global function."""

    op: RelayExpr
    args: tuple[RelayExpr, ...] = child(convert=_call_args)
    attrs: Any = leaf(default=None)  # a record of the operator's own class, or None
    # what the callee's type parameters stand for; inference fills in those of operators
    type_args: tuple[Type, ...] = ignored(default=(), convert=_type_args)

    if TYPE_CHECKING:

        def __init__(
            self,
            op: RelayExpr,
            args: Sequence[RelayExpr | TupleWrapper],
            attrs: Attrs | None = None,
            type_args: Sequence[Type] | None = None,
            span: Span | None = None,
        ) -> None: ...

    @property
    def operator(self) -> Op:
        """The callee of a call that is known to be one of an operator."""
        assert isinstance(self.op, Op)
        return self.op


class Let(ExprWithOp, key="relay.Let"):
    """let var = value; body"""

    var: Var = binder("value", "body")
    value: RelayExpr
    body: RelayExpr

    def __init__(
        self, variable: Var, value: RelayExpr, body: RelayExpr, span: Span | None = None
    ) -> None:
        self._init(variable, value, body, span)


class If(ExprWithOp, key="relay.If"):
    """Evaluate one of two branches, by a scalar boolean."""

    cond: RelayExpr
    true_branch: RelayExpr
    false_branch: RelayExpr

    if TYPE_CHECKING:

        def __init__(
            self,
            cond: RelayExpr,
            true_branch: RelayExpr,
            false_branch: RelayExpr,
            span: Span | None = None,
        ) -> None: ...


class TupleGetItem(ExprWithOp, key="relay.TupleGetItem"):
    """One field of a tuple."""

    tuple_value: RelayExpr
    index: int = leaf()

    if TYPE_CHECKING:

        def __init__(
            self,
            tuple_value: RelayExpr,
            index: int,
            span: Span | None = None,
        ) -> None: ...


def field_of(value: RelayExpr, index: int) -> RelayExpr:
    """A field of a tuple; of one that is written out, the expression that stands there."""
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index)


def fields_of(value: RelayExpr, count: int) -> list[RelayExpr]:
    """All fields of a tuple that has `count` of them, as `field_of` gives them."""
    return [field_of(value, index) for index in range(count)]


class RefCreate(ExprWithOp, key="relay.RefCreate"):
    """A new mutable cell."""

    value: RelayExpr

    if TYPE_CHECKING:

        def __init__(
            self,
            value: RelayExpr,
            span: Span | None = None,
        ) -> None: ...


class RefRead(ExprWithOp, key="relay.RefRead"):
    """The content of a cell."""

    ref: RelayExpr

    if TYPE_CHECKING:

        def __init__(
            self,
            ref: RelayExpr,
            span: Span | None = None,
        ) -> None: ...


class RefWrite(ExprWithOp, key="relay.RefWrite"):
    """Store a value in a cell."""

    ref: RelayExpr
    value: RelayExpr

    if TYPE_CHECKING:

        def __init__(
            self,
            ref: RelayExpr,
            value: RelayExpr,
            span: Span | None = None,
        ) -> None: ...


class TempExpr(ExprWithOp, key="relay.TempExpr"):
    """A value that a pass carries along and turns into an expression in the end."""

    def realize(self) -> RelayExpr:
        """The expression that stands for this value."""
        raise NotImplementedError(f"{type(self).__name__} does not define realize")


class TupleWrapper:
    """A tuple-valued expression that Python can unpack: `a, b = relay.split(x, 2)`."""

    def __init__(self, tuple_value: RelayExpr, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> RelayExpr:
        """The tuple as one relay expression."""
        return self.tuple_value

    def astext(self) -> str:
        """The tuple's text form."""
        return extension.expression_text.required(self.tuple_value, True, None)

    def __getitem__(self, index: int) -> RelayExpr:
        if not -self.size <= index < self.size:
            raise IndexError(
                f"tuple index {index} is out of range, the tuple has {self.size} fields"
            )
        if isinstance(self.tuple_value, Tuple):
            return self.tuple_value.fields[index]
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[RelayExpr]:
        return iter([self[i] for i in range(self.size)])

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"

    def astype(self, _: str) -> RelayExpr:
        raise TypeError("astype cannot be used on a tuple; convert its fields")


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Sequence[int | BaseExpr] | None = None,
    dtype: str = "float32",
    span: Span | None = None,
) -> Var:
    """A new variable.

    Parameters
    ----------
    name_hint : the name that is printed; two variables of one name are different variables.
    type_annotation : its type; a string is the dtype of a scalar.
    shape, dtype : another way to state a tensor type.
    """
    if type_annotation is not None and shape is not None:
        raise ValueError("give either type_annotation or shape to relay.var, not both")
    if shape is not None:
        return Var(name_hint, TensorType(tuple(shape), dtype), span)
    if isinstance(type_annotation, str):
        return Var(name_hint, TensorType((), type_annotation), span)
    return Var(name_hint, type_annotation, span)


_DEFAULT_CONST_DTYPE = {"float64": "float32", "int64": "int32"}


def const(
    value: Any,  # a Python number, a nested list, a numpy array or an NDArray
    dtype: str | None = None,
    span: Span | None = None,
) -> Constant:
    """A constant; Python numbers and lists become int32, float32 or bool without a dtype.

    Parameters
    ----------
    value : number, list, numpy.ndarray or NDArray
        The value.
    dtype : str, optional
        The element type. Arrays keep theirs by default; numbers and lists become int32, float32 or
        bool.
    span : Span, optional
        Its place in a source.
    """
    if isinstance(value, NDArray):
        return Constant(value, span)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        dtype = dtype or array.dtype.name
    else:
        array = np.asarray(value)
        dtype = dtype or _DEFAULT_CONST_DTYPE.get(array.dtype.name, array.dtype.name)
    try:
        numbers = array.astype(as_dtype(dtype).numpy, copy=False)
    except (TypeError, ValueError):
        raise TypeError(f"a constant requires numbers, got {value!r}") from None
    return Constant(nd.array(numbers), span)


__all__ = [
    "Call",
    "CallWithFields",
    "Constant",
    "ConstantWithFields",
    "Expr",
    "ExprWithOp",
    "GlobalVar",
    "If",
    "IfWithFields",
    "Let",
    "LetWithFields",
    "RefCreate",
    "RefCreateWithFields",
    "RefRead",
    "RefReadWithFields",
    "RefWrite",
    "RefWriteWithFields",
    "RelayExpr",
    "TempExpr",
    "Tuple",
    "TupleWithFields",
    "TupleGetItem",
    "TupleGetItemWithFields",
    "TupleType",
    "TupleWrapper",
    "Var",
    "VarWithFields",
    "const",
    "var",
]


__getattr__ = names_from_above(__name__)
