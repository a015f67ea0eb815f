"""What operators have in common whose shape is a value: `dyn.reshape(%x, %newshape)` and so on.

The type of such a call says the rank of its result; the shape function computes the shape when
the program runs. Where the value is a constant, `make_static` gives the operator with attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Annotated, Any, TypeAlias, get_type_hints

import numpy as np

from tvm import te, tir, topi
from tvm.error import TypeCheckError
from tvm.ir.attrs import Attrs
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.expr import Call, Constant

from ..attributes import as_ints
from ..operator import OperatorFunction
from ..registry import Compute, Gradient, OpPattern, Schedule, ShapeFunc, define_op
from ..types import TypeRelation, expect, expect_tensor, shape_of_type, unknown

# annotate arguments that decide about the shape: by integers of any dtype, or by any numbers
Values: TypeAlias = Annotated[np.ndarray, "integers"]
RealValues: TypeAlias = Annotated[np.ndarray, "numbers"]


def dynamic(
    name: str,
    attrs: type[Attrs] | OperatorFunction[..., Any] | None = None,
    *,
    infer_type: TypeRelation,
    compute: Compute[Any],
    shape_func: ShapeFunc[Any],
    fuse: OpPattern = OpPattern.INJECTIVE,
    schedules: Mapping[str, Schedule[Any]] | None = None,
    gradient: Gradient | None = None,
) -> Callable[[Callable[..., RelayExpr | None]], Op]:
    """Declare an operator by what it is where its shape is known.

    That is a function of the attributes and of the arguments, of which those that decide about the
    shape, `Values` and `RealValues`, are arrays.
    """

    def declare(static: Callable[..., RelayExpr | None]) -> Op:
        _, *names = signature(static).parameters
        hints = get_type_hints(static, include_extras=True)
        kinds = [hints[argument] for argument in names]
        deciding = [i for i, kind in enumerate(kinds) if kind in (Values, RealValues)]

        def make_static(call: Call) -> RelayExpr | None:
            given: list[Any] = list(call.args)
            for i in deciding:
                if not isinstance(given[i], Constant):
                    return None
                found = given[i].data.numpy()
                is_whole = found.ndim == 1 and kinds[i] == Values
                given[i] = np.array(as_ints(found), "int64") if is_whole else found
            return static(call.attrs, *given)

        return define_op(
            name,
            attrs if attrs is None or isinstance(attrs, type) else attrs.op.attrs_type,
            inputs=names,
            infer_type=infer_type,
            fuse=fuse,
            compute=compute,
            schedules=schedules,
            shape_func=shape_func,
            shape_reads=deciding,
            make_static=make_static,
            gradient=gradient,
        )

    return declare


def given_shape(position: int) -> ShapeFunc[Any]:
    """The shape function of results whose shape is an argument."""
    return lambda attrs, inputs, out_ndims: [shape_tensor(entries(inputs[position]))]


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
