"""Programs that are built frame by frame."""

from __future__ import annotations

import pytest

from tvm import tir
from tvm.error import DiagnosticError
from tvm.ir import IRModule, assert_structural_equal
from tvm.script import from_source
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import ir as I
from tvm.script.ir_builder import tir as T


def test_a_function_is_the_same_as_its_script() -> None:
    with IRBuilder() as builder, T.prim_func():
        T.func_name("main")
        A = T.arg("A", T.Buffer((16,), "float32"))
        n = T.arg("n", T.int32())
        T.func_attr({"tir.noalias": True})
        with T.serial(16) as i, T.block("scale"):
            IRBuilder.name("i", i)
            v = IRBuilder.name("v", T.axis.spatial(16, i))
            T.buffer_store(A, A[v] * 2.0, [v])
        with T.If(n < 3), T.Then():
            T.evaluate(0)
    expected = from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int32):
    T.func_attr({"tir.noalias": True})
    for i in range(16):
        with T.block("scale"):
            v = T.axis.spatial(16, i)
            A[v] = A[v] * 2.0
    if n < 3:
        T.evaluate(0)
""")
    assert_structural_equal(builder.get(), expected)
    assert "v = T.axis.spatial(16, i)" in builder.get().script()


def test_functions_of_a_module_call_each_other() -> None:
    with IRBuilder() as builder, I.ir_module():
        I.module_attrs({"version": 2})
        callee = I.decl_function("callee")
        with T.prim_func():
            T.func_name("main")
            T.evaluate(tir.Call("int32", callee, []))
        with T.prim_func(is_private=True):
            T.func_name("callee")
            T.evaluate(1)
    module = builder.get()
    assert isinstance(module, IRModule)
    assert sorted(var.name_hint for var in module.functions) == ["callee", "main"]
    assert int(module.attrs["version"]) == 2


def test_a_frame_may_last_to_the_end_of_the_one_around_it() -> None:
    with IRBuilder() as builder, T.prim_func():
        pointer = T.allocate([4], "float32", "local").open_to_end()
        T.evaluate(pointer)
        T.evaluate(0)
    body = builder.get().body
    assert isinstance(body, tir.Allocate)
    assert len(body.body.seq) == 2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: T.reads(), "T.reads requires T.block around it"),
        (lambda: T.Then().__enter__(), "T.Then requires T.If around it"),
        (lambda: T.arg("n", 3), "T.arg requires a variable or a buffer, got int"),
        (lambda: T.axis.remap("S", [tir.Var("i", "int32")]), "T.axis.remap requires variables of"),
        (lambda: I.decl_function("f"), "this requires a module around it"),
    ],
)
def test_words_out_of_place_are_rejected(build: object, message: str) -> None:
    assert callable(build)
    with IRBuilder(), T.prim_func(), pytest.raises((TypeError, ValueError), match=message):
        build()


def test_a_builder_has_one_result() -> None:
    with IRBuilder() as builder:
        T.evaluate(0)
        with pytest.raises(ValueError, match="an IRBuilder builds one result"):
            T.evaluate(1)
    assert isinstance(builder.get(), tir.Evaluate)
    with IRBuilder() as empty, pytest.raises(ValueError, match="a program that was built"):
        empty.get()


def test_a_block_that_uses_a_pointer_states_its_regions() -> None:
    with pytest.raises(DiagnosticError, match="uses the pointer of A"):
        from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("opaque"):
            v = T.axis.spatial(16, i)
            T.call_extern("int32", "touch", A.data, v)
""")
