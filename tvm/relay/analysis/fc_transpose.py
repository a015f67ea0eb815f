"""Dense layers whose weight the program transposes first."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Call, Var
from tvm.relay.op.registry import ops
from tvm.relay.traverse import post_order


def transposed_weight(node: RelayExpr) -> Var | None:
    """The weight of `nn.dense(x, transpose(w))`, or None if the node is no such call."""
    if not isinstance(node, Call) or node.op is not ops.nn.dense:
        return None
    turned = node.args[1]
    if not isinstance(turned, Call) or turned.op is not ops.transpose:
        return None
    axes = turned.attrs.axes
    weight = turned.args[0]
    is_plain = not axes or [int(a) % 2 for a in axes] == [1, 0]
    return weight if isinstance(weight, Var) and is_plain else None


def search_fc_transpose(expr: RelayExpr) -> list[str]:
    """The names of the weights that are transposed before a dense layer."""
    found = [transposed_weight(node) for node in post_order(expr)]
    return list(dict.fromkeys([w.name_hint for w in found if w is not None]))
