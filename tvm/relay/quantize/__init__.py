"""Quantisation of trained networks: values in 8 bits, scales from a constant or from examples."""

from .annotate import (
    QAnnotateExpr,
    add_rewrite,
    annotate,
    batch_matmul_rewrite,
    cast_hint_rewrite,
    concatenate_rewrite,
    conv2d_nchwc_rewrite,
    conv2d_rewrite,
    dense_rewrite,
    global_avg_pool2d_rewrite,
    identity_rewrite,
    multiply_rewrite,
    pool1d_rewrite,
    pool2d_rewrite,
    register_annotate_function,
)
from .calibrate import calibrate, collect_stats
from .config import QAnnotateKind, QConfig, current_qconfig, kind2str, qconfig
from .context import QuantizeContext, quantize_context
from .partition import (
    QPartitionExpr,
    add_partition_function,
    add_partition_generic,
    conv2d_partition_function,
    global_avg_pool2d_partition_function,
    identity_partition_function,
    mul_partition_generic,
    multiply_partition_function,
    partition,
    partition_expr_check,
    register_partition_function,
)
from .partition_conversions import partition_conversions
from .quantize import prerequisite_optimize, quantize
from .realize import realize
from .simulate import attach_simulated_quantize, simulated_quantize_compute
