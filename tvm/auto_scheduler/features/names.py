"""The names of the features of a store, in their order."""

from __future__ import annotations

OPERATIONS = (
    "float_mad", "float_addsub", "float_mul", "float_divmod", "float_cmp", "float_math_func",
    "float_other_func", "int_mad", "int_addsub", "int_mul", "int_divmod", "int_cmp",
    "int_math_func", "int_other_func", "bool_op", "select_op",
)  # fmt: skip
POSITIONS = (
    "kPosNone", "kPosInnerSpatial", "kPosMiddleSpatial", "kPosOuterSpatial", "kPosInnerReduce",
    "kPosMiddleReduce", "kPosOuterReduce", "kPosMixed",
)  # fmt: skip
ANNOTATIONS = ("vec", "unroll", "parallel")
GPU = (
    "is_gpu", "blockIdx_x_len", "blockIdx_y_len", "blockIdx_z_len", "threadIdx_x_len",
    "threadIdx_y_len", "threadIdx_z_len", "vthread_len",
)  # fmt: skip
BUFFER = (
    "acc_type.kRead", "acc_type.kWrite", "acc_type.kReadWrite", "bytes", "unique_bytes", "lines",
    "unique_lines", "reuse_type.kLoopMultipleRead", "reuse_type.kSerialMultipleReadWrite",
    "reuse_type.kNoReuse", "reuse_dis_iter", "reuse_dis_bytes", "reuse_ct", "bytes_d_reuse_ct",
    "unique_bytes_d_reuse_ct", "lines_d_reuse_ct", "unique_lines_d_reuse_ct", "stride",
)  # fmt: skip
CURVE_POINTS = 10
ALLOCATION = ("alloc_size", "alloc_outer_prod", "alloc_inner_prod", "alloc_prod")
NEST = ("outer_prod", "num_loops", "auto_unroll_max_step")
DEFAULT_MAX_N_BUFS = 5


def feature_names(max_n_bufs: int = DEFAULT_MAX_N_BUFS) -> list[str]:
    """The names for so many buffers."""
    names = list(OPERATIONS)
    for annotation in ANNOTATIONS:
        names += [f"{annotation}_{what}" for what in ("num", "prod", "len")]
        names += [f"{annotation}_type.{position}" for position in POSITIONS]
    names += GPU
    for place in range(max_n_bufs):
        names += [f"B{place}.{name}" for name in BUFFER]
    names += [f"arith_intensity_curve_{place}" for place in range(CURVE_POINTS)]
    return [*names, *ALLOCATION, *NEST]


def is_logarithmic(max_n_bufs: int = DEFAULT_MAX_N_BUFS) -> list[bool]:
    """Which features are given by their logarithm."""
    found = []
    for name in feature_names(max_n_bufs):
        is_kind = "_type." in name or name == "is_gpu" or name.startswith("arith_intensity")
        found.append(not is_kind)
    return found
