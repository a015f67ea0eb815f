"""Read embeddings from the packed weight of a layer that multiplies by the same table.

%0 = take(%table, %i, axis=0);                      %p = layout_transform(%table, "NC", "NC16n");
%p = layout_transform(%table, "NC", "NC16n");  ->   %r = take(%p, %i // 16, axis=0);
nn.contrib_dense_pack(%x, %p)                       %0 = gather(%r, axis=-1, indices=%i % 16);
                                                    nn.contrib_dense_pack(%x, %p)

Language models tie the two. Once folded, the table would be stored as it is and packed.
"""

from __future__ import annotations

import re

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay import op as _op
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Constant, const
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import post_order, rewrite_calls

LEAST_BYTES = 1 << 20  # of a table that is worth it


class _Sharer:
    """Knows the packed weights of a function."""

    def __init__(self, func: Function) -> None:
        found = [(_table_of(node), node) for node in post_order(func) if _is_packed(node)]
        self.packed = [(table, node) for table, node in found if table is not None]

    def rewrite(self, old: Call, new: Call) -> RelayExpr:
        if not calls(new, ops.take) or not isinstance(new.args[0], Constant):
            return new
        picked = infer_type_of(new.args[1])
        rows_alone = new.attrs.axis in (0, -2) and not new.attrs.batch_dims
        if not rows_alone or not isinstance(picked, TensorType) or picked.is_dynamic:
            return new
        for table, packed in self.packed:
            if _are_equal(new.args[0], table):
                return _taken(new, packed, picked)
        return new


def _is_packed(node: RelayExpr) -> bool:
    """Whether a node puts rows of a matrix in blocks."""
    return calls(node, ops.layout_transform) and (
        node.attrs["src_layout"] == "NC"
        and re.fullmatch(r"NC\d+n", str(node.attrs["dst_layout"])) is not None
    )


def _table_of(packed: RelayExpr) -> Constant | None:
    """The constant that is packed, rows of zeros behind it perhaps."""
    assert isinstance(packed, Call)
    source = packed.args[0]
    if calls(source, ops.nn.pad):
        (above, _), columns = source.attrs["pad_width"]
        if above or any(columns):
            return None
        source = source.args[0]
    if not isinstance(source, Constant) or len(source.data.shape) != 2:
        return None
    return source if source.data.numpy().nbytes >= LEAST_BYTES else None


def _are_equal(a: Constant, b: Constant) -> bool:
    """Whether two constants have the same bytes."""
    if a.data is b.data:
        return True
    x, y = a.data, b.data
    if tuple(x.shape) != tuple(y.shape) or x.dtype != y.dtype:
        return False
    return np.array_equal(x.numpy().view("uint8"), y.numpy().view("uint8"))


def _taken(call: Call, packed: RelayExpr, picked: TensorType) -> RelayExpr:
    """Rows of the table, out of the blocks that hold them."""
    table = call.args[0]
    assert isinstance(packed, Call) and isinstance(table, Constant)
    rows, columns = table.data.shape
    block = const(int(str(packed.attrs["dst_layout"])[2:-1]), picked.dtype)
    extent = const(rows, picked.dtype)
    index = call.args[1]
    if call.attrs.mode == "wrap":
        index = _op.floor_mod(index, extent)
    else:
        if call.attrs.mode == "fast":
            index = _op.where(index < const(0, picked.dtype), index + extent, index)
        index = _op.maximum(index, const(0, picked.dtype))
        index = _op.minimum(index, const(rows - 1, picked.dtype))
    blocks = _op.take(packed, _op.floor_divide(index, block), axis=0)
    inside = _op.expand_dims(_op.floor_mod(index, block), -1, 2)
    inside = _op.broadcast_to(inside, (*picked.concrete_shape, columns, 1))
    return _op.squeeze(_op.gather(blocks, -1, inside), [-1])


@relay_pass("ShareTables", opt_level=2)
def share_tables(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Read embeddings from packed weights that hold the same numbers."""
    if is_primitive(func):
        return func
    sharer = _Sharer(func)
    return rewrite_calls(func, sharer.rewrite) if sharer.packed else func


ShareTables = share_tables.factory
