"""The quantised operators that passes build or look for."""

from tvm.relay.qnn.op.affine import DEQUANTIZE, QUANTIZE
from tvm.relay.qnn.op.convolutions import CONV2D_QUANTIZED, CONV2D_TRANSPOSE_QUANTIZED
from tvm.relay.qnn.op.elementwise import (
    ADD_QUANTIZED,
    CONCATENATE_QUANTIZED,
    MUL_QUANTIZED,
    SUBTRACT_QUANTIZED,
)
from tvm.relay.qnn.op.pooling import AVG_POOL2D_QUANTIZED
from tvm.relay.qnn.op.products import BATCH_MATMUL_QUANTIZED, DENSE_QUANTIZED
from tvm.relay.qnn.op.requantize import REQUANTIZE

__all__ = [
    "ADD_QUANTIZED",
    "AVG_POOL2D_QUANTIZED",
    "BATCH_MATMUL_QUANTIZED",
    "CONCATENATE_QUANTIZED",
    "CONV2D_QUANTIZED",
    "CONV2D_TRANSPOSE_QUANTIZED",
    "DENSE_QUANTIZED",
    "DEQUANTIZE",
    "MUL_QUANTIZED",
    "QUANTIZE",
    "REQUANTIZE",
    "SUBTRACT_QUANTIZED",
]
