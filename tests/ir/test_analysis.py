"""Analyses of modules."""

from __future__ import annotations

import tvm
from tvm import relay
from tvm.ir.analysis import collect_call_map
from tvm.script import ir as I
from tvm.script import tir as T


def _names(mod: tvm.IRModule) -> dict[str, list[str]]:
    return {
        g.name_hint: [c.name_hint for c in called] for g, called in collect_call_map(mod).items()
    }


def test_calls_of_the_loop_level() -> None:
    @I.ir_module
    class Module:
        @T.prim_func
        def outer(a: T.handle) -> None:
            A = T.match_buffer(a, (4,), "float32")
            for _ in range(4):
                Module.inner(A.data)
                Module.inner(A.data)

        @T.prim_func(private=True)
        def inner(a: T.handle("float32")) -> None:
            A = T.decl_buffer((4,), "float32", data=a)
            A[0] = 1.0

    assert _names(Module) == {"outer": ["inner"], "inner": []}


def test_calls_of_the_graph_level() -> None:
    mod = relay.parse(
        """#[version = "0.0.5"]
        def @main(%x: float32) -> float32 { @second(@first(%x)) }
        def @first(%x: float32) -> float32 { @first(exp(%x)) }
        def @second(%x: float32) -> float32 { %x }"""
    )
    assert _names(mod) == {"main": ["second", "first"], "first": ["first"], "second": []}
