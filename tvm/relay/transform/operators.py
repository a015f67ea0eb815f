"""The operators that passes build or look for, in one place."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.expr import Call
from tvm.relay.op.binary import ADD, DIVIDE, MULTIPLY, SUBTRACT
from tvm.relay.op.creation import NDARRAY_SIZE, SHAPE_OF
from tvm.relay.op.nn.activation import BIAS_ADD, LEAKY_RELU, RELU
from tvm.relay.op.nn.conv import CONV2D
from tvm.relay.op.nn.dense import DENSE
from tvm.relay.op.nn.pooling import MAX_POOL2D
from tvm.relay.op.shaping import (
    BATCH_FLATTEN,
    EXPAND_DIMS,
    LAYOUT_TRANSFORM,
    RESHAPE,
    RESHAPE_LIKE,
    REVERSE_RESHAPE,
    SQUEEZE,
    TRANSPOSE,
)
from tvm.relay.op.unary import CAST, ONES_LIKE, ZEROS_LIKE

# they change the shape of their first argument and nothing else
RESHAPES = (RESHAPE, RESHAPE_LIKE, REVERSE_RESHAPE, EXPAND_DIMS, SQUEEZE, BATCH_FLATTEN)
# their result depends on the type of the argument alone
SHAPE_ONLY = (SHAPE_OF, NDARRAY_SIZE)


def calls(expr: RelayExpr, *operators: Op) -> bool:
    """Whether `expr` is a call of one of the operators."""
    return isinstance(expr, Call) and any(expr.op is op for op in operators)


__all__ = [
    "ADD",
    "BATCH_FLATTEN",
    "BIAS_ADD",
    "CAST",
    "CONV2D",
    "DENSE",
    "DIVIDE",
    "EXPAND_DIMS",
    "LAYOUT_TRANSFORM",
    "LEAKY_RELU",
    "MAX_POOL2D",
    "MULTIPLY",
    "ONES_LIKE",
    "RELU",
    "RESHAPE",
    "RESHAPES",
    "SHAPE_ONLY",
    "SQUEEZE",
    "SUBTRACT",
    "TRANSPOSE",
    "ZEROS_LIKE",
    "calls",
]
