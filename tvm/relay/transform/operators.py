"""The operators that passes build or look for, in one place."""

from __future__ import annotations

from typing import TypeGuard

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.expr import Call
from tvm.relay.op.binary import ADD, DIVIDE, MULTIPLY, SUBTRACT
from tvm.relay.op.creation import NDARRAY_SIZE, ONES, SHAPE_OF, ZEROS
from tvm.relay.op.joining import CONCATENATE
from tvm.relay.op.marks import DEVICE_COPY, ON_DEVICE, STOP_FUSION
from tvm.relay.op.nn.activation import BIAS_ADD, LEAKY_RELU, PAD, RELU
from tvm.relay.op.nn.conv import CONV2D
from tvm.relay.op.nn.conv_ranks import CONV1D, CONV3D
from tvm.relay.op.nn.conv_transpose import CONV1D_TRANSPOSE, CONV2D_TRANSPOSE, CONV3D_TRANSPOSE
from tvm.relay.op.nn.dense import BATCH_MATMUL, DENSE, MATMUL
from tvm.relay.op.nn.pooling import (
    AVG_POOL1D,
    AVG_POOL2D,
    AVG_POOL3D,
    MAX_POOL1D,
    MAX_POOL2D,
    MAX_POOL3D,
)
from tvm.relay.op.nn.rearrange import BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND
from tvm.relay.op.nn.sparse import SPARSE_CONV2D, SPARSE_DENSE
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

CONVOLUTIONS = (CONV1D, CONV2D, CONV3D)
TRANSPOSED_CONVOLUTIONS = (CONV1D_TRANSPOSE, CONV2D_TRANSPOSE, CONV3D_TRANSPOSE)
MAX_POOLS = (MAX_POOL1D, MAX_POOL2D, MAX_POOL3D)
AVG_POOLS = (AVG_POOL1D, AVG_POOL2D, AVG_POOL3D)
# they change the shape of their first argument and nothing else
RESHAPES = (RESHAPE, RESHAPE_LIKE, REVERSE_RESHAPE, EXPAND_DIMS, SQUEEZE, BATCH_FLATTEN)
# their result depends on the type of the argument alone
SHAPE_ONLY = (SHAPE_OF, NDARRAY_SIZE)


def calls(expr: RelayExpr, *operators: Op) -> TypeGuard[Call]:
    """Whether `expr` is a call of one of the operators."""
    return isinstance(expr, Call) and any(expr.op is op for op in operators)


__all__ = [
    "ADD",
    "AVG_POOLS",
    "BATCH_FLATTEN",
    "BATCH_MATMUL",
    "BATCH_TO_SPACE_ND",
    "BIAS_ADD",
    "CAST",
    "CONCATENATE",
    "CONV2D",
    "CONVOLUTIONS",
    "DENSE",
    "DEVICE_COPY",
    "DIVIDE",
    "EXPAND_DIMS",
    "LAYOUT_TRANSFORM",
    "LEAKY_RELU",
    "MATMUL",
    "MAX_POOL2D",
    "MAX_POOLS",
    "MULTIPLY",
    "ONES",
    "ONES_LIKE",
    "ON_DEVICE",
    "PAD",
    "RELU",
    "RESHAPE",
    "RESHAPES",
    "RESHAPE_LIKE",
    "SHAPE_ONLY",
    "SPACE_TO_BATCH_ND",
    "SPARSE_CONV2D",
    "SPARSE_DENSE",
    "SQUEEZE",
    "STOP_FUSION",
    "SUBTRACT",
    "TRANSPOSE",
    "TRANSPOSED_CONVOLUTIONS",
    "ZEROS",
    "ZEROS_LIKE",
    "calls",
]
