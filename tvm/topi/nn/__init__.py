"""Neural-network operators."""

from ..argument_checks import guarded
from ..modules import module_attribute
from ..rewrites import (
    add_alter_layout,
    batch_matmul_legalize,
    bias_add_legalize,
    bitserial_conv2d_legalize,
    conv2d_alter_layout,
    conv2d_legalize,
    conv2d_transpose_alter_layout,
    conv2d_transpose_legalize,
    conv3d_alter_layout,
    conv3d_transpose_legalize,
    dense_alter_layout,
    dense_legalize,
    matmul_legalize,
    qnn_conv2d_alter_layout,
    qnn_dense_alter_layout,
    qnn_requantize_alter_layout,
    sparse_dense_alter_layout,
)
from ..shaping import flatten
from .attention.compute import attention
from .batch_matmul.compute import batch_matmul
from .bitserial import (
    binarize_pack,
    binary_dense,
    binary_op_multiplier,
    bitpack,
    bitserial_conv2d_nchw,
    bitserial_conv2d_nhwc,
    bitserial_dense,
)
from .conv1d import conv1d_ncw, conv1d_nwc, group_conv1d_ncw, group_conv1d_nwc
from .conv2d.compute import (
    conv,
    conv1d,
    conv2d,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_NCHWc,
    conv2d_nhwc,
    conv3d_ncdhw,
    conv3d_ndhwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
    unpack_NCHWc_to_nchw,
)
from .conv2d.dot import conv2d_NCHWc_int8
from .conv2d.gemm import conv2d_gemm_weight_transform, conv2d_gemm_without_weight_transform
from .conv2d.gradient import conv2d_backward_weight
from .conv2d.winograd import (
    conv2d_winograd_nchw,
    conv2d_winograd_nchw_without_weight_transform,
    conv2d_winograd_nhwc,
    conv2d_winograd_nhwc_without_weight_transform,
    conv2d_winograd_weight_transform,
    winograd_weights,
)
from .conv2d_transpose.compute import (
    conv1d_transpose_ncw,
    conv2d_transpose_nchw,
    conv3d_transpose_ncdhw,
    conv_transpose,
    group_conv1d_transpose_ncw,
    group_conv2d_transpose_nchw,
    group_conv3d_transpose_ncdhw,
)
from .conv2d_transpose.dilated_input import (
    conv2d_transpose_nchw_preprocess,
    conv3d_transpose_ncdhw_preprocess,
    declaration_conv2d_transpose_impl,
    declaration_conv3d_transpose_impl,
)
from .conv3d_winograd import (
    conv3d_winograd_ncdhw_without_weight_transform,
    conv3d_winograd_weight_transform,
)
from .correlation import correlation_extents, correlation_nchw
from .deformable_conv2d import deformable_conv2d_nchw, deformable_conv2d_nhwc
from .dense.compute import dense, dense_pack, matmul
from .dense.dot import dense_dot
from .depthwise_conv2d.compute import (
    depthwise_conv2d_nchw,
    depthwise_conv2d_NCHWc,
    depthwise_conv2d_nhwc,
)
from .depthwise_conv2d.gradient import (
    depthwise_conv2d_backward_input_nhwc,
    depthwise_conv2d_backward_weight_nhwc,
)
from .dilate import dilate
from .elemwise import leaky_relu, prelu, relu, selu, softplus
from .fifo_buffer import fifo_buffer
from .local_response_norm import lrn
from .loss import nll_loss
from .lstm import lstm
from .mapping import scale_shift_nchw, scale_shift_nchwc, scale_shift_nhwc
from .normalization.compute import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from .pad import mirror_pad, pad
from .pooling.compute import (
    adaptive_pool,
    adaptive_pool1d,
    adaptive_pool3d,
    global_pool,
    pool1d,
    pool2d,
    pool3d,
)
from .pooling.gradient import pool_grad
from .qnn import (
    SQNN_CODE_TO_DTYPE,
    SQNN_DTYPE_TO_CODE,
    simulated_dequantize,
    simulated_quantize,
)
from .rearrange import batch_to_space_nd, depth_to_space, space_to_batch_nd, space_to_depth
from .softmax.compute import fast_softmax, log_softmax, softmax, softmax_common
from .upsampling import upsampling, upsampling3d
from .utils import (
    get_pad_tuple,
    get_pad_tuple1d,
    get_pad_tuple3d,
    get_pad_tuple_generic,
    infer_pad,
    infer_pad3d,
    infer_stride,
)
from .winograd_util import winograd_transform_matrices
from .workload import conv2d_infer_layout, depthwise_conv2d_infer_layout

