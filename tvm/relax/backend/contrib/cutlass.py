"""What CUTLASS takes: convolutions, products, attention and norms. This release generates no code for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.module import IRModule
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix, register_patterns
from tvm.relax.backend.patterns import (
    make_attention_pattern,
    make_attention_rewrite_pattern,
    make_conv2d_pattern,
    make_layer_norm_pattern,
    make_matmul_pattern,
    make_residual_block_pattern,
    make_stacked_attention_pattern,
)
from tvm.relax.backend.utils import dtype_of, has_leaking_intermediate_variables, shape_of
from tvm.relax.dpl import rewrite_call
from tvm.relax.expr import Function
from tvm.relax.struct_info_relations import prove_equal
from tvm.relax.transform import FuseOpsByPattern, PatternCheckContext
from tvm.tir.expr import IntImm

_KINDS = ({"float16"}, {"float32"})
_ACTIVATIONS = {
    "": None, "_relu": "relax.nn.relu", "_gelu": "relax.nn.gelu", "_silu": "relax.nn.silu",
}  # fmt: skip


def is_shape_valid_for_cutlass_matmul(lhs_shape: Sequence[Any], rhs_shape: Sequence[Any]) -> bool:
    """Whether products of such shapes are one batch at constant strides.

    The reduced dimension must be a constant; one side may be one matrix for all of the other's.
    """
    a, b = [[d.value if isinstance(d, IntImm) else d for d in s] for s in (lhs_shape, rhs_shape)]
    if not isinstance(a[-1], int) or not isinstance(b[-2], int):
        return False
    batches = []
    for dims in (a[:-2], b[:-2]):
        first = next((i for i, d in enumerate(dims) if not _is(d, 1)), len(dims))
        batches.append(dims[first:])
    x, y = batches
    if not x or not y:
        return True
    return len(x) == len(y) and all([_is(p, q) for p, q in zip(x, y, strict=True)])


def _is(a: Any, b: Any) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return prove_equal(a, b)


def _fits_residual(context: PatternCheckContext) -> bool:
    """Whether what is joined has the result's shape, or is one for the batch or the channels."""
    parts = context.annotated_expr
    if "residual" not in parts:
        return True
    residual, result = shape_of(parts["residual"]), shape_of(context.matched_expr)
    if residual is None or result is None or len(residual) != len(result):
        return False
    return all([_is(r, n) or _is(r, 1) for r, n in zip(residual, result, strict=True)])


def _is_conv2d(context: PatternCheckContext) -> bool:
    if has_leaking_intermediate_variables(context):
        return False
    call: Any = context.annotated_expr["root"]
    attrs, weight = call.attrs, shape_of(call.args[1])
    if (str(attrs.data_layout), str(attrs.kernel_layout)) != ("NHWC", "OHWI"):
        return False
    if {dtype_of(arg) for arg in call.args} not in _KINDS or weight is None:
        return False
    is_depthwise = int(attrs.groups) > 1
    return not is_depthwise and _fits_residual(context)


def _is_matmul(context: PatternCheckContext) -> bool:
    if has_leaking_intermediate_variables(context):
        return False
    parts = context.annotated_expr
    call: Any = parts["root"]
    a, b = shape_of(call.args[0]), shape_of(call.args[1])
    if {dtype_of(parts["lhs"]), dtype_of(parts["rhs"])} not in _KINDS or a is None or b is None:
        return False
    if "bias" in parts:
        bias = shape_of(parts["bias"])
        if bias is None or not all([_is(d, 1) for d in bias[:-1]]):
            return False
    is_matrix = len(a) >= 2 and len(b) >= 2
    return is_matrix and is_shape_valid_for_cutlass_matmul(a, b) and _fits_residual(context)


def _is_attention(context: PatternCheckContext) -> bool:
    call: Any = context.matched_expr
    return not has_leaking_intermediate_variables(context) and dtype_of(call) in (
        "float16",
        "float32",
    )


