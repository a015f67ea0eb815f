"""Reading scripts: names from around, sugar, blocks that are completed, modules, macros."""

from __future__ import annotations

import pytest

from tvm import te, tir
from tvm.error import DiagnosticError
from tvm.ir import IRModule, assert_structural_equal
from tvm.script import from_source
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.tir.analysis import verify_well_formed

SIZE = 16


@T.prim_func
def doubled(A: T.Buffer((SIZE,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(SIZE):
        B[i] = A[i] * 2.0


def test_a_decorated_function_is_a_prim_func() -> None:
    assert isinstance(doubled, tir.PrimFunc)
    assert doubled.attrs["global_symbol"] == "doubled"
    assert [p.name for p in doubled.params] == ["A_handle", "B_handle"]
    loop = doubled.body
    assert isinstance(loop, tir.For)
    assert loop.loop_var.name == "i"
    assert loop.extent.value == 16
    assert loop.body.value.b.dtype == "float32"


def test_one_name_stands_for_all_loops_of_a_nest() -> None:
    @T.prim_func
    def program(A: T.Buffer((4, 8), "float32")):
        for at in T.grid(*A.shape):
            with T.block("zero"):
                i, j = T.axis.remap("SS", at)
                A[i, j] = 0.0

    @T.prim_func
    def expected(A: T.Buffer((4, 8), "float32")):
        for y, x in T.grid(4, 8):
            with T.block("zero"):
                i, j = T.axis.remap("SS", [y, x])
                A[i, j] = 0.0

    assert_structural_equal(program, expected.with_attr("global_symbol", "program"))
    assert program.body.block.body.loop_var.name == "at_0"


def test_names_of_the_scope_around_are_visible() -> None:
    extent, dtype = 8, "int32"

    def value(i):
        return i * 3

    @T.prim_func
    def program(A: T.Buffer((extent,), dtype)):
        for i in range(extent):
            A[i] = value(i) if extent > 4 else 0

    @T.prim_func
    def expected(A: T.Buffer((8,), "int32")):
        for i in range(8):
            A[i] = i * 3

    assert_structural_equal(
        program.without_attr("global_symbol"), expected.without_attr("global_symbol")
    )


def test_private_functions_have_no_symbol() -> None:
    @T.prim_func(private=True)
    def program(a: T.handle):
        T.evaluate(0)

    assert "global_symbol" not in program.attrs


def test_variables_made_outside_of_the_script_are_named_in_it() -> None:
    @T.prim_func
    def shifted(a: T.handle):
        offset = te.var("elem_offset")
        A = T.match_buffer(a, (16,), elem_offset=offset)
        T.evaluate(offset)

    (buffer,) = shifted.buffer_map.values()
    assert isinstance(shifted.body, tir.Evaluate)
    assert shifted.body.value.same_as(buffer.elem_offset)


def test_sugar() -> None:
    @T.prim_func(private=True)
    def short(A: T.Buffer((8, 8), "int32"), n: T.int32):
        x = n + 1
        for i, j in T.grid(8, 8):
            if 0 <= i < x and not (j == 3 or j == 4):
                A[i, j] += 1
        for i in T.serial(2, 6):
            A[i, 0:4] = T.Broadcast(0, 4)
        A[0, 0] = 1 if n < 3 else 2

    @T.prim_func(private=True)
    def long(A: T.Buffer((8, 8), "int32"), n: T.int32):
        x: T.int32 = n + 1
        for i in T.serial(0, 8):
            for j in T.serial(0, 8):
                if T.all(0 <= i, i < x) and T.Not(T.any(j == 3, j == 4)):  # noqa: SIM300
                    A[i, j] = A[i, j] + 1
        for i in range(2, 6):
            A[i, T.Ramp(0, 1, 4)] = T.Broadcast(0, 4)
        A[0, 0] = T.if_then_else(n < 3, 1, 2)

    assert_structural_equal(short, long)


def test_branches_on_python_values_are_taken_at_once() -> None:
    flag = False

    @T.prim_func(private=True)
    def program(A: T.Buffer((8,), "int32")):
        if flag:
            A[0] = 1
        else:
            A[0] = 2

    assert isinstance(program.body, tir.BufferStore)
    assert program.body.value.value == 2


def test_regions_of_blocks_are_found() -> None:
    @T.prim_func(private=True)
    def program(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                for k in range(4):
                    B[vi] = A[vi, k * 2 + 1] + A[vi, k]

    block = program.body.block.body.body.block
    assert str(block.reads[0]) == "A[vi, 0:8]"
    assert str(block.writes[0]) == "B[vi]"


def test_a_reduction_does_not_read_what_it_initialises() -> None:
    @T.prim_func(private=True)
    def program(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32")):
        for i, k in T.grid(16, 16):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]

    block = program.body.block.body.body.body.block
    assert [str(region) for region in block.reads] == ["A[vi, vk]"]


def test_the_root_block_is_added() -> None:
    root = from_source(
        """
        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            B = T.alloc_buffer((4,), "int32")
            for i in range(4):
                with T.block("A"):
                    v = T.axis.spatial(4, i)
                    A[v] = B[v]
        """
    ).body
    assert isinstance(root, tir.BlockRealize)
    assert root.block.name_hint == "root"
    assert [buffer.name for buffer in root.block.alloc_buffers] == ["B"]


def test_nested_blocks_give_their_regions_to_the_outer_one() -> None:
    @T.prim_func(private=True)
    def program(A: T.Buffer((16,), "int32")):
        for i in range(4):
            with T.block("outer"):
                vi = T.axis.spatial(4, i)
                for j in range(4):
                    with T.block("inner"):
                        vj = T.axis.spatial(16, vi * 4 + j)
                        A[vj] = 1

    outer = program.body.block.body.body.block
    assert str(outer.writes[0]) == "A[vi * 4:vi * 4 + 4]"


def test_modules() -> None:
    @I.ir_module
    class Module:
        I.module_attrs({"version": 2})

        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            A[0] = Module.three(A.data) + cls.three(A.data)

        @T.prim_func(private=True)
        def three(p: T.handle("int32")) -> T.int32:
            return 3

    assert isinstance(Module, IRModule)
    assert Module.attrs["version"] == 2
    call = Module["main"].body.value.a
    assert call.op is Module.get_global_var("three")
    assert call.dtype == "int32"
    assert_structural_equal(Module, from_source(Module.script()))


def test_macros() -> None:
    offset = 1

    @T.macro
    def add_offset(buffer, index):
        for step in range(2):
            buffer[index + step] = buffer[index] + offset

    @T.prim_func(private=True)
    def program(A: T.Buffer((8,), "int32"), i: T.int32):
        add_offset(A, i)

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8,), "int32"), i: T.int32):
        for step in range(2):
            A[i + step] = A[i] + 1

    assert_structural_equal(program, expected)


def test_scopes_end_with_their_suite() -> None:
    @T.prim_func(private=True)
    def program(n: T.int32):
        for _ in range(2):
            x = T.allocate([4], "float32")
            T.call_extern("int32", "use", x)
        with T.allocate([8], "float32") as x:
            T.call_extern("int32", "use", x)
        T.call_extern("int32", "end")

    first, second, last = program.body.seq
    assert isinstance(first.body, tir.Allocate)
    assert isinstance(second, tir.Allocate)
    assert isinstance(last, tir.Evaluate)


def test_older_spellings() -> None:
    @T.prim_func(private=True)
    def older(a: T.handle, B: T.Buffer[(4,), "float32"]):  # noqa: UP037
        A = T.match_buffer(a, [4], "float32")
        C = T.buffer_decl((4,), "float32", data=A.data)
        C[0] = T.cast("float32", 1) + T.min(B[0], B[1])
        A[T.ramp(0, 1, 4)] = T.broadcast(T.float32(1), 4)

    assert isinstance(older, tir.PrimFunc)


def test_values_kept_out_of_the_program() -> None:
    @T.prim_func(private=True)
    def program(A: T.Buffer((4,), "int32")):
        width = T.meta_var(4)
        for i in range(width):
            A[i] = width

    assert program.body.body.value.value == 4


def test_with_statements_of_if() -> None:
    @T.prim_func(private=True)
    def program(A: T.Buffer((4,), "int32"), n: T.int32):
        with T.If(n < 2):
            with T.Then():
                A[0] = 1
            with T.Else():
                A[0] = 2

    branch = program.body
    assert isinstance(branch, tir.IfThenElse)
    assert branch.else_case.value.value == 2


def test_data_types_may_be_said_again() -> None:
    @T.prim_func
    def stated(A: T.Buffer(4, "float32")):
        A[0] = T.if_then_else(
            A[1] > T.float32(0), T.exp(A[0], dtype="float32"), A[2], dtype="float32"
        )
        T.evaluate(T.call_extern("f", A.data, dtype="int32"))
        T.evaluate(T.tvm_call_packed("g", A[0], dtype="int32"))

    @T.prim_func
    def derived(A: T.Buffer(4, "float32")):
        A[0] = T.if_then_else(A[1] > T.float32(0), T.exp(A[0]), A[2])
        T.evaluate(T.call_extern("int32", "f", A.data))
        T.evaluate(T.call_packed("g", A[0]))

    assert_structural_equal(
        stated.with_attr("global_symbol", ""), derived.with_attr("global_symbol", "")
    )


def test_data_types_of_intrinsics_of_devices_may_be_said_last() -> None:
    @T.prim_func
    def last(A: T.Buffer((8,), "float16")):
        T.evaluate(T.mma_fill(8, A.data, 0, dtype="float16"))

    @T.prim_func
    def first(A: T.Buffer((8,), "float16")):
        T.mma_fill("float16", 8, A.data, 0)

    assert_structural_equal(last.body, first.body, True)


def test_views_have_the_data_type_of_what_they_show() -> None:
    @T.prim_func
    def func(A: T.Buffer((4, 4), "int32")):
        for i in range(4):
            with T.block("row"):
                v = T.axis.spatial(4, i)
                row = T.match_buffer(A[v, 0:4])
                row[0, 0] = 1

    (view,) = func.body.block.body.body.block.match_buffers
    assert view.buffer.dtype == "int32"
    assert [int(extent) for extent in view.buffer.shape] == [1, 4]


def test_stores_convert_between_widths() -> None:
    @T.prim_func
    def implicit(A: T.Buffer(2, "e4m3_float8"), B: T.Buffer(2, "float32"), C: T.Buffer(2, "int8")):
        B[0] = A[1]
        C[0] = T.int32(3) + C[1]

    @T.prim_func
    def explicit(A: T.Buffer(2, "e4m3_float8"), B: T.Buffer(2, "float32"), C: T.Buffer(2, "int8")):
        B[0] = T.Cast("float32", A[1])
        C[0] = T.Cast("int8", T.int32(3) + C[1])

    assert_structural_equal(implicit.body, explicit.body, True)


def test_views_and_realised_buffers_are_defined() -> None:
    @T.prim_func
    def bound(A: T.Buffer((8, 8), "int32")):
        offset = T.int32()
        row = T.Buffer((8,), "int32", elem_offset=offset)
        T.attr([row, A], "buffer_bind_scope", T.tvm_tuple(3, 1, 0, 8, dtype="handle"))
        row[2] = offset

    @T.prim_func
    def realised(A: T.Buffer((8,), "int32")):
        work = T.Buffer((8,), "int32")
        T.realize(work[0:8], "global")
        work[0] = A[1]

    assert verify_well_formed(bound)
    assert verify_well_formed(realised)


def test_what_is_used_outside_of_its_scope_is_rejected() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    i = T.int32()
    for j in range(8):
        with T.LetStmt(j, var=i):
            A[j] = i
    A[0] = i
"""
    with pytest.raises(DiagnosticError, match="undefined variable i .* no longer in-scope; hint"):
        from_source(text)
    assert isinstance(from_source(text, check_well_formed=False), tir.PrimFunc)
