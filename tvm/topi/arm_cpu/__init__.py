"""Computes and schedules of Arm processors under their classic names.

Schedules for processors with vector registers read the width of these from the target; those of
Arm are the ones of x86.
"""

from tvm.topi import nn, x86
from tvm.topi.modules import module_attribute

from .conv2d_int8 import is_int8_hw_support
from .loop_schedules import schedule_conv2d_NHWC_hybrid_TIR as schedule_conv2d_NHWC_hybrid_TIR

bitserial_conv2d_nchw = x86.bitserial_conv2d_nchw
bitserial_conv2d_nhwc = x86.bitserial_conv2d_nhwc
bitserial_dense = x86.bitserial_dense
conv1d_ncw, conv1d_nwc = nn.conv1d_ncw, nn.conv1d_nwc
conv2d_NCHWc = x86.conv2d_NCHWc
conv2d_NCHWc_int8 = x86.conv2d_NCHWc_int8
conv2d_direct_simd = conv2d_nhwc_spatial_pack = nn.conv2d_nhwc
conv2d_nchw_int8 = conv2d_nchw_spatial_pack = x86.conv2d_nchw
conv2d_nchw_winograd = nn.conv2d_winograd_nchw
conv2d_transpose_nchw = x86.conv2d_transpose_nchw
compute_conv2d_NHWC_hybrid = compute_conv2d_NHWC_hybrid_SVE = nn.conv2d_nhwc
compute_conv2d_NHWC_hybrid_SME = nn.conv2d_nhwc
compute_conv2d_NHWC_quantized_interleaved = nn.conv2d_nhwc
compute_conv2d_NHWC_quantized_native = nn.conv2d_nhwc
depthwise_conv2d_NCHWc = x86.depthwise_conv2d_NCHWc
depthwise_conv2d_nchw = depthwise_conv2d_nchw_spatial_pack = x86.depthwise_conv2d_nchw
depthwise_conv2d_nhwc = compute_depthwise_conv2d_nhwc = nn.depthwise_conv2d_nhwc
group_conv2d_nchw = x86.group_conv2d_nchw

schedule_batch_matmul = x86.schedule_batch_matmul
schedule_bitserial_conv2d_nchw = x86.schedule_bitserial_conv2d_nchw
schedule_bitserial_conv2d_nhwc = x86.schedule_bitserial_conv2d_nhwc
schedule_bitserial_dense = x86.schedule_bitserial_dense
schedule_concatenate = x86.schedule_concatenate
schedule_conv1d_ncw, schedule_conv1d_nwc = x86.schedule_conv1d_ncw, x86.schedule_conv1d_nwc
schedule_conv2d_NCHWc = x86.schedule_conv2d_NCHWc
schedule_conv2d_NCHWc_int8 = x86.schedule_conv2d_NCHWc_int8
schedule_conv2d_NHWC_hybrid = schedule_conv2d_NHWC_hybrid_SVE = x86.schedule_conv2d_nhwc
schedule_conv2d_NHWC_quantized_interleaved = x86.schedule_conv2d_nhwc
schedule_conv2d_NHWC_quantized_native = x86.schedule_conv2d_nhwc
schedule_conv2d_direct_simd = schedule_conv2d_nhwc_spatial_pack = x86.schedule_conv2d_nhwc
schedule_conv2d_nchw_int8 = schedule_conv2d_nchw_spatial_pack = x86.schedule_conv2d_nchw
schedule_conv2d_nchw_winograd = x86.schedule_steps
schedule_conv2d_transpose_nchw = x86.schedule_conv2d_transpose_nchw
schedule_depthwise_conv2d_NCHWc = x86.schedule_depthwise_conv2d_NCHWc
schedule_depthwise_conv2d_nchw = x86.schedule_depthwise_conv2d_nchw
schedule_depthwise_conv2d_nchw_spatial_pack = x86.schedule_depthwise_conv2d_nchw
schedule_depthwise_conv2d_nhwc = x86.schedule_conv2d_nhwc
schedule_group_conv2d_nchw = x86.schedule_group_conv2d_nchw
schedule_injective, schedule_reduce = x86.schedule_injective, x86.schedule_reduce
schedule_injective_from_existing = x86.schedule_injective_from_existing
schedule_pool, schedule_softmax = x86.schedule_pool, x86.schedule_softmax

__getattr__ = module_attribute(__name__)
