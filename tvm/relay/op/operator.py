"""Operators, each said once: a function whose signature is the operator's schema.

    @operator("nn.leaky_relu", fuse=OpPattern.ELEMWISE, compute=...)
    def leaky_relu(data: Expr, alpha: float = 0.01) -> RelayExpr:
        '''x where it is positive, alpha * x elsewhere.'''

    leaky_relu(x, alpha=0.1)     a relay.Call
    leaky_relu.op                the record, `relay.op.get("nn.leaky_relu")`
    leaky_relu.op.attrs_type     the record of attributes: alpha, a float, 0.01 by default

Parameters annotated as `Expr` become arguments of the call, the others attributes; the annotation says what
is accepted and what is stored. A body that returns an expression replaces the call.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Annotated, Any, ParamSpec, Protocol, TypeAlias, TypeVar

from tvm.error import OpAttributeInvalid
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.node import NodeMeta
from tvm.ir.op import Op
from tvm.relay.expr import Call, TupleWrapper
from tvm.support.docstrings import described_by, returns
from tvm.support.signatures import take_names

from .attributes import (
    UnsuitableValue,
    as_expr,
    as_float,
    as_floats,
    as_int,
    as_ints,
    as_optional_int,
    as_optional_ints,
    as_optional_str,
    as_tuple,
    is_run_time,
    names_arguments,
    optional_spread,
    padding_pairs,
    spread,
)
from .computes import ComputedBy
from .registry import as_operand, define_op
from .run_time import RunTime, Value, declare_dynamic, field_names

# where the classic release has all records of attributes
_ATTRS_MODULE = "tvm.relay.op.op_attrs"
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class Operand:
    """Annotates an argument of the call; `convert` makes an expression of what else is taken.

    With `names` the parameter stands for several arguments of these names, all given by `convert`.
    """

    convert: Callable[[Any], Any] | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attribute:
    """Annotates an attribute: its type as the record stores it, and how any accepted value becomes one.

    `field` is its name in the record, where that is not the parameter's.
    """

    stored: str
    convert: Callable[[Any], Any] | None = None
    field: str = ""


Expr: TypeAlias = Annotated[RelayExpr, Operand()]
Tensors: TypeAlias = Annotated[Any, Operand(as_tuple)]  # a tuple, or a sequence
# plain annotations
_ATTRIBUTES: Mapping[Any, Attribute] = {
    int: Attribute("int", as_int),
    float: Attribute("float", as_float),
    bool: Attribute("bool", bool),
    str: Attribute("str", str),
    int | None: Attribute("int | None", as_optional_int),
}
Floats: TypeAlias = Annotated[Sequence[float], Attribute("tuple[float, ...]", as_floats)]
Ints: TypeAlias = Annotated[Any, Attribute("tuple[int, ...]", as_ints)]
OptionalInts: TypeAlias = Annotated[Any, Attribute("tuple[int, ...] | None", as_optional_ints)]
# None is the empty text
OptionalStr: TypeAlias = Annotated[str | None, Attribute("str", as_optional_str)]


def number(dtype: str) -> Operand:
    """An expression, or a number of this dtype."""
    return Operand(partial(as_expr, dtype=dtype))


def spatial(rank: int) -> Attribute:
    """One number for each spatial axis, or one for all."""
    return Attribute("tuple[int, ...]", partial(spread, rank=rank))


def optional_spatial(rank: int) -> Attribute:
    """As `spatial`, or None."""
    return Attribute("tuple[int, ...] | None", partial(optional_spread, rank=rank))


def padding(rank: int) -> Attribute:
    """`rank` numbers before and `rank` numbers after, from 1, `rank` or 2 * `rank`."""
    return Attribute("tuple[int, ...]", partial(padding_pairs, rank=rank))


Spatial1: TypeAlias = Annotated[Any, spatial(1)]
Spatial2: TypeAlias = Annotated[Any, spatial(2)]
Spatial3: TypeAlias = Annotated[Any, spatial(3)]
OptionalSpatial2: TypeAlias = Annotated[Any, optional_spatial(2)]
Padding1: TypeAlias = Annotated[Any, padding(1)]
Padding2: TypeAlias = Annotated[Any, padding(2)]


class OperatorFunction(Protocol[P, R_co]):
    """A public function that builds calls of one operator."""

    op: Op
    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


@dataclass(frozen=True)
class Schema:
    """The parameters of an operator's function, as its call takes them."""

    who: str  # as errors name it
    operands: Mapping[str, Operand]
    attributes: Mapping[str, Attribute]
    parameters: Mapping[str, Any]  # names and defaults, in the order of the signature

    @property
    def names(self) -> list[str]:
        """The names of the arguments."""
        return [n for name, kind in self.operands.items() for n in kind.names or (name,)]

    def attribute(self, name: str, value: Any) -> Any:
        """The value of a parameter as the record stores it.

        Raises
        ------
        OpAttributeInvalid
            If the parameter does not take it.
        """
        return self._converted(self.attributes[name].convert, name, value)

    def arguments(
        self, given: Mapping[str, Any], values: Mapping[str, Value | None] = MappingProxyType({})
    ) -> list[Any]:
        """The arguments of the call, from all parameters; raises as `attribute` does.

        Among them are the attributes in `values`, which the run decides.
        """
        found: list[Any] = []
        for name in self.parameters:
            if kind := self.operands.get(name):
                value = self._converted(kind.convert, name, given[name])
                found += value if kind.names else [value]
            elif value := values.get(name):
                found.append(self._converted(value.expression, name, given[name]))
        return found

    def run_time_arguments(self, how: RunTime) -> dict[str, Value | None]:
        """All arguments where the run decides about attributes, in the order of the signature."""
        found: dict[str, Value | None] = {}
        for name in self.parameters:
            if kind := self.operands.get(name):
                found |= dict.fromkeys(kind.names or (name,))
            elif name in how.instead:
                stored = self.attributes[name].stored
                found[name] = Value(name, stored, partial(self.attribute, name))
        return found

    def _converted(self, convert: Callable[[Any], Any] | None, name: str, value: Any) -> Any:
        try:
            return value if convert is None else convert(value)
        except UnsuitableValue as error:
            raise OpAttributeInvalid(
                f"{self.who} requires {error.wanted} for {name}, got {error.value!r}"
            ) from None


