"""What the virtual machine does besides running functions: kernels on given outputs, shapes.

let %shape = vm.shape_of(%x);
let %_ = vm.shape_func(fn (%p0) {...}, (%shape,), (%out_shape, %out_bytes));
let %_ = vm.invoke_tvm_op(fn (%p0) {...}, (%x,), (%out,));
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import register_op
from tvm.ir.type import Type
from tvm.relay.expr import Call, Tuple
from tvm.relay.op import creation
from tvm.relay.op.memory.memory import EMPTY
from tvm.relay.op.registry import OpPattern
from tvm.relay.op.types import expect_tensor, tensor


class ShapeFuncAttrs(Attrs, key="relay.attrs.ShapeFuncAttrs"):
    """For each input, whether the values are given, not the shape."""

    is_input: tuple[int, ...] = ()


class ReshapeTensorAttrs(Attrs, key="relay.attrs.ReshapeTensorAttrs"):
    """The new shape, as far as it is known."""

    newshape: tuple[object, ...] = ()


# no `define_op`: the virtual machine runs them, no kernel does
SHAPE_OF = register_op("vm.shape_of").set_facets(
    attrs_type=creation.shape_of.op.attrs_type,
    num_inputs=1,
    arguments=[("tensor", "Expr", "")],
    infer_type=lambda attrs, arg_types: tensor(
        (len(expect_tensor(arg_types[0], "vm.shape_of").shape),), attrs.dtype
    ),
    fuse=OpPattern.OPAQUE,
)
SHAPE_FUNC = register_op("vm.shape_func").set_facets(
    attrs_type=ShapeFuncAttrs,
    num_inputs=3,
    arguments=[("func", "Expr", ""), ("inputs", "Expr", ""), ("outputs", "Expr", "")],
    infer_type=lambda attrs, arg_types: EMPTY,
    fuse=OpPattern.OPAQUE,
)
INVOKE_TVM_OP = register_op("vm.invoke_tvm_op").set_facets(
    num_inputs=3,
    arguments=[("func", "Expr", ""), ("inputs", "Expr", ""), ("outputs", "Expr", "")],
    infer_type=lambda attrs, arg_types: EMPTY,
    fuse=OpPattern.OPAQUE,
)


def _reshape_type(attrs: ReshapeTensorAttrs, arg_types: Sequence[Type]) -> Type:
    return tensor(attrs.newshape, expect_tensor(arg_types[0], "vm.reshape_tensor").dtype)  # type: ignore[arg-type]


RESHAPE_TENSOR = register_op("vm.reshape_tensor").set_facets(
    attrs_type=ReshapeTensorAttrs,
    num_inputs=2,
    arguments=[("data", "Expr", ""), ("shape", "Expr", "")],
    infer_type=_reshape_type,
    fuse=OpPattern.OPAQUE,
)


def shape_of(expr: RelayExpr) -> Call:
    """The extents of a tensor, as int64."""
    return Call(SHAPE_OF, (expr,), SHAPE_OF.attrs_type("int64"))


def invoke_tvm_op(func: RelayExpr, inputs: Tuple, outputs: Tuple) -> Call:
    """Run the kernel of a primitive function on tensors, which it writes."""
    return Call(INVOKE_TVM_OP, (func, inputs, outputs))


def shape_func(func: RelayExpr, inputs: Tuple, outputs: Tuple, is_inputs: Sequence[int]) -> Call:
    """Find the extents of the results of a primitive function, and their bytes.

    Parameters
    ----------
    func : the primitive function.
    inputs : for each tensor argument, its extents, or itself where `is_inputs` says so.
    outputs : int64 tensors: the extents of each result, then the bytes of each.
    is_inputs : one flag an argument.
    """
    return Call(
        SHAPE_FUNC, (func, inputs, outputs), ShapeFuncAttrs(tuple([int(i) for i in is_inputs]))
    )


def reshape_tensor(data: RelayExpr, shape: RelayExpr, newshape: Sequence[object]) -> Call:
    """The same memory under another shape.

    Parameters
    ----------
    data : the tensor.
    shape : the new extents, when the program runs.
    newshape : the new extents, as far as they are known.
    """
    return Call(RESHAPE_TENSOR, (data, shape), ReshapeTensorAttrs(tuple(newshape)))
