"""Distinguish calls that came from one line of the source: `conv`, `conv_PART_1`, ..."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.span import SourceName, Span
from tvm.relay.expr import Call
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import post_order, rewrite_function

SUFFIX = "_PART_"


def tag_suffixes(mod: IRModule) -> IRModule:
    """The module with different names in the spans of the calls of `main`.

    Of calls with one name the result-most one is number 0.
    """
    main = mod["main"]
    found: dict[str, list[Call]] = {}
    for node in reversed(post_order(main)):
        if type(node) is Call and isinstance(node.span, Span):
            found.setdefault(node.span.source_name.name, []).append(node)
    names = {
        id(call): f"{name}{SUFFIX}{number}"
        for name, calls in found.items()
        if len(calls) > 1
        for number, call in enumerate(calls)
    }

    def rename(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if id(old) not in names or not isinstance(new.span, Span):
            return new
        return new.replace(span=new.span.replace(source_name=SourceName(names[id(old)])))

    result = mod.clone()
    result["main"] = rewrite_function(main, rename)
    return infer_types(result)
