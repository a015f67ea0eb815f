"""Layout transforms that undo each other go away, with what takes padding off between them.

layout_transform(layout_transform(x, i -> (i // 4, i % 4)), (a, b) -> a * 4 + b)    ->    x
"""

from __future__ import annotations

from typing import Any

from tvm.arith import Analyzer
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, Function, Tuple
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.struct_info_relations import are_same_dimensions
from tvm.tir import Range, Var

from .rewrite_calls import Rule, definition, rewriting_pass

_TRANSFORM, _CALL_TIR = Op.get("relax.layout_transform"), Op.get("relax.call_tir")


def _rule_of(func: Function, mod: IRModule) -> Rule:
    def without_padding(call: RelayExpr, builder: BlockBuilder) -> RelayExpr | None:
        """What a call takes padding off."""
        if not (isinstance(call, Call) and call.op is _CALL_TIR):
            return None
        callee, inputs = call.args[:2]
        prim = mod.functions.get(callee) if isinstance(callee, GlobalVar) else None
        is_removal = prim is not None and prim.attrs.get("operator_name") == "remove_pad"
        if not is_removal or not isinstance(inputs, Tuple) or len(inputs) != 1:
            return None
        return definition(inputs.fields[0], builder)

    def rule(call: Call, builder: BlockBuilder) -> RelayExpr | None:
        if call.op is not _TRANSFORM:
            return None
        inner = definition(call.args[0], builder)
        padded = without_padding(inner, builder)
        if padded is not None and call.attrs.pad_value is None:
            inner = padded
        if not (isinstance(inner, Call) and inner.op is _TRANSFORM):
            return None
        source = inner.args[0]
        return source if _undoes(call, inner, source) else None

    return rule


def _undoes(outer: Call, inner: Call, source: RelayExpr) -> bool:
    """Whether the second transform brings each element back to its place."""
    before, after = source.struct_info, outer.struct_info
    if not isinstance(before, TensorStructInfo) or not isinstance(after, TensorStructInfo):
        return False
    if before.dimensions is None or not are_same_dimensions(before.dimensions, after.dimensions):
        return False
    places = [Var(f"i{n}", dim.dtype) for n, dim in enumerate(before.dimensions)]
    analyzer = Analyzer()
    for place, dim in zip(places, before.dimensions, strict=True):
        analyzer.bind(place, Range(0, dim))
    moved: Any = inner.attrs.index_map.map_indices(places)
    back: Any = outer.attrs.index_map.map_indices(list(moved))
    return len(back) == len(places) and all(
        [analyzer.can_prove_equal(a, b) for a, b in zip(back, places, strict=True)]
    )


def OptimizeLayoutTransform() -> Pass:
    """Remove pairs of layout transforms that undo each other."""
    return rewriting_pass("OptimizeLayoutTransform", _rule_of)
