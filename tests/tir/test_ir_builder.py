"""The statement builder."""

from __future__ import annotations

import pytest

from tvm import tir
from tvm.ir import assert_structural_equal
from tvm.script import tir as T


def test_loops_branches_and_memory() -> None:
    ib = tir.ir_builder.create()
    out = tir.decl_buffer((16,), name="out")
    B = ib.buffer_ptr(out)
    A = ib.allocate("float32", 16, name="A", scope="local")
    with ib.for_range(0, 16, name="i") as i:
        with ib.if_scope(i % 2 == 0):
            A[i] = B[i] + 1.0
        with ib.else_scope():
            A[i] = 0.0
    with ib.for_range(1, 5, kind="vectorize") as v:
        B[v] = A[v]
    func = tir.PrimFunc([out], ib.get())

    @T.prim_func(private=True)
    def expected(out: T.Buffer((16,), "float32")):
        p = T.allocate([16], "float32", "local")
        A = T.Buffer((16,), data=p)
        for i in range(16):
            if i % 2 == 0:
                A[i] = out[i] + 1.0
            else:
                A[i] = 0.0
        for v in T.vectorized(1, 5):
            out[v] = A[v]

    assert_structural_equal(func, expected)


def test_scopes() -> None:
    ib = tir.ir_builder.create()
    n = tir.Var("n", "int32")
    with ib.new_scope():
        ib.scope_attr("default", "key", 1)
        x = ib.let("x", n * 2)
        with ib.while_loop(x < 3):
            ib.emit(tir.call_extern("int32", "step", x))
    ib.emit(tir.Evaluate(ib.likely(n < 2)))
    stmt = ib.get()

    @T.prim_func(private=True)
    def expected(n: T.int32):
        with T.attr(T.StringImm("default"), "key", 1):
            x = n * 2
            while x < 3:
                T.call_extern("int32", "step", x)
        T.evaluate(T.likely(n < 2))

    assert_structural_equal(tir.PrimFunc([n], stmt), expected)


def test_default_loop_names() -> None:
    ib = tir.ir_builder.create()
    names = []
    for _ in range(5):
        with ib.for_range(0, 4) as v:
            names.append(v.name)
            ib.emit(tir.Evaluate(v + 1))
    assert names == ["i", "j", "k", "i_0", "i_1"]


def test_vector_elements_of_a_flat_buffer() -> None:
    ib = tir.ir_builder.create()
    p = ib.pointer("float32x4", name="p")
    p[2] = tir.Broadcast(1.0, 4)
    store = ib.get()
    assert p.dtype == "float32x4"
    assert store.value.dtype == "float32x4"


def test_misuse() -> None:
    ib = tir.ir_builder.create()
    with pytest.raises(ValueError, match="for_range requires a kind of"):
        ib.for_range(0, 4, kind="vectorise")
    with pytest.raises(RuntimeError, match="else_scope can only follow an if_scope"):
        ib.else_scope()
    with pytest.raises(TypeError, match="emit requires a statement, got int"):
        ib.emit(3)
    A = ib.allocate("float32", 4)
    with pytest.raises(ValueError, match="requires float32 elements, got int32"):
        A[0] = tir.const(1)
    with ib.for_range(0, 4), pytest.raises(RuntimeError, match="inside a scope"):
        ib.get()


def test_pointers_are_parameters_of_functions() -> None:
    ib = tir.ir_builder.create()
    a = ib.pointer("float32", name="A")
    a[0] = a[1] + 1.0
    func = tir.PrimFunc([a], ib.get())
    assert func.buffer_map[func.params[0]] is a.buffer
    assert isinstance(a[0], tir.PrimExpr)
