"""What cuDNN takes: convolutions and stacked attention. This release generates no code for it."""

from __future__ import annotations

from typing import Any

from tvm.ir.module import IRModule
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix, register_patterns
from tvm.relax.backend.patterns import make_conv2d_pattern, make_stacked_attention_pattern
from tvm.relax.backend.utils import dtype_of, has_leaking_intermediate_variables, shape_of
from tvm.relax.transform import FuseOpsByPattern, PatternCheckContext

_LAYOUTS = {("NHWC", "OHWI"), ("NCHW", "OIHW")}


def _is_conv2d(context: PatternCheckContext) -> bool:
    if has_leaking_intermediate_variables(context):
        return False
    call: Any = context.annotated_expr["root"]
    kinds = {dtype_of(arg) for arg in call.args}
    layouts = (str(call.attrs.data_layout), str(call.attrs.kernel_layout))
    is_known = layouts in _LAYOUTS and kinds in ({"float16"}, {"float32"})
    return is_known and int(call.attrs.groups) == 1


def _is_stacked_attention(layout: str) -> Any:
    def check(context: PatternCheckContext) -> bool:
        if has_leaking_intermediate_variables(context):
            return False
        stacked = context.annotated_expr["stacked_qkv"]
        shape = shape_of(stacked)
        rank = 3 if layout == "BS3NH" else 4
        return dtype_of(stacked) == "float16" and shape is not None and len(shape) == rank

    return check


register_patterns(
    [
        (name, *make_conv2d_pattern(with_bias, activation), _is_conv2d)
        for name, with_bias, activation in (
            ("cudnn.conv2d.nhwc_ohwi", False, None),
            ("cudnn.conv2d.nhwc_ohwi_bias", True, None),
            ("cudnn.conv2d.nhwc_ohwi_bias_relu", True, "relax.nn.relu"),
        )
    ]
)
register_patterns(
    [
        (
            f"cudnn.attention.{layout}",
            *make_stacked_attention_pattern("split", layout=layout),
            _is_stacked_attention(layout),
        )
        for layout in ("BS3NH", "SBN3H")
    ]
)


def partition_for_cudnn(mod: IRModule) -> IRModule:
    """The module with what cuDNN takes in functions for it."""
    patterns = get_patterns_with_prefix("cudnn")
    return FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True)(mod)
