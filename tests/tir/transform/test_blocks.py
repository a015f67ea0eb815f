"""From blocks to flat loops: the passes that lower blocks, together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.arith import Analyzer
from tvm.ir import IRModule, assert_structural_equal
from tvm.ir.transform import PassContext, Sequential
from tvm.script import tir as T
from tvm.tir import transform
from tvm.tir.analysis import verify_well_formed
from tvm.tir.buffer import allocation_shape
from tvm.tir.expr import IntImm, IterVar, Range
from tvm.tir.interp import interpret
from tvm.tir.pipeline import lower_module
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, MatchBufferRegion, Stmt
from tvm.tir.verify import Stage, VerifyStages, problems

from .checks import apply, assert_same_results
from .programs import function, loop, store

A = tir.decl_buffer((16, 16), name="A")
B = tir.decl_buffer((16, 16), name="B")

LOWER_BLOCKS = Sequential([
    transform.LowerInitBlock(),
    transform.ConvertBlocksToOpaque(),
    transform.LowerMatchBuffer(),
    transform.LowerOpaqueBlock(),
    transform.FlattenBuffer(),
])  # fmt: skip


def root(body: Stmt, alloc: Any = ()) -> Stmt:
    return BlockRealize((), True, Block((), (), (), "root", body, alloc_buffers=alloc))


def flattened(func: tir.PrimFunc) -> tir.PrimFunc:
    result = LOWER_BLOCKS(IRModule({"main": func}))["main"]
    assert isinstance(result, tir.PrimFunc)
    return result


def test_create_prim_func_lowers_to_flat_loops() -> None:
    n = 16
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    d = te.compute((n, n), lambda i, j: c[i, j] + 1.0, name="d")
    before = te.create_prim_func([a, b, d])
    assert_same_results(before, flattened(before), (n, n), (n, n), (n, n), stage=Stage.FLAT)


def test_a_predicate_becomes_a_condition() -> None:
    def body(i: tir.Var) -> Stmt:
        v = IterVar(Range(0, 16), "v", IterVar.DataPar)
        block = Block([v], [], [], "copy", store(B, [v.var, 0], A[v.var, 1]))
        return BlockRealize([i], i < 13, block)

    before = function([A, B], root(loop(20, body)))
    assert_same_results(before, flattened(before), (16, 16), (16, 16), stage=Stage.FLAT)


def test_loops_of_one_iteration_disappear() -> None:
    v = IterVar(Range(0, 16), "v", IterVar.DataPar)
    block = Block([v], [], [], "copy", store(B, [v.var, 0], A[v.var, 1]))
    before = function([A, B], root(loop(1, lambda i: BlockRealize([i], True, block))))
    result = flattened(before)
    assert "For(" not in repr(result.body) and "for " not in str(result.body)


@pytest.mark.parametrize("bind_strides", [False, True])
def test_a_matched_view_is_its_source(bind_strides: bool) -> None:
    def body(i: tir.Var) -> Stmt:
        v = IterVar(Range(0, 4), "v", IterVar.DataPar)
        strides = [tir.Var("s0"), tir.Var("s1")] if bind_strides else None
        view = tir.decl_buffer((4, 4), name="view", strides=strides, offset_factor=1)
        rows = Range.from_min_extent(v.var * 4, 4)
        source = BufferRegion(B, [rows, Range.from_min_extent(4, 4)])
        inner = loop(
            4, lambda y: loop(4, lambda x: store(view, [y, x], A[v.var * 4 + y, x]), name="x")
        )
        match = MatchBufferRegion(view, source)
        return BlockRealize(
            [i], True, Block([v], [], [source], "tile", inner, match_buffers=[match])
        )

    before = function([A, B], root(loop(4, body)))
    result = flattened(before)
    assert problems(result, Stage.FLAT) == []
    a, b = np.random.rand(16, 16).astype("float32"), np.zeros((16, 16), "float32")
    interpret(result, a, b)
    np.testing.assert_array_equal(b[:, 4:8], a[:, :4])


def test_the_whole_pipeline_takes_blocks() -> None:
    t = tir.decl_buffer((16, 16), name="t")

    def copy(target: Any, source: Any, plus: float) -> Stmt:
        return loop(
            16, lambda i: loop(16, lambda j: store(target, [i, j], source[i, j] + plus), name="j")
        )

    body = tir.SeqStmt([copy(t, A, 1.0), copy(B, t, 2.0)])
    before = function([A, B], root(body, [t]))
    with PassContext(instruments=[VerifyStages()]):
        after = lower_module(IRModule({"main": before}))["main"]
    assert_same_results(before, after, (16, 16), (16, 16), stage=Stage.FLAT)


def test_buffers_move_to_their_uses_and_shrink() -> None:
    t = tir.decl_buffer((16, 16), name="t")

    def body(i: tir.Var) -> Stmt:
        def point(target: Any, source: Any, name: str) -> Any:
            def block(j: tir.Var) -> Stmt:
                v = [IterVar(Range(0, 16), n, IterVar.DataPar) for n in ("vi", "vj")]
                at = [v[0].var, v[1].var]
                value = tir.BufferLoad(source, at) + 1.0
                here = [Range.from_min_extent(index, 1) for index in at]
                reads, writes = [BufferRegion(source, here)], [BufferRegion(target, here)]
                return BlockRealize(
                    [i, j], True, Block(v, reads, writes, name, store(target, at, value))
                )

            return block

        return tir.SeqStmt([loop(16, point(t, A, "t")), loop(16, point(B, t, "B"))])

    before = function([A, B], root(loop(16, body), [t]))
    lower = Sequential([
        transform.PlanAndUpdateBufferAllocationLocation(),
        transform.ConvertBlocksToOpaque(),
        transform.CompactBufferAllocation(),
        LOWER_BLOCKS,
    ])  # fmt: skip
    result = lower(IRModule({"main": before}))["main"]
    sizes: list[Any] = []
    tir.stmt_functor.post_order_visit(
        result.body,
        lambda s: sizes.append(s.constant_size()) if isinstance(s, tir.Allocate) else None,
    )
    assert sizes == [16]
    assert_same_results(before, result, (16, 16), (16, 16), stage=Stage.FLAT)


def test_allocations_grow_to_their_accesses_unless_strict() -> None:
    t = tir.decl_buffer((4,), name="t")

    def beyond(i: tir.Var) -> Stmt:
        return tir.SeqStmt([store(t, i, A[i, 0]), store(B, [i, 0], t[i])])

    before = function([A, B], root(loop(6, beyond), [t]))

    def size(is_strict: bool) -> int:
        result = transform.CompactBufferAllocation(is_strict)(IRModule({"main": before}))["main"]
        return int(result.body.block.alloc_buffers[0].shape[0])

    assert (size(is_strict=True), size(is_strict=False)) == (4, 6)


def test_conditions_bound_what_is_allocated() -> None:
    @T.prim_func
    def before(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
        for i in range(16):
            with T.block(""):
                t = T.alloc_buffer((16, 20))
                for j in range(16):
                    if j < 10:
                        t[i, j + 2] = A[i, j]
                for j in range(16):
                    B[i, j] = T.if_then_else(j >= 2 and j < 12, t[i, j], T.float32(0))

    after = transform.CompactBufferAllocation()(IRModule({"main": before}))["main"]
    (found,) = allocated(after.body)
    assert [int(extent) for extent in found.shape] == [1, 10]
    assert_same_results(before, after, (16, 16), (16, 16))


def test_threads_share_what_one_of_them_allocates() -> None:
    @T.prim_func
    def before(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                with T.block(""):
                    own = T.alloc_buffer((4, 8), scope="local")
                    common = T.alloc_buffer((4, 8), scope="shared")
                    own[bx, tx] = A[bx, tx]
                    common[bx, tx] = own[bx, tx]
                    B[bx, tx] = common[bx, tx]

    after = transform.CompactBufferAllocation()(IRModule({"main": before}))["main"]
    shapes = [[int(extent) for extent in buffer.shape] for buffer in allocated(after.body)]
    assert shapes == [[1, 1], [1, 8]]


def test_lowered_allocations_are_compact_too() -> None:
    @T.prim_func
    def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(4):
            t = T.decl_buffer((16,))
            for j in range(4):
                t[i * 4 + j] = A[i * 4 + j]
            for j in range(4):
                B[i * 4 + j] = t[i * 4 + j]

    after = transform.CompactBufferAllocation()(IRModule({"main": before}))["main"]
    assert int(after.body.body.extents[0]) == 4
    assert_same_results(before, after, (16,), (16,))


def test_strides_are_padded_on_both_sides_of_lowering() -> None:
    @T.prim_func
    def before(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
        for i in range(16):
            with T.block(""):
                t = T.alloc_buffer((16, 16))
                for j in range(16):
                    with T.block(""):
                        T.reads(A[i, j])
                        T.writes(t[i, j])
                        T.block_attr({"buffer_dim_align": [[0, 0, 16, 15]]})
                        t[i, j] = A[i, j] + 1.0
                for j in range(16):
                    B[i, j] = t[i, j] * 2.0

    mod = IRModule({"main": before})
    compact, lower = transform.CompactBufferAllocation(), transform.LowerOpaqueBlock()
    simplify = transform.Simplify()
    first, last = simplify(lower(compact(mod))), simplify(compact(lower(mod)))
    assert_structural_equal(first, last)
    assert [int(extent) for extent in last["main"].body.body.extents] == [1, 31]
    assert_same_results(before, last["main"], (16, 16), (16, 16))


def test_an_excluded_end_is_not_allocated() -> None:
    @T.prim_func
    def before(B: T.Buffer((10,), "float32")):
        for i in range(10):
            B[i] = 0.0
        t = T.decl_buffer((12,))
        for i in range(10):
            if i != 0:
                t[i] = T.cast(i, "float32")
                B[i] = t[i]

    after = transform.CompactBufferAllocation()(IRModule({"main": before}))["main"]
    assert int(after.body[1].extents[0]) == 9
    assert_same_results(before, after, (10,))


def test_conditions_on_sums_limit_what_is_allocated() -> None:
    @T.prim_func
    def before(A: T.Buffer((30, 8), "float32"), B: T.Buffer((30, 8), "float32")):
        for k in range(8):
            t = T.decl_buffer((30, 8))
            for i, j in T.grid(16, 3):
                if k * 4 + (i * 3 + j) // 4 < 30 and i * 3 + j < 16:
                    t[k * 4 + (i * 3 + j) // 4, i] = A[k * 4 + (i * 3 + j) // 4, i]
                    B[k * 4 + (i * 3 + j) // 4, i] = t[k * 4 + (i * 3 + j) // 4, i]

    after = transform.CompactBufferAllocation()(IRModule({"main": before}))["main"]
    assert [int(extent) for extent in after.body.body.extents] == [4, 6]
    assert_same_results(before, after, (30, 8), (30, 8))


def allocated(body: Stmt) -> list[tir.Buffer]:
    found: list[tir.Buffer] = []
    tir.stmt_functor.post_order_visit(
        body, lambda s: found.extend(s.alloc_buffers) if isinstance(s, tir.Block) else None
    )
    return found


def test_blocks_around_a_moved_buffer_do_not_access_it() -> None:
    @T.prim_func
    def nested(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        C = T.alloc_buffer((16,))
        with T.block("outer"):
            T.reads(A[0:16], C[0:16])
            T.writes(B[0:16], C[0:16])
            with T.block("inner"):
                T.reads(A[0:16], C[0:16])
                T.writes(B[0:16], C[0:16])
                for i in range(16):
                    C[i] = A[i] * T.float32(2)
                for i in range(16):
                    B[i] = C[15 - i]

    after = apply(transform.PlanAndUpdateBufferAllocationLocation(), nested)
    verify_well_formed(after)
    text = str(after)
    assert text.count("T.reads(A[0:16])") == text.count("T.writes(B[0:16])") == 2
    a, b = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    interpret(after, a, b)
    np.testing.assert_array_equal(b, a[::-1] * 2)


def test_sums_are_allocated_outside_of_the_loops_they_are_over() -> None:
    @T.prim_func
    def row_sums(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        total = T.alloc_buffer((4,), "float32")
        for i, k in T.grid(4, 8):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    total[vi] = T.float32(0)
                total[vi] = total[vi] + A[vi, vk]
            with T.block("so_far"):
                vi = T.axis.spatial(4, i)
                B[vi] = total[vi]

    after = apply(transform.PlanAndUpdateBufferAllocationLocation(), row_sums)
    assert_same_results(row_sums, after, (4, 8), 4)


@pytest.mark.parametrize("strides", [(4, 1), (7, 1), (9, 2), (7, 2), (1, 3)])
def test_buffers_with_strides_have_room_for_all_elements(strides: tuple[int, int]) -> None:
    @T.prim_func
    def func(a: T.handle, b: T.handle) -> None:
        source = T.match_buffer(a, (3, 4), "float32")
        target = T.match_buffer(b, (3, 4), "float32")
        between = T.alloc_buffer((3, 4), "float32", strides=strides)
        for i, j in T.grid(3, 4):
            with T.block("first"):
                x, y = T.axis.remap("SS", [i, j])
                between[x, y] = source[x, y] + T.float32(1)
        for i, j in T.grid(3, 4):
            with T.block("second"):
                x, y = T.axis.remap("SS", [i, j])
                target[x, y] = between[x, y] * T.float32(2)

    data = np.arange(12, dtype="float32").reshape(3, 4)
    found = np.zeros_like(data)
    interpret(func, data, found)
    np.testing.assert_array_equal(found, (data + 1) * 2)
    built = tvm.nd.array(np.zeros_like(data))
    tvm.build(func, target="llvm")(tvm.nd.array(data), built)
    np.testing.assert_array_equal(built.numpy(), found)


def test_rows_of_symbolic_length_tell_the_extents() -> None:
    n = tir.Var("n", "int32")
    padded = tir.decl_buffer((2, n, 64), strides=(72 * n, 72, 1))
    found = [Analyzer().simplify(extent) for extent in allocation_shape(padded)]
    assert_structural_equal(found, [IntImm("int32", 2), n, IntImm("int32", 72)])
    windows = tir.decl_buffer((3, 4), strides=(2, 1))  # rows overlap: 2 * 2 + 3 is the last element
    assert [int(extent) for extent in allocation_shape(windows)] == [8]


def test_what_views_of_tiles_reach_is_allocated() -> None:
    """Intrinsics have the pointer of a view alone."""

    @T.prim_func
    def before(B: T.Buffer((32, 32), "float32")):
        for i, j in T.grid(2, 2):
            with T.block(""):
                c = T.alloc_buffer((32, 32), scope="wmma.accumulator")
                for k in range(2):
                    with T.block(""):
                        T.reads()
                        T.writes(c[i * 16 : i * 16 + 16, k * 16 : k * 16 + 16])
                        tile = T.match_buffer(
                            c[i * 16 : i * 16 + 16, k * 16 : k * 16 + 16], (16, 16),
                            strides=("s1", "s0"), scope="wmma.accumulator", offset_factor=16,
                        )  # fmt: skip
                        T.tvm_fill_fragment(
                            tile.data, 16, 16, 16, tile.elem_offset // 256, T.float32(0)
                        )
                B[i, j] = T.float32(1)

    after = transform.CompactBufferAllocation()(IRModule({"main": before}))["main"]
    (found,) = allocated(after.body)
    assert [int(extent) for extent in found.shape] == [16, 32]
