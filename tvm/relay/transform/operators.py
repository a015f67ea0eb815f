"""Groups of operators that passes treat alike."""

from __future__ import annotations

from typing import TypeGuard

from tvm.ir.adt import Constructor
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.expr import Call
from tvm.relay.function import is_primitive
from tvm.relay.op.registry import ops

CONVOLUTIONS = (ops.nn.conv1d, ops.nn.conv2d, ops.nn.conv3d)
TRANSPOSED_CONVOLUTIONS = (
    ops.nn.conv1d_transpose,
    ops.nn.conv2d_transpose,
    ops.nn.conv3d_transpose,
)
MAX_POOLS = (ops.nn.max_pool1d, ops.nn.max_pool2d, ops.nn.max_pool3d)
AVG_POOLS = (ops.nn.avg_pool1d, ops.nn.avg_pool2d, ops.nn.avg_pool3d)
# they change the shape of their first argument and nothing else
RESHAPES = (
    ops.reshape,
    ops.reshape_like,
    ops.contrib_reverse_reshape,
    ops.expand_dims,
    ops.squeeze,
    ops.nn.batch_flatten,
)
# their result depends on the type of the argument alone
SHAPE_ONLY = (ops.shape_of, ops.ndarray_size)


def is_operator_call(expr: RelayExpr) -> TypeGuard[Call]:
    """Whether `expr` is a call of an operator, which its property `operator` gives."""
    return isinstance(expr, Call) and isinstance(expr.op, Op)


def is_leaf_call(call: Call) -> bool:
    """Whether what is called is an operator, a constructor or a kernel, which call nothing themselves."""
    return isinstance(call.op, (Op, Constructor)) or is_primitive(call.op)


def calls(expr: RelayExpr, *operators: Op) -> TypeGuard[Call]:
    """Whether `expr` is a call of one of the operators."""
    if type(expr) is Call:
        called = expr.op
        for op in operators:
            if called is op:
                return True
    return False
