"""Replace calls that a target cannot do well by equivalent ones.

Each operator's `legalize` facet, `(attrs, inputs, types) -> Expr | None`, tells how; the last of
the types is that of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.common import FunctionPass
from tvm.relay.traverse import rewrite_calls
from tvm.topi.rewrites import LEGALIZATIONS, users_rewrite


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> Pass:
    """The pass; another attribute than the usual one may hold the rewrites."""
    return rewriting_pass(legalize_map_attr_name, "Legalize", 1)


def rewriting_pass(
    attr_name: str,
    name: str,
    opt_level: int,
    others: Mapping[Op, Callable[..., RelayExpr | None]] | None = None,
) -> Pass:
    """A pass of that name that applies the rewrites of one attribute.

    `others` has rewrites for operators without that attribute. Calls that give no elements stay: there is nothing to do for them.
    """

    def legalized(old: Call, new: Call) -> RelayExpr:
        if not isinstance(old.op, Op):
            return new
        legalize = old.op.get_attr(attr_name) or (others or {}).get(old.op)
        asked = users_rewrite(LEGALIZATIONS, old.op.name) if attr_name == "FTVMLegalize" else None
        if legalize is None and asked is None:
            return new
        out_type = infer_type_of(old)
        if isinstance(out_type, TensorType) and out_type.is_empty:
            return new
        types = [*[infer_type_of(a) for a in old.args], out_type]
        for rewrite in (asked, legalize):
            if rewrite is not None:
                legal: RelayExpr | None = rewrite(new.attrs, list(new.args), types)
                if legal is not None:
                    return legal
        return new

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        if is_primitive(func):
            return func
        return rewrite_calls(func, legalized)

    return FunctionPass(run, PassInfo(opt_level, name))
