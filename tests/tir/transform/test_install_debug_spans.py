from __future__ import annotations

from tvm import tir
from tvm.ir import assert_structural_equal
from tvm.tir.stmt import BufferStore
from tvm.tir.stmt_functor import post_order_visit
from tvm.tir.transform import InstallDebugSpans

from .checks import apply
from .programs import function, loop, store

A, B = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B")


def test_nodes_know_the_line_of_their_statement() -> None:
    body = loop(8, lambda i: tir.SeqStmt([store(B, i, A[i] + 1.0), store(A, i, 0.0)]))
    before = function([A, B], body)
    after = apply(InstallDebugSpans(), before)
    assert_structural_equal(after, before)
    lines = after.script().splitlines()
    stores: list[BufferStore] = []
    post_order_visit(after.body, lambda n: stores.append(n) if isinstance(n, BufferStore) else None)
    for node in stores:
        assert node.span.source_name.name == "main.tir"
        assert lines[node.span.line - 1].strip().startswith(f"{node.buffer.name}[i] =")
        assert node.value.span.line == node.span.line
    assert lines[after.body.span.line - 1].strip() == "for i in range(8):"
