"""Matrices that are transposed alike and joined are joined first.

concat([permute_dims(a), permute_dims(b)], axis=1)    ->    permute_dims(concat([a, b], axis=0))
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, Tuple
from tvm.relax.op.joining import concat

from .rewrite_calls import definition, rewriting_pass

_CONCAT, _PERMUTE = Op.get("relax.concat"), Op.get("relax.permute_dims")


def permutation(call: Call) -> tuple[int, ...]:
    """The axes of a permute_dims, from the front."""
    ndim = call.struct_info.ndim
    axes = call.attrs.axes
    return tuple(range(ndim))[::-1] if axes is None else tuple([a % ndim for a in axes])


def _rule(call: Call, builder: BlockBuilder) -> RelayExpr | None:
    fields = definition(call.args[0], builder) if call.op is _CONCAT else None
    if not isinstance(fields, Tuple) or len(fields) < 2 or call.attrs.axis is None:
        return None
    parts = [definition(field, builder) for field in fields]
    permuted = [p for p in parts if isinstance(p, Call) and p.op is _PERMUTE]
    if len(permuted) < len(parts):
        return None
    first = permuted[0]
    if first.struct_info.ndim < 0 or len({permutation(p) for p in permuted}) > 1:
        return None
    axis = permutation(first)[call.attrs.axis % first.struct_info.ndim]
    joined = concat([part.args[0] for part in permuted], axis)
    return Call(_PERMUTE, [joined], first.attrs)


def ReorderPermuteDimsAfterConcat() -> Pass:
    """Join tensors before they are permuted, where all are permuted alike."""
    return rewriting_pass("ReorderPermuteDimsAfterConcat", lambda func, mod: _rule)
