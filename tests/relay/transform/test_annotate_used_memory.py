"""Bytes that are alive at the calls of kernels."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay
from tvm.relay.transform import AnnotateUsedMemory, InferType, ToANormalForm

T = relay.TensorType((4,), "int8")


def kernel(dtype: str = "int8") -> relay.Function:
    p = relay.var("p", relay.TensorType((4,), "int8"))
    return relay.Function([p], relay.cast(p + p, dtype)).with_attr("Primitive", 1)


def sizes(func: relay.Function) -> tuple[int, list[list[int]]]:
    """The function's own bytes, and its kernels' in the order of the program."""
    mod = ToANormalForm()(InferType()(tvm.IRModule.from_expr(func)))
    main = AnnotateUsedMemory()(InferType()(mod))["main"]
    found: list[list[int]] = []

    def visit(node: relay.Expr) -> None:
        if isinstance(node, relay.Function) and "used_memory" in node.attrs:
            found.append([int(n) for n in node.attrs["used_memory"]])

    relay.analysis.post_order_visit(main, visit)
    return int(main.attrs["io_used_memory"]), found


def test_values_count_from_where_they_are_bound_to_their_last_use() -> None:
    x, first, wide = relay.var("x", T), kernel(), kernel("int32")
    a = first(x)
    assert sizes(relay.Function([x], wide(first(a)))) == (20, [[8, 8], [20]])
    both = relay.Tuple([a, wide(x)])
    assert sizes(relay.Function([x], both)) == (24, [[8], [24]])


def test_branches_hold_what_is_read_behind_them() -> None:
    c, x, y, inner = (
        relay.var("c", relay.TensorType((), "bool")),
        relay.var("x", T),
        relay.var("y", T),
        kernel(),
    )
    chosen = relay.If(c, inner(x), x)
    # x, y, which is added afterwards, and the result
    assert sizes(relay.Function([c, x, y], chosen + y)) == (13, [[12]])


def test_open_shapes_have_no_size() -> None:
    x = relay.var("x", relay.TensorType((relay.Any(),), "int8"))
    mod = InferType()(
        tvm.IRModule.from_expr(relay.Function([x], relay.exp(relay.cast(x, "float32"))))
    )
    with pytest.raises(tvm.TVMError, match="does not support dynamic shapes, got Tensor"):
        AnnotateUsedMemory()(mod)
