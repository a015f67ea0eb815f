from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.error import LoweringError
from tvm.ir import IRModule
from tvm.ir.transform import PassContext
from tvm.script import tir as T
from tvm.tir.stmt import AttrStmt, Evaluate, IfThenElse, SeqStmt
from tvm.tir.transform import (
    ApplyLayoutTransforms,
    ConvertForLoopsToSerial,
    DecorateDeviceScope,
    ExtractPrimFuncConstants,
    InferFragment,
    InjectCopyIntrin,
    InlinePrivateFunctions,
    LiftAttrScope,
    RemoveAssume,
    RemoveStoreUndef,
    RewriteUnsafeSelect,
    VerifyVTCMLimit,
)

from .checks import apply, assert_transforms, assert_unchanged
from .programs import PARALLEL, function, loop, store

A = tir.decl_buffer((8,), name="A")
B = tir.decl_buffer((8,), name="B")
MATRIX = tir.decl_buffer((4, 8), name="M")
ONE = tir.const(1)


def test_assumptions_are_removed() -> None:
    n = tir.Var("n")
    before = function([n, B], SeqStmt([Evaluate(tir.assume(n > 0)), store(B, 0, 1.0)]))
    assert_transforms(RemoveAssume(), before, function([n, B], store(B, 0, 1.0)))
    assert_unchanged(RemoveAssume(), function([B], store(B, 0, 1.0)))


def test_stores_of_undefined_values_are_removed() -> None:
    ints = tir.decl_buffer((8,), "int32", "I")
    x = tir.Var("x")
    undefined = tir.LetStmt(x, tir.undef() + 1, store(ints, 1, x))
    before = function([ints], SeqStmt([store(ints, 0, tir.undef()), undefined, store(ints, 2, 3)]))
    assert_transforms(RemoveStoreUndef(), before, function([ints], store(ints, 2, 3)))


def test_undefined_values_may_only_be_stored() -> None:
    ints = tir.decl_buffer((8,), "int32", "I")
    with pytest.raises(LoweringError, match="index that is defined"):
        apply(RemoveStoreUndef(), function([ints], store(ints, tir.undef(), 1)))
    with pytest.raises(LoweringError, match="an undefined value may only be stored"):
        apply(
            RemoveStoreUndef(), function([], Evaluate(tir.call_extern("int32", "f", tir.undef())))
        )


