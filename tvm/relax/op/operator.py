"""Operators of relax, each said once: a function whose signature is the operator's schema.

    @operator("relax.nn.softmax", infer=same_float_tensor, legalize=...)
    def softmax(data: Expr, axis: int = -1) -> Expr:
        '''Normalised exponentials along one axis.'''

Parameters annotated as expressions become arguments of the call, the others attributes, whose annotation says
what is accepted and what is stored. A body may return parameters in another form, by name.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Annotated, Any, TypeAlias, TypeVar

from tvm.error import TVMError, TypeCheckError
from tvm.ir.attrs import Attrs
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.node import NodeMeta, leaf
from tvm.ir.op import Op, register_op
from tvm.relax.expr import Call, DataTypeImm, ShapeExpr, StringImm, Tuple, as_expr
from tvm.support.docstrings import returns
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import FloatImm, IntImm

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Operand:
    """Annotates an argument: what makes an expression of other values; an optional one may be None."""

    convert: Callable[[Any], Any]
    optional: bool = False


@dataclass(frozen=True)
class Attribute:
    """Annotates an attribute: what makes the stored value of other ones."""

    convert: Callable[[Any], Any] | None = None


def _as_shape(value: Any) -> Any:
    return ShapeExpr(value) if isinstance(value, (tuple, list)) else as_expr(value)


def _as_tuple(value: Any) -> Any:
    return Tuple(value) if isinstance(value, (tuple, list)) else as_expr(value)


def as_data_type(value: Any) -> Any:
    """The name of a data type as an expression."""
    return DataTypeImm(value) if isinstance(value, str) else value


def as_string(value: Any) -> Any:
    """A text as an expression."""
    return StringImm(value) if isinstance(value, str) else value


def as_int(value: Any) -> Any:
    """An integer; None stays."""
    if value is None:
        return None
    try:
        return int(value.value if isinstance(value, (IntImm, FloatImm)) else value)
    except TypeError:
        raise TypeError(f"an integer is required, got {value}") from None


def _as_known_int(value: Any) -> Any:
    """An integer that has to be there."""
    if value is None:
        raise TypeError("an integer is required, got None")
    return as_int(value)


def as_ints(value: Any) -> Any:
    """Several integers, or one; None stays."""
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return tuple([_as_known_int(item) for item in value])
    return (as_int(value),)


def as_dims(value: Any) -> Any:
    """Several integers or expressions, integers as expressions of 64 bits; None stays."""
    if value is None:
        return None
    items = value if isinstance(value, (tuple, list)) else (value,)
    return tuple(
        [
            i
            if isinstance(i, PrimExpr) and not hasattr(i, "value")
            else IntImm("int64", _as_known_int(i))
            for i in items
        ]
    )


def as_numbers(dims: Any) -> list[Any]:
    """Dimensions as plain integers, where they are known."""
    return [as_int(dim) if hasattr(dim, "value") else dim for dim in dims]


Expr: TypeAlias = Annotated[Any, Operand(as_expr)]
OptExpr: TypeAlias = Annotated[Any, Operand(as_expr, optional=True)]
Shape: TypeAlias = Annotated[Any, Operand(_as_shape)]
Tensors: TypeAlias = Annotated[Any, Operand(_as_tuple)]
Ints: TypeAlias = Annotated[Any, Attribute(as_ints)]
Int: TypeAlias = Annotated[Any, Attribute(as_int)]
Dims: TypeAlias = Annotated[Any, Attribute(as_dims)]
DataType: TypeAlias = Annotated[Any, Attribute(lambda value: as_dtype(value or "void"))]
Attr: TypeAlias = Annotated[Any, Attribute()]

_PLAIN: Mapping[Any, Attribute] = {
    int: Attribute(_as_known_int),
    float: Attribute(float),
    bool: Attribute(bool),
    str: Attribute(str),
    "str | None": Attribute(lambda value: None if value is None else str(value)),
    "int | None": Attribute(as_int),
    "float | None": Attribute(lambda value: None if value is None else float(value)),
}


def operator(
    name: str,
    attrs: str | type[Attrs] | None = None,
    *,
    infer: Callable[[Call, Any], Any] | None = None,
    pure: bool = True,
    **facets: Any,
) -> Callable[[F], F]:
    """Declare an operator by its public function.

    Parameters
    ----------
    name : str
        Such as ``"relax.nn.softmax"``.
    attrs : str or Attrs, optional
        The name of the record of attributes (``"SoftmaxAttrs"``), or the record.
    infer : callable
        The struct info of a call, from it and the block builder that normalises it. Its docstring says
        what the function returns.
    pure : bool
        Whether it has no side effects.
    facets
        More of the record, by classic names: ``FLegalize``, ``FPrimalGradient``, ...
    """

    def declare(function: F) -> F:
        if isinstance(infer, FunctionType):
            returns("relax.Expr", infer.__doc__)(function)
        op = define(name, infer, pure, **facets)
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = signature(function).parameters
        kinds = {n: _kind(hints.get(n), p, function) for n, p in parameters.items()}
        record = attrs
        stored = {n: p for n, p in parameters.items() if isinstance(kinds[n], Attribute)}
        if stored and not isinstance(record, type):
            title = record or f"{function.__name__.title().replace('_', '')}Attrs"
            record = make_record(title, {n: p.default for n, p in stored.items()})
        public: F = _public(function, op, kinds, record if stored else None)
        op.extra["call"] = lambda _, *args, **kwargs: public(*args, **kwargs)
        op.extra["function"] = public
        op.set_facets(attrs_type=record if stored else None)
        return public

    return declare


def documented(function: F, name: str, module: str, doc: str) -> F:
    """A function that a family's factory has made, under its public name.

    Parameters
    ----------
    function : callable
        What the factory has made.
    name : str
        The public name.
    module : str
        The module of that name.
    doc : str
        The documentation.
    """
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = doc
    return function


def define(
    name: str, infer: Callable[[Call, Any], Any] | None = None, pure: bool = True, **facets: Any
) -> Op:
    """The record of an operator."""
    op = register_op(name)
    for key, value in {"FInferStructInfo": infer, "FPurity": pure, **facets}.items():
        if value is not None:
            op.set_attr(key, value, 0)
    return op


_RECORDS: dict[str, type[Any]] = {}


def make_record(title: str, defaults: Mapping[str, Any]) -> type[Any]:
    """The record of attributes of that classic name."""
    if (known := _RECORDS.get(title)) is not None:
        return known
    fields = {n: leaf() if d is Parameter.empty else leaf(default=d) for n, d in defaults.items()}
    namespace = {
        "__module__": "tvm.relax.op.op_attrs",
        "__annotations__": dict.fromkeys(fields, "object"),
        "__doc__": f"The attributes {', '.join(fields)}.",
        **fields,
    }
    made = NodeMeta(title, (Attrs,), namespace, key=f"relax.attrs.{title}")
    _RECORDS[title] = made
    return _RECORDS[title]


def records() -> Mapping[str, type[Any]]:
    """All records of attributes by name."""
    return _RECORDS


def _kind(hint: Any, parameter: Parameter, function: Callable[..., Any]) -> Operand | Attribute:
    for marker in getattr(hint, "__metadata__", ()):
        if isinstance(marker, (Operand, Attribute)):
            return marker
    found = _PLAIN.get(hint) or _PLAIN.get(str(hint).replace("typing.", ""))
    if found is None:
        raise TypeError(f"{function.__name__}.{parameter.name} requires a known annotation: {hint}")
    return found


def _public(function: Any, op: Op, kinds: Mapping[str, Operand | Attribute], record: Any) -> Any:
    bind = signature(function).bind

    @wraps(function)
    def build(*args: Any, **kwargs: Any) -> RelayExpr:
        bound = bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        try:
            changed = function(*args, **kwargs)
        except TVMError:
            raise
        except (TypeError, AttributeError, LookupError) as error:
            raise TypeCheckError(f"{op.name} cannot take its arguments: {error}") from error
        if isinstance(changed, RelayExpr):
            return changed
        if changed is not None:
            given.update(changed)
        operands, attributes = [], []
        for name, kind in kinds.items():
            value = given[name]
            try:
                if not isinstance(kind, Operand):
                    attributes.append(value if kind.convert is None else kind.convert(value))
                elif value is not None or not kind.optional:
                    operands.append(kind.convert(value))
            except (TypeError, ValueError) as error:
                raise TypeCheckError(f"{op.name} cannot take {name}={value!r}: {error}") from None
        made = None if record is None else record(*attributes)
        return Call(op, operands, made)

    build.op = op  # type: ignore[attr-defined]
    return build


__all__ = [
    "Attr", "DataType", "Dims", "Expr", "Int", "Ints", "OptExpr", "Shape", "Tensors",
    "as_int", "as_ints", "as_numbers", "define", "make_record", "operator", "records",
]  # fmt: skip
