"""What Android's NNAPI takes, by its feature level. This release generates no code for it."""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix, register_patterns
from tvm.relax.dpl import is_op, wildcard
from tvm.relax.transform import FuseOpsByPattern, MergeCompositeFunctions

Row = tuple[Any, ...]

# by the patterns' names: the feature level from which on they are there
_LEVELS = {
    "nnapi.add": 1, "nnapi.mul": 1, "nnapi.div": 2, "nnapi.sub": 2, "nnapi.floor": 1,
    "nnapi.relu": 1, "nnapi.logistic": 1, "nnapi.softmax": 1, "nnapi.tanh": 1, "nnapi.abs": 3,
    "nnapi.exp": 3, "nnapi.log": 3, "nnapi.neg": 3, "nnapi.cast": 3, "nnapi.sqrt": 3,
    "nnapi.rsqrt": 3, "nnapi.batch_matmul": 6, "nnapi.transpose": 2, "nnapi.mean": 2,
    "nnapi.conv2d": 1, "nnapi.fully_connected": 1, "nnapi.max_pool_2d": 1,
}  # fmt: skip


def elementwise_binary_patterns() -> list[Row]:
    """Sums, products, quotients and differences."""
    ops = {"add": "add", "mul": "multiply", "div": "divide", "sub": "subtract"}
    return [
        (f"nnapi.{name}", is_op(f"relax.{op}")(wildcard(), wildcard())) for name, op in ops.items()
    ]


def unary_patterns() -> list[Row]:
    """Operators of one tensor."""
    ops = {
        "floor": "floor", "relu": "nn.relu", "logistic": "sigmoid", "softmax": "nn.softmax",
        "tanh": "tanh", "abs": "abs", "exp": "exp", "log": "log", "neg": "negative",
        "sqrt": "sqrt", "rsqrt": "rsqrt",
    }  # fmt: skip
    return [(f"nnapi.{name}", is_op(f"relax.{op}")(wildcard())) for name, op in ops.items()]


def matmul_pattern() -> Row:
    """A product."""
    return ("nnapi.batch_matmul", is_op("relax.matmul")(wildcard(), wildcard()))


def permute_dims_pattern() -> Row:
    """Axes in another order."""
    return ("nnapi.transpose", is_op("relax.permute_dims")(wildcard()))


def astype_pattern() -> Row:
    """Elements of another data type."""
    return ("nnapi.cast", is_op("relax.astype")(wildcard()))


def mean_pattern() -> Row:
    """A mean over axes."""
    return ("nnapi.mean", is_op("relax.mean")(wildcard()))


def conv2d_pattern() -> Row:
    """A convolution with its bias."""
    conv = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    return ("nnapi.conv2d", is_op("relax.add")(conv, wildcard()))


def max_pool2d_pattern() -> Row:
    """The greatest value of windows."""
    return ("nnapi.max_pool_2d", is_op("relax.nn.max_pool2d")(wildcard()))


register_patterns(
    [
        *elementwise_binary_patterns(), *unary_patterns(), matmul_pattern(), permute_dims_pattern(),
        astype_pattern(), mean_pattern(), conv2d_pattern(), max_pool2d_pattern(),
    ]
)  # fmt: skip


def min_feature_level(pattern_name: str) -> int:
    """The feature level from which on NNAPI has what a pattern stands for."""
    if pattern_name not in _LEVELS:
        raise TVMError(f"NNAPI has no pattern {pattern_name!r}; there are {', '.join(_LEVELS)}")
    return _LEVELS[pattern_name]


def partition_for_nnapi(mod: IRModule, feature_level: int | None = None) -> IRModule:
    """The module with what NNAPI takes in functions for it.

    Parameters
    ----------
    mod : IRModule
    feature_level : int, optional
        That of the device; by default all patterns are used.
    """
    patterns = [
        p
        for p in get_patterns_with_prefix("nnapi")
        if feature_level is None or min_feature_level(p.name) <= feature_level
    ]
    mod = FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=False)(mod)
    return MergeCompositeFunctions()(mod)