def operator(
    name: str,
    attrs: str | type[Attrs] | OperatorFunction[..., Any] | None = None,
    *,
    fields: Sequence[str] = (),
    defaults: Mapping[str, Any] = MappingProxyType({}),
    results: int | Callable[[Any], int | None] | None = None,
    run_time: RunTime | None = None,
    **facets: Any,
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    """Declare an operator by its public function.

    Parameters
    ----------
    name : str
        The operator's name, such as ``"nn.leaky_relu"``.
    attrs : str, Attrs or operator function, optional
        The classic name of the record of attributes, if it is not that of the function (``LeakyReluAttrs``
        of ``leaky_relu``); or a record, or another operator, whose record this one has, too.
    fields : sequence of str
        The record's fields in their classic order, where that is not the signature's.
    defaults : mapping
        What a printed program may leave out, though the function requires it.
    results : int or callable, optional
        Of how many tensors the call is a tuple, which comes as a `TupleWrapper`, or a function of the
        attributes that says so; by default, or where it says None, the call itself comes.
    run_time : RunTime, optional
        Which attributes may be expressions.
    facets
        The fields of the record (`tvm.relay.op.registry.define_op`); `inputs`, the names of the arguments,
        where they are not the parameters'. The docstring of `infer_type` says what the function returns.
    """

    def declare(function: Callable[P, R | None]) -> OperatorFunction[P, R]:
        if isinstance(compute := facets.get("compute"), ComputedBy):
            described_by(compute.function, types={"te.Tensor": "relay.Expr"})(function)
        described_by(_usual)(function)
        # lambdas and partial functions have no docstring, or that of their type
        if isinstance(relation := facets.get("infer_type"), types.FunctionType):
            wraps = "relay.Expr" if results is None else "relay.TupleWrapper"
            returns(wraps, relation.__doc__)(function)
        schema = _schema(function)
        record: Any = None
        if attrs is not None and not isinstance(attrs, str):
            record = attrs if isinstance(attrs, type) else attrs.op.attrs_type
        elif schema.attributes:
            title = attrs or f"{function.__name__.title().replace('_', '')}Attrs"
            record = _attrs_type(title, function, schema, fields, defaults)
        op = define_op(name, record, **{"inputs": schema.names, **facets})
        dynamic = None
        if run_time is not None:
            arguments = schema.run_time_arguments(run_time)
            dynamic = _Form(declare_dynamic(op, run_time, arguments), arguments, run_time.instead)
        return _public(function, _Form(op), dynamic, schema, results)

    return declare


def _usual(data: RelayExpr, axis: int) -> None:
    """What parameters are where a docstring does not say more.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    axis : int
        The axis.
    """


def _schema(function: Callable[..., Any]) -> Schema:
    """What the signature and its annotations say."""
    operands: dict[str, Operand] = {}
    attributes: dict[str, Attribute] = {}
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = {name: p.default for name, p in signature(function).parameters.items()}
    for name in parameters:
        hint = _written(hints.get(name))
        for marker in (*getattr(hint, "__metadata__", ()), _ATTRIBUTES.get(hint)):
            if isinstance(marker, Operand):
                operands[name] = marker
            elif isinstance(marker, Attribute):
                attributes[name] = marker
        if name not in operands and name not in attributes:
            raise TypeError(f"{function.__name__}: {name} is neither an operand nor an attribute")
    return Schema(function.__name__, operands, attributes, parameters)


def _written(hint: Any) -> Any:
    """An annotation as it was written: Python 3.10 adds None to one whose parameter defaults to it."""
    inner = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    is_added = typing.get_origin(hint) is typing.Union and len(inner) == 1
    return inner[0] if is_added and hasattr(inner[0], "__metadata__") else hint


def _attrs_type(
    name: str,
    function: Callable[..., Any],
    schema: Schema,
    fields: Sequence[str],
    defaults: Mapping[str, Any],
) -> NodeMeta:
    """The record of attributes that a signature describes."""
    by_field = {kind.field or name: name for name, kind in schema.attributes.items()}
    names = {field: by_field[field] for field in fields or by_field}
    namespace: dict[str, Any] = {
        "__module__": function.__module__,  # where the types of fields are looked up
        "__doc__": f"The attributes of `{function.__name__}`.",
        "__annotations__": {f: schema.attributes[name].stored for f, name in names.items()},
    }
    for name_in_record, parameter in names.items():
        default = defaults.get(name_in_record, schema.parameters[parameter])
        if default is not Parameter.empty:
            namespace[name_in_record] = schema.attribute(parameter, default)
    key = f"relay.attrs.{name}"
    made = types.new_class(name, (Attrs,), {"key": key}, lambda body: body.update(namespace))
    made.__module__ = _ATTRS_MODULE  # where pickles find it
    return typing.cast(NodeMeta, made)


@dataclass(frozen=True)
class _Form:
    """An operator that a function calls, and which attributes are arguments of it."""

    op: Op
    arguments: Mapping[str, Value | None] = field(default_factory=dict)
    instead: Mapping[str, Any] = field(default_factory=dict)  # what the record holds for them

    def call(self, schema: Schema, given: Mapping[str, Any]) -> Call:
        """The call of these parameters."""
        op = self.op
        found = schema.arguments(given, self.arguments)
        operands = [as_operand(op, i, value) for i, value in enumerate(found)]
        if op.attrs_type is None:
            return Call(op, operands)
        values = {
            kind.field or name: schema.attribute(name, given[name])
            for name, kind in schema.attributes.items()
            if name not in self.instead
        }
        own = {k: v for k, v in self.instead.items() if k in field_names(op.attrs_type)}
        return Call(op, operands, op.attrs_type(**values, **own))


def _public(
    function: Callable[P, R | None],
    static: _Form,
    dynamic: _Form | None,
    schema: Schema,
    results: int | Callable[[Any], int | None] | None,
) -> OperatorFunction[P, R]:
    """The function that users call: checked arguments, then the body's expression or the call."""
    plain = dict(schema.parameters)
    rewritten = names_arguments(function)

    def build(*args: P.args, **kwargs: P.kwargs) -> Any:
        replaced = rewritten(*args, **kwargs)  # which binds the arguments, too
        if replaced is not None:
            return replaced
        given = {**plain, **dict(zip(plain, args, strict=False)), **kwargs}
        is_open = dynamic and any([is_run_time(given[name]) for name in dynamic.instead])
        call = (dynamic if dynamic and is_open else static).call(schema, given)
        count = results(call.attrs) if callable(results) else results
        return call if count is None else TupleWrapper(call, count)

    found = typing.cast("OperatorFunction[P, R]", build)
    take_names(found, function)
    found.__dict__.update(op=static.op, __wrapped__=function)
    return found