def test_a_choice_becomes_a_branch_where_a_value_may_be_unsafe() -> None:
    @T.prim_func(private=True)
    def before(A: T.Buffer(8, "int32"), n: T.int32):
        for i in range(8):
            A[i] = T.Select(i < n, i // (T.max(n, 1) * 2), 0) + T.Select(i < n, i // n, 0)

    @T.prim_func(private=True)
    def expected(A: T.Buffer(8, "int32"), n: T.int32):
        for i in range(8):
            A[i] = T.Select(i < n, i // (T.max(n, 1) * 2), 0) + T.if_then_else(i < n, i // n, 0)

    assert_transforms(RewriteUnsafeSelect(), before, expected)


def test_parallel_loops_become_serial() -> None:
    before = function([A, B], loop(8, lambda i: store(B, i, A[i]), PARALLEL))
    after = function([A, B], loop(8, lambda i: store(B, i, A[i])))
    assert_transforms(ConvertForLoopsToSerial(), before, after)


def test_equal_constants_of_a_module_share_a_number() -> None:
    def with_constant(values: list[float]) -> tir.PrimFunc:
        pointer = tir.Var("c", tir.expr.pointer_type("float32"))
        data = tir.decl_buffer((2,), data=pointer, name="c")
        body = store(B, 0, data[1])
        from tvm.runtime import ndarray

        array = ndarray.array(np.array(values, "float32"))
        return function([B], tir.AllocateConst(pointer, "float32", [2], array, body))

    mod = IRModule(
        {"f": with_constant([1, 2]), "g": with_constant([3, 4]), "h": with_constant([1, 2])}
    )
    result = ExtractPrimFuncConstants()(mod)
    constants = [array.numpy().tolist() for array in result.attrs["constants"]]
    assert constants == [[1, 2], [3, 4]]
    assert [int(result[name].body.irmod_storage_idx) for name in "fgh"] == [0, 1, 0]
    assert ExtractPrimFuncConstants()(result) is result


def test_neighbours_of_one_attribute_are_put_under_it() -> None:
    node = tir.Var("ctx", "handle")

    def marked(stmt: tir.Stmt) -> tir.Stmt:
        return AttrStmt(node, "coproc_scope", ONE, stmt)

    pair = SeqStmt([marked(store(B, 0, 1.0)), marked(store(B, 1, 1.0)), store(B, 2, 1.0)])
    joined = marked(SeqStmt([store(B, 0, 1.0), store(B, 1, 1.0)]))
    after = function([node, B], SeqStmt([joined, store(B, 2, 1.0)]))
    assert_transforms(LiftAttrScope("coproc_scope"), function([node, B], pair), after)


def test_an_attribute_is_lifted_out_of_loops_and_conditions() -> None:
    node, n = tir.Var("ctx", "handle"), tir.Var("n")

    def marked(stmt: tir.Stmt) -> tir.Stmt:
        return AttrStmt(node, "k", ONE, stmt)

    inside = loop(8, lambda i: IfThenElse(i < n, marked(store(B, i, 1.0))))
    outside = marked(loop(8, lambda i: IfThenElse(i < n, store(B, i, 1.0))))
    assert_transforms(
        LiftAttrScope("k"), function([node, n, B], inside), function([node, n, B], outside)
    )


def test_the_body_is_marked_for_the_device_once() -> None:
    result = apply(DecorateDeviceScope(), function([B], store(B, 0, 1.0)))
    assert isinstance(result.body, AttrStmt) and result.body.attr_key == "device_scope"
    assert_unchanged(DecorateDeviceScope(), result)


def vtcm_user(size: int) -> tir.PrimFunc:
    pointer = tir.Var("v", tir.expr.pointer_type("int8", "global.vtcm"))
    buffer = tir.decl_buffer((size,), "int8", "v", pointer)
    return function([B], tir.Allocate(pointer, "int8", [size], True, store(buffer, 0, 1)))


def test_vtcm_beyond_the_limit_is_rejected() -> None:
    with pytest.raises(LoweringError, match="need 64 bytes, there are 32"):
        apply(VerifyVTCMLimit(32), vtcm_user(64))
    assert_unchanged(VerifyVTCMLimit(64), vtcm_user(64))
    with (
        PassContext(config={"tir.vtcm_capacity": 16}),
        pytest.raises(LoweringError, match="are 16"),
    ):
        apply(VerifyVTCMLimit(), vtcm_user(64))


def test_layouts_of_arguments_are_transformed() -> None:
    swap = tir.IndexMap.from_func(lambda i, j: [j, i])
    swapped = tir.decl_buffer((8, 4), name="M")

    def program(buffer: tir.Buffer, turn: bool, **attrs: object) -> tir.PrimFunc:
        def body(i: tir.Var, j: tir.Var) -> tir.Stmt:
            at = [j, i] if turn else [i, j]
            return store(buffer, at, buffer[at[0], at[1]] + 1.0)

        return function([buffer], loop(4, lambda i: loop(8, lambda j: body(i, j))), **attrs)

    before = program(MATRIX, False, layout_transform_map={MATRIX: [swap]})
    assert_transforms(ApplyLayoutTransforms(), before, program(swapped, True))


def test_marked_copies_are_given_to_a_function() -> None:
    seen = []

    def copy(src, dst, before, after, value):  # type: ignore[no-untyped-def]
        seen.append((src, dst, before, after, value))
        return Evaluate(tir.call_extern("int32", "dma", src.access_ptr("r"), dst.access_ptr("w")))

    src = tir.decl_buffer((64,), name="S")
    dst = tir.decl_buffer((32,), name="D")
    nest = loop(
        4, lambda i: loop(8, lambda j: store(dst, i * 8 + j, src[i * 16 + j + 3]), name="j")
    )
    marked = AttrStmt(tir.const(0), "pragma_dma_copy", ONE, nest)
    result = apply(InjectCopyIntrin("dma_copy", copy), function([src, dst], marked))
    assert isinstance(result.body, Evaluate)
    (found, target, before, after, value) = seen[0]
    assert [int(s) for s in found.strides] == [16, 1] and int(found.elem_offset) == 3
    assert [int(s) for s in target.strides] == [8, 1] and [int(n) for n in target.shape] == [4, 8]
    assert (before, after, value) == ([], [], None)


def test_padding_of_a_copy_is_told() -> None:
    seen = []

    def copy(src, dst, before, after, value):  # type: ignore[no-untyped-def]
        seen.append((src, before, after, value))
        return Evaluate(0)

    def padded(i: tir.Var) -> tir.Stmt:
        inside = tir.all(i >= 1, i < 7)
        return store(B, i, tir.if_then_else(inside, A[i - 1], tir.const(1.0)))

    marked = AttrStmt(tir.const(0), "pragma_pad", ONE, loop(8, padded))
    apply(InjectCopyIntrin("pad", copy), function([A, B], marked))
    source, before, after, value = seen[0]
    assert [int(n) for n in before] == [1] and [int(n) for n in after] == [1]
    assert int(source.shape[0]) == 6 and int(source.elem_offset) == 0
    assert float(value) == 1.0


def test_a_marked_statement_that_is_no_copy_is_rejected() -> None:
    marked = AttrStmt(tir.const(0), "pragma_c", ONE, loop(8, lambda i: store(B, i, A[i] + 1.0)))
    with pytest.raises(LoweringError, match="pragma_c needs loops around one store of a load"):
        apply(InjectCopyIntrin("c", lambda *_: Evaluate(0)), function([A, B], marked))


def test_private_functions_are_inlined_and_removed() -> None:
    x = tir.Var("x")
    callee = tir.PrimFunc([x], Evaluate(tir.call_extern("int32", "f", x)))
    mod = IRModule({"callee": callee})
    gvar = mod.get_global_var("callee")
    mod["main"] = function([], Evaluate(tir.Call("void", gvar, [7])))
    result = InlinePrivateFunctions()(mod)
    assert [g.name_hint for g in result.functions] == ["main"]
    assert "f" in str(result["main"].body) and "7" in str(result["main"].body)


def test_a_function_that_calls_itself_is_not_inlined() -> None:
    mod = IRModule({"callee": tir.PrimFunc([], Evaluate(0))})
    gvar = mod.get_global_var("callee")
    mod["callee"] = tir.PrimFunc([], Evaluate(tir.Call("void", gvar, [])))
    assert InlinePrivateFunctions()(mod) is mod


def test_fragments_are_described_where_they_are_allocated() -> None:
    pointer = tir.Var("F", tir.expr.pointer_type("float16", "wmma.matrix_a"))
    load = tir.call_intrin(
        "handle", "tir.tvm_load_matrix_sync", pointer, 16, 16, 16, 0, A.data, 16, "row_major"
    )
    before = function([A], tir.Allocate(pointer, "float16", [256], True, Evaluate(load)))
    body = apply(InferFragment(), before).body
    found = {}
    while isinstance(body, AttrStmt):
        found[body.attr_key] = body.value.value
        body = body.body
    assert found == {"fragment_layout": "row_major", "fragment_shape": "16, 16, 16"}


def test_pointers_of_inlined_functions_get_names() -> None:
    @tvm.script.ir_module
    class Before:
        @T.prim_func
        def main(A: T.Buffer((8, 4), "float32")):
            for i in range(8):
                Before.clear(T.address_of(A[i, 0]))

        @T.prim_func(private=True)
        def clear(data: T.handle("float32")):
            row = T.decl_buffer((4,), "float32", data=data)
            for j in range(4):
                row[j] = T.float32(0)

    after = tir.transform.InlinePrivateFunctions()(Before)
    (func,) = after.functions.values()
    assert isinstance(func.body.body, tir.LetStmt)
    assert func.body.body.var is func.body.body.body.buffer.data
    assert tir.analysis.verify_well_formed(after)


def test_views_that_contradict_their_source_are_rejected() -> None:
    @T.prim_func
    def before(A: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block(""):
                T.reads()
                T.writes(A[i, j])
                view = T.match_buffer(A[i, j], (), elem_offset=0)
                view[()] = T.float32(1)

    with pytest.raises(LoweringError, match="match_buffer view requires 0 where its source has"):
        tir.transform.LowerMatchBuffer()(tvm.IRModule({"main": before}))


def test_unpacked_functions_need_a_target() -> None:
    func = tir.PrimFunc([A], tir.Evaluate(0), attrs={"global_symbol": "f"})
    with pytest.raises(tvm.TVMError, match="required the function to be annotated"):
        tir.transform.MakeUnpackedAPI()(tvm.IRModule({"f": func}))
