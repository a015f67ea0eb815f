"""Attributes that the run decides: `dyn.tile(%x, %reps)` beside `tile(%x, reps=[2, 1])`.

    @operator("tile", ..., run_time=RunTime({"reps": ()}))
    def tile(data: Expr, reps: Ints) -> RelayExpr:

    tile(x, expression)     a call of dyn.tile, whose record has () for reps

The other operator follows from the static one. Its type is that of unknown values; its shape function and
its kernel are those of the values that the run gives; where they are constants, it becomes the static call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tir, topi
from tvm.error import TypeCheckError
from tvm.ir.attrs import Attrs
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import Call, Constant, const

from .attributes import as_float, run_time_vector
from .registry import Compute, Gradient, OpPattern, ShapeFunc, define_op
from .types import TypeRelation, expect, expect_tensor, shape_of_type, tensor, unknown


@dataclass(frozen=True)
class RunTime:
    """Which attributes may be expressions, and what the record holds in their place.

    A facet is given where that of the static operator does not serve: one that needs numbers.
    """

    instead: Mapping[str, Any]
    attrs: type[Attrs] | None = None
    infer_type: TypeRelation | None = None
    compute: Compute[Any] | None = None
    shape_func: ShapeFunc[Any] | None = None
    gradient: Gradient | None = None


@dataclass(frozen=True)
class Value:
    """An argument that stands for an attribute."""

    name: str
    stored: str  # the attribute's type in the static operator's record
    convert: Callable[[Any], Any]

    @property
    def rank(self) -> int:
        """0 for a number, 1 for several, 2 for pairs."""
        return self.stored.count("tuple[")

    def expression(self, given: Any) -> RelayExpr:
        """The argument, of what the caller gives beside expressions."""
        if isinstance(given, RelayExpr):
            return given
        if "float" not in self.stored:
            return run_time_vector(given)
        return (
            const(list(given or ()), "float32") if self.rank else const(as_float(given), "float64")
        )

    def unknown(self, ty: Type, who: str) -> Any:
        """The attribute of values of this type."""
        if self.rank == 0:
            expect_tensor(ty, who, self.name)
            return unknown()
        if self.rank == 1:
            return self._or_none(unknowns(vector_length(ty, who, self.name)))
        count, width = shape_of_type(expect_tensor(ty, who, self.name, rank=2))
        expect(
            isinstance(count, int) and width == 2,
            f"{who} requires a known number of pairs for {self.name}, got {ty}",
        )
        return [unknowns(2) for _ in range(count)]  # type: ignore[arg-type]

    def element(self, values: te.Tensor) -> Any:
        """The attribute of values that a kernel reads."""
        if self.rank == 0:
            return scalar(values)
        if self.rank == 1 and "float" in self.stored:
            return self._or_none([values(i) for i in range(length_of(values))])
        if self.rank == 1:
            return self._or_none(entries(values))
        rows = topi.utils.get_const_int(values.shape[0])
        return [[values(i, k).astype("int64") for k in range(2)] for i in range(rows)]

    def number(self, constant: Constant) -> Any:
        """The attribute of values that are known."""
        values = constant.data.numpy()
        return self.convert(values if self.rank else values.reshape(-1)[0])

    def _or_none(self, values: list[Any]) -> list[Any] | None:
        return None if not values and self.stored.endswith("None") else values


class _Replaced:
    """A record of attributes with other values for some of them."""

    def __init__(self, attrs: Any, values: Mapping[str, Any]) -> None:
        self._attrs, self._values = attrs, values

    def __getattr__(self, name: str) -> Any:
        return self._values[name] if name in self._values else getattr(self._attrs, name)

    __getitem__ = __getattr__

    def __contains__(self, name: str) -> bool:
        return name in self._values or name in self._attrs


def declare_dynamic(static: Op, how: RunTime, arguments: Mapping[str, Value | None]) -> Op:
    """Declare the operator whose attributes `how` names are arguments, among all in this order."""
    name = f"dyn.{static.name}"
    values = {i: value for i, value in enumerate(arguments.values()) if value is not None}
    infer_static, compute_static = static.infer_type, static.compute
    assert infer_static is not None

    def rest(given: Sequence[Any]) -> list[Any]:
        return [x for i, x in enumerate(given) if i not in values]

    def infer_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        known = {value.name: value.unknown(arg_types[i], name) for i, value in values.items()}
        found: Type = infer_static(_Replaced(attrs, known), rest(arg_types))
        return found

    def at_run_time(attrs: Attrs, inputs: Sequence[te.Tensor]) -> Any:
        known = {value.name: value.element(inputs[i]) for i, value in values.items()}
        return _Replaced(attrs, known)

    def shape_func(attrs: Any, inputs: Sequence[te.Tensor], out_ranks: Any) -> list[te.Tensor]:
        types = [tensor(entries(shape), "float32") for shape in rest(inputs)]
        found = infer_static(at_run_time(attrs, inputs), types)
        results = found.fields if isinstance(found, TupleType) else (found,)
        return [shape_tensor(shape_of_type(ty)) for ty in results]

    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Any) -> list[te.Tensor]:
        assert compute_static is not None
        found: list[te.Tensor] = compute_static(at_run_time(attrs, inputs), rest(inputs), out_type)
        return found

    def make_static(call: Call) -> RelayExpr | None:
        if not all([isinstance(call.args[i], Constant) for i in values]):
            return None
        known = {value.name: value.number(call.args[i]) for i, value in values.items()}  # type: ignore[arg-type]
        kept = {k: v for k, v in call.attrs.items() if k in field_names(static.attrs_type)}
        return Call(static, rest(call.args), static.attrs_type(**{**kept, **known}))

    return define_op(
        name,
        how.attrs or static.attrs_type,
        inputs=list(arguments),
        infer_type=how.infer_type or infer_type,
        fuse=OpPattern.INJECTIVE,
        compute=how.compute or compute,
        schedules=static.schedules,
        shape_func=how.shape_func or shape_func,
        shape_reads=list(values),
        make_static=make_static,
        gradient=how.gradient,
    )


def field_names(record: Any) -> list[str]:
    """The attributes that a record has."""
    return [field.name for field in record.node_fields]


def unknowns(rank: int) -> list[PrimExpr]:
    """A shape of which only the rank is known."""
    return [unknown() for _ in range(rank)]


def vector_length(ty: Type, who: str, argument: str) -> int:
    """The extent of a vector of numbers, which decides about a rank."""
    vector = expect_tensor(ty, who, argument, rank=1)
    extent = shape_of_type(vector)[0]
    if not isinstance(extent, int):
        raise TypeCheckError(
            f"{who} requires a vector of known length for {argument}, since the result's rank follows"
        )
    expect(
        vector.dtype != "bool",
        f"{who} requires {argument} of integers, or of floats without a fraction, got {vector.dtype}",
    )
    return extent


def shape_tensor(dims: Sequence[PrimExpr | int]) -> te.Tensor:
    """A shape as a vector of int64."""
    values = [tir.const(d, "int64") if isinstance(d, int) else d.astype("int64") for d in dims]

    def element(i: PrimExpr) -> PrimExpr:
        chosen = values[-1] if values else tir.const(0, "int64")
        for k in reversed(range(len(values) - 1)):
            chosen = tir.if_then_else(tir.EQ(i, tir.const(k, "int32")), values[k], chosen)
        return chosen

    return te.compute((len(values),), element, name="shape")


def length_of(vector: te.Tensor) -> int:
    """The number of elements of a vector, which is known."""
    return topi.utils.get_const_int(vector.shape[0])


def entries(vector: te.Tensor) -> list[PrimExpr]:
    """The elements of a vector of known length, as int64."""
    return [vector(i).astype("int64") for i in range(length_of(vector))]


def scalar(value: te.Tensor) -> PrimExpr:
    """The element of a scalar, or of a vector of one."""
    return value(*[0] * len(value.shape))


def number(value: int) -> PrimExpr:
    """An int64 constant."""
    return tir.const(value, "int64")