def _is_layer_norm(context: PatternCheckContext) -> bool:
    call: Any = context.matched_expr
    shape, axes = shape_of(call), [int(a) for a in call.attrs.axes]
    is_last = shape is not None and axes in ([-1], [len(shape) - 1])
    return is_last and dtype_of(call) == "float16"


def _conv2d_patterns() -> list[tuple[Any, ...]]:
    ends = [(False, ""), (True, ""), *[(True, name) for name in _ACTIVATIONS if name]]
    rows = []
    for with_bias, name in ends:
        label = f"cutlass.conv2d{'_bias' if with_bias else ''}{name}"
        rows.append((label, *make_conv2d_pattern(with_bias, _ACTIVATIONS[name]), _is_conv2d))
    for name, activation in _ACTIVATIONS.items():
        block = make_conv2d_pattern(with_bias=True, activation=activation)
        for binary in ("add", "multiply"):
            for last in ("", "_relu"):
                pattern = make_residual_block_pattern(
                    block, f"relax.{binary}", "relax.nn.relu" if last else None
                )
                label = f"cutlass.conv2d_bias{name}_residual_{binary}{last}"
                rows.append((label, *pattern, _is_conv2d))
    return rows


def _matmul_patterns() -> list[tuple[Any, ...]]:
    rows = []
    for transposed in (False, True):
        label = f"cutlass.matmul{'_transposed' if transposed else ''}"
        rows.append((label, *make_matmul_pattern(False, None, transposed), _is_matmul))
        for name, activation in _ACTIVATIONS.items():
            pattern = make_matmul_pattern(True, activation, transposed)
            rows.append((f"{label}_bias{name}", *pattern, _is_matmul))
            for binary in ("add", "multiply"):
                residual = make_residual_block_pattern(pattern, f"relax.{binary}")
                rows.append((f"{label}_bias{name}_residual_{binary}", *residual, _is_matmul))
    return rows


def _attention_patterns() -> list[tuple[Any, ...]]:
    rows = [
        ("cutlass.attention", *make_attention_pattern(), _is_attention),
        ("cutlass.attention_bias", *make_attention_pattern(with_bias=True), _is_attention),
        ("cutlass.attention_var_len", *make_attention_pattern(var_len=True), _is_attention),
    ]
    for start in ("split", "strided_slice"):
        for with_bias in (False, True):
            label = f"cutlass.stacked_attention{'_bias' if with_bias else ''}_{start}"
            rows.append((label, *make_stacked_attention_pattern(start, with_bias), _is_attention))
    return rows


register_patterns(
    [
        *_conv2d_patterns(),
        *_matmul_patterns(),
        *_attention_patterns(),
        ("cutlass.layer_norm", *make_layer_norm_pattern(), _is_layer_norm),
    ]
)


def partition_for_cutlass(
    mod: IRModule, annotate_codegen: bool = True, use_flash_mqa: bool = True
) -> IRModule:
    """The module with what CUTLASS takes in functions for it; attention that is written out is one call.

    Parameters
    ----------
    mod : IRModule
    annotate_codegen : bool
        Whether the functions have the attribute ``Codegen``.
    use_flash_mqa : bool
        Whether attention whose keys and values are repeated for groups of heads is rewritten too.
    """
    rules = [
        make_attention_rewrite_pattern(qkv, out, with_bias, with_cast)
        for qkv, out in (("BSNH", "BSNH"), ("BSH", "BSH"))
        for with_bias in (True, False)
        for with_cast in (False, True)
    ]
    if use_flash_mqa:
        rules.append(make_attention_rewrite_pattern("BSNH", "BSNH", False, True, True))
    functions = dict(mod.functions)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and func.body is not None:
            for pattern, rewriter in rules:
                func = rewrite_call(pattern, rewriter, func)
            functions[gvar] = func
    patterns = get_patterns_with_prefix("cutlass")
    return FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=annotate_codegen)(
        mod.with_functions(functions)
    )
