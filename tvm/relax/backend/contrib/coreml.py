"""What Core ML takes: operators of known shapes. This release generates no code for it."""

from __future__ import annotations

from typing import Any

from tvm.ir.module import IRModule
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix, register_patterns
from tvm.relax.backend.utils import shape_of
from tvm.relax.dpl import is_const, is_op, wildcard
from tvm.relax.transform import (
    FoldConstant,
    FuseOpsByPattern,
    MergeCompositeFunctions,
    PatternCheckContext,
)

Row = tuple[Any, ...]


def is_static(context: PatternCheckContext) -> bool:
    """Whether all shapes are known."""
    call: Any = context.matched_expr
    shapes = [shape_of(e) for e in (call, *call.args) if hasattr(e.struct_info_, "dtype")]
    return all([s is not None and all([isinstance(d, int) for d in s]) for s in shapes])


def default_binary_patterns(op_name: str) -> list[Row]:
    """A binary operator, of tensors or of a tensor and a constant."""
    op = is_op(f"relax.{op_name}")
    return [
        (f"coreml.{op_name}", op(wildcard(), wildcard()), {}, is_static),
        (f"coreml.{op_name}", op(wildcard(), wildcard()) | op(wildcard(), is_const()), {}, is_static),
    ]  # fmt: skip


def default_unary_patterns(op_name: str) -> list[Row]:
    """An operator of one tensor."""
    return [(f"coreml.{op_name}", is_op(f"relax.{op_name}")(wildcard()), {}, is_static)]


def conv2d_patterns() -> list[Row]:
    """A convolution by constant weights."""
    return [("coreml.nn.conv2d", is_op("relax.nn.conv2d")(wildcard(), is_const()), {}, is_static)]


def matmul_patterns() -> list[Row]:
    """A product."""
    return [("coreml.matmul", is_op("relax.matmul")(wildcard(), wildcard()), {}, is_static)]


def clip_patterns() -> list[Row]:
    """Values kept between bounds."""
    pattern = is_op("relax.clip")(wildcard(), wildcard(), wildcard())
    return [("coreml.clip", pattern, {}, is_static)]


register_patterns(
    [
        *default_binary_patterns("add"),
        *default_binary_patterns("multiply"),
        *default_unary_patterns("nn.softmax"),
        *default_unary_patterns("nn.relu"),
        *default_unary_patterns("expand_dims"),
        *default_unary_patterns("nn.avg_pool2d"),
        *conv2d_patterns(),
        *clip_patterns(),
        *matmul_patterns(),
    ]
)


def partition_for_coreml(mod: IRModule) -> IRModule:
    """The module with what Core ML takes in functions for it."""
    patterns = get_patterns_with_prefix("coreml")
    mod = FoldConstant()(mod)
    mod = FuseOpsByPattern(patterns, bind_constants=True, annotate_codegen=False)(mod)
    return MergeCompositeFunctions()(mod)
