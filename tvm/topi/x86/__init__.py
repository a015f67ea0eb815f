"""Schedules for x86 processors (and other CPUs with vector registers)."""

from ..argument_checks import guarded
from ..cpu.injective import (
    schedule_broadcast,
    schedule_concatenate,
    schedule_elemwise,
    schedule_injective,
    schedule_injective_from_existing,
)
from ..cpu.reduction import schedule_reduce
from ..cpu.steps import schedule_steps
from ..modules import module_attribute
from ..nn.attention.cpu import choose_attention, schedule_attention
from ..nn.depthwise_conv2d.cpu import schedule_depthwise_conv2d_NCHWc
from ..nn.pooling.cpu import schedule_adaptive_pool, schedule_pool
from ..nn.softmax.cpu import schedule_layer_norm, schedule_softmax
from ..nn.workload import fallback_schedule as _fallback_schedule
from . import conv2d, dense, tasks, tensor_intrin
from .batch_matmul import (
    batch_matmul_cblas,
    batch_matmul_dot,
    batch_matmul_mkl,
    find_batch_dot,
    schedule_batch_matmul,
    schedule_batch_matmul_cblas,
    schedule_batch_matmul_int8,
    schedule_batch_matmul_mkl,
)
from .conv2d import (
    conv2d_nchw_dnnl,
    conv2d_nhwc_dnnl,
    schedule_conv2d,
    schedule_conv2d_nchw,
    schedule_conv2d_nchw_dnnl,
    schedule_conv2d_NCHWc,
    schedule_conv2d_NCHWc_int8,
    schedule_conv2d_NCHWc_winograd,
    schedule_conv2d_nhwc,
    schedule_conv2d_nhwc_dnnl,
)
from .dense import (
    dense_cblas,
    dense_dnnl,
    dense_mkl,
    matmul_cblas,
    matmul_dnnl,
    matmul_mkl,
    matmul_pack,
    schedule_dense_cblas,
    schedule_dense_dnnl,
    schedule_dense_dot,
    schedule_dense_mkl,
    schedule_dense_nopack,
    schedule_dense_pack,
    schedule_matmul_cblas,
    schedule_matmul_dnnl,
    schedule_matmul_mkl,
    schedule_matmul_pack,
)
from .templates import *
from .templates import __all__ as _TEMPLATES
from .templates import batch_matmul

__all__ = [
    "batch_matmul",
    "schedule_batch_matmul_mkl",
    "schedule_batch_matmul_cblas",
    "schedule_batch_matmul_int8",
    "batch_matmul_mkl",
    "batch_matmul_cblas",
    "batch_matmul_dot",
    "find_batch_dot",
    "schedule_matmul_mkl",
    "schedule_matmul_dnnl",
    "schedule_matmul_cblas",
    "schedule_dense_mkl",
    "schedule_dense_dnnl",
    "schedule_dense_cblas",
    "matmul_mkl",
    "matmul_dnnl",
    "matmul_cblas",
    "dense_mkl",
    "dense_dnnl",
    "dense_cblas",
    "schedule_conv2d_nhwc_dnnl",
    "schedule_conv2d_nchw_dnnl",
    "conv2d_nhwc_dnnl",
    "conv2d_nchw_dnnl",
    "choose_attention",
    "conv2d",
    "dense",
    "matmul_pack",
    "schedule_adaptive_pool",
    "schedule_attention",
    "schedule_batch_matmul",
    "schedule_broadcast",
    "schedule_concatenate",
    "schedule_conv2d",
    "schedule_conv2d_NCHWc",
    "schedule_conv2d_NCHWc_int8",
    "schedule_conv2d_NCHWc_winograd",
    "schedule_conv2d_nchw",
    "schedule_conv2d_nhwc",
    "schedule_dense_dot",
    "schedule_dense_nopack",
    "schedule_dense_pack",
    "schedule_depthwise_conv2d_NCHWc",
    "schedule_elemwise",
    "schedule_injective",
    "schedule_injective_from_existing",
    "schedule_layer_norm",
    "schedule_matmul_pack",
    "schedule_pool",
    "schedule_steps",
    "schedule_reduce",
    "schedule_softmax",
    "tasks",
    "tensor_intrin",
    *_TEMPLATES,
]

globals().update(guarded(__name__, globals()))
__getattr__ = module_attribute(__name__)