__all__ = [
    "conv2d_infer_layout",
    "depthwise_conv2d_infer_layout",
    "conv2d_transpose_nchw_preprocess",
    "conv3d_transpose_ncdhw_preprocess",
    "declaration_conv2d_transpose_impl",
    "declaration_conv3d_transpose_impl",
    "winograd_transform_matrices",
    "batch_matmul_legalize",
    "bias_add_legalize",
    "bitserial_conv2d_legalize",
    "conv2d_legalize",
    "conv2d_transpose_legalize",
    "conv3d_transpose_legalize",
    "dense_legalize",
    "matmul_legalize",
    "add_alter_layout",
    "conv2d_alter_layout",
    "conv2d_transpose_alter_layout",
    "conv3d_alter_layout",
    "dense_alter_layout",
    "qnn_conv2d_alter_layout",
    "qnn_dense_alter_layout",
    "qnn_requantize_alter_layout",
    "sparse_dense_alter_layout",
    "conv3d_winograd_ncdhw_without_weight_transform",
    "conv3d_winograd_weight_transform",
    "conv2d_gemm_without_weight_transform",
    "conv2d_gemm_weight_transform",
    "attention",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "lstm",
    "conv1d_ncw",
    "conv1d_nwc",
    "group_conv1d_ncw",
    "group_conv1d_nwc",
    "unpack_NCHWc_to_nchw",
    "nll_loss",
    "scale_shift_nchw",
    "scale_shift_nchwc",
    "scale_shift_nhwc",
    "group_norm",
    "instance_norm",
    "rms_norm",
    "batch_to_space_nd",
    "depth_to_space",
    "space_to_batch_nd",
    "space_to_depth",
    "softmax_common",
    "upsampling",
    "upsampling3d",
    "get_pad_tuple",
    "get_pad_tuple1d",
    "get_pad_tuple3d",
    "get_pad_tuple_generic",
    "infer_pad",
    "infer_pad3d",
    "infer_stride",
    "binarize_pack",
    "binary_dense",
    "binary_op_multiplier",
    "bitpack",
    "bitserial_conv2d_nchw",
    "bitserial_conv2d_nhwc",
    "bitserial_dense",
    "correlation_extents",
    "correlation_nchw",
    "deformable_conv2d_nchw",
    "deformable_conv2d_nhwc",
    "fifo_buffer",
    "winograd_weights",
    "lrn",
    "dilate",
    "conv3d_ndhwc",
    "conv3d_ncdhw",
    "group_conv3d_transpose_ncdhw",
    "group_conv1d_transpose_ncw",
    "conv_transpose",
    "conv3d_transpose_ncdhw",
    "conv1d_transpose_ncw",
    "adaptive_pool",
    "adaptive_pool1d",
    "adaptive_pool3d",
    "batch_matmul",
    "batch_norm",
    "conv",
    "conv1d",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_NCHWc_int8",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_nchw",
    "conv2d_winograd_nchw",
    "conv2d_winograd_nchw_without_weight_transform",
    "conv2d_winograd_nhwc",
    "conv2d_winograd_nhwc_without_weight_transform",
    "conv2d_winograd_weight_transform",
    "dense",
    "dense_dot",
    "dense_pack",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "fast_softmax",
    "flatten",
    "global_pool",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "matmul",
    "mirror_pad",
    "pad",
    "pool1d",
    "pool2d",
    "pool3d",
    "pool_grad",
    "conv2d_backward_weight",
    "prelu",
    "relu",
    "SQNN_CODE_TO_DTYPE",
    "SQNN_DTYPE_TO_CODE",
    "simulated_dequantize",
    "simulated_quantize",
    "softmax",
]
from .sparse import (
    sparse_add,
    sparse_conv2d,
    sparse_dense,
    sparse_dense_sp_lhs,
    sparse_dense_sp_rhs,
    sparse_transpose,
)

globals().update(guarded(__name__, globals()))
__getattr__ = module_attribute(__name__)
