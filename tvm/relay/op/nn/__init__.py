"""Neural-network operators."""

from tvm.support.later import names_from_above

from ..shaping import batch_flatten
from . import arm_channels, attention, tensor_cores
from .activation import (
    bias_add,
    dropout,
    dropout_raw,
    fast_softmax,
    leaky_relu,
    log_softmax,
    mirror_pad,
    pad,
    prelu,
    relu,
    softmax,
)
from .bitserial import bitpack, bitserial_conv2d, bitserial_dense
from .conv import (
    contrib_conv2d_nchwc,
    contrib_depthwise_conv2d_nchwc,
    conv2d,
)
from .conv3d_winograd import (
    contrib_conv3d_winograd_weight_transform,
    contrib_conv3d_winograd_without_weight_transform,
)
from .conv_backward_weight import conv2d_backward_weight
from .conv_gemm import (
    contrib_conv2d_gemm_weight_transform,
    contrib_conv2d_gemm_without_weight_transform,
)
from .conv_ranks import conv1d, conv3d
from .conv_transpose import conv1d_transpose, conv2d_transpose, conv3d_transpose
from .dense import batch_matmul, contrib_dense_pack, dense, matmul
from .local import dilate, lrn
from .loss import cross_entropy, cross_entropy_with_logits, nll_loss
from .normalization import batch_norm, group_norm, instance_norm, l2_normalize, layer_norm
from .pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    global_avg_pool1d,
    global_avg_pool2d,
    global_avg_pool3d,
    global_max_pool1d,
    global_max_pool2d,
    global_max_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from .pooling_gradient import avg_pool2d_grad, max_pool2d_grad
from .rearrange import batch_to_space_nd, depth_to_space, space_to_batch_nd, space_to_depth
from .sparse import sparse_add, sparse_conv2d, sparse_dense, sparse_transpose
from .special import correlation, deformable_conv2d, fifo_buffer
from .upsampling import upsampling, upsampling3d
from .winograd import (
    contrib_conv2d_winograd_weight_transform,
    contrib_conv2d_winograd_without_weight_transform,
)

__getattr__ = names_from_above(__name__)
