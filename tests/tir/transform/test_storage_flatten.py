from __future__ import annotations

from typing import Any

import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError
from tvm.tir.expr import Range
from tvm.tir.stmt import AttrStmt, BufferRealize, SeqStmt, Stmt
from tvm.tir.transform import FlattenBuffer, StorageFlatten
from tvm.tir.verify import Stage

from .checks import apply, assert_same_results, assert_unchanged
from .programs import function, loop, store

A = tir.decl_buffer((4, 8), name="A")
B = tir.decl_buffer((4, 8), name="B")
T = tir.decl_buffer((4, 8), name="T")


def copied_through(buffer: Any, i: Any, wrap: Any = lambda body: body) -> Stmt:
    """Row i of A doubled into B by way of a realized row of ``buffer``."""
    body = SeqStmt([
        loop(8, lambda k: store(buffer, [i, k], A[i, k] * 2.0), name="k"),
        loop(8, lambda j: store(B, [i, j], buffer[i, j]), name="j"),
    ])  # fmt: skip
    return wrap(BufferRealize(buffer, [Range.from_min_extent(i, 1), Range(0, 8)], True, body))


def from_te(body: Stmt, *params: Any) -> tir.PrimFunc:
    return function(params or [A, B], body, from_legacy_te_schedule=True)


def test_flatten_allocates_only_what_is_realized() -> None:
    before = from_te(loop(4, lambda i: copied_through(T, i)))
    result = apply(StorageFlatten(64), before)
    assert_same_results(before, result, (4, 8), (4, 8), stage=Stage.FLAT)
    sizes: list[Any] = []
    tir.stmt_functor.post_order_visit(
        result.body,
        lambda s: sizes.append(s.constant_size()) if isinstance(s, tir.Allocate) else None,
    )
    assert sizes == [8]


def test_flatten_is_done_once() -> None:
    result = apply(StorageFlatten(64), from_te(loop(4, lambda i: copied_through(T, i))))
    assert_unchanged(StorageFlatten(64), result)
    assert_unchanged(FlattenBuffer(), result)


def test_flatten_pads_aligned_dimensions() -> None:
    def aligned(body: Stmt) -> Stmt:
        return AttrStmt(T, "buffer_dim_align", tir.op.tvm_tuple(0, 16, 3), body)

    body = SeqStmt([
        loop(4, lambda i: loop(8, lambda k: store(T, [i, k], A[i, k] * 2.0), name="k")),
        loop(4, lambda i: loop(8, lambda j: store(B, [i, j], T[i, j]), name="j")),
    ])  # fmt: skip
    before = from_te(aligned(BufferRealize(T, [Range(0, 4), Range(0, 8)], True, body)))
    result = apply(StorageFlatten(64), before)
    assert_same_results(before, result, (4, 8), (4, 8), stage=Stage.FLAT)
    assert "buffer_dim_align" not in repr(result.body)


def test_flatten_keeps_truth_values_as_bytes() -> None:
    mask = tir.decl_buffer((4, 8), "bool", "mask")
    before = function(
        [A, mask],
        loop(4, lambda i: loop(8, lambda j: store(mask, [i, j], A[i, j] > 0.0), name="j")),
    )
    result = apply(FlattenBuffer(), before)
    assert_same_results(before, result, (4, 8), (4, 8), stage=Stage.FLAT)
    assert "int8" in repr(result.body)


def test_flatten_handles_arrays_without_dimensions() -> None:
    x = tir.decl_buffer((), name="x")
    y = tir.decl_buffer((), name="y")
    before = function([x, y], store(y, [], x[()] + 1.0))
    result = apply(FlattenBuffer(), before)
    assert_same_results(before, result, (), (), stage=Stage.FLAT)


def test_flatten_follows_strides_and_offset() -> None:
    n = tir.Var("n")
    wide = tir.decl_buffer((4, 8), name="W", strides=[n, 1], elem_offset=tir.Var("start"))
    before = function([wide, B], loop(4, lambda i: store(B, [i, 0], wide[i, 3])))
    result = apply(FlattenBuffer(), before)
    assert_same_results(before, result, (4, 8), (4, 8), stage=Stage.FLAT)


def test_flatten_leaves_flat_functions_alone() -> None:
    a, b = tir.decl_buffer((8,), name="a"), tir.decl_buffer((8,), name="b")
    assert_unchanged(FlattenBuffer(), function([a, b], loop(8, lambda i: store(b, i, a[i]))))


def test_flatten_notes_the_extents_of_what_it_allocates_on_request() -> None:
    before = from_te(loop(4, lambda i: copied_through(T, i)))
    noted = apply(StorageFlatten(64, create_bound_attribute=True), before)
    bounds: list[Any] = []
    tir.stmt_functor.post_order_visit(
        noted.body,
        lambda s: (
            bounds.append([int(e) for e in s.value.args])
            if isinstance(s, AttrStmt) and s.attr_key == "buffer_bound"
            else None
        ),
    )
    assert bounds == [[1, 8]]
    assert_same_results(before, noted, (4, 8), (4, 8), stage=Stage.FLAT)
    assert "buffer_bound" not in repr(apply(StorageFlatten(64), before))


def test_flatten_prefetches_once_a_cache_line() -> None:
    wide = tir.decl_buffer((64,), name="wide")
    fetch = tir.Prefetch(wide, [Range(0, 64)])

    def calls_for(line: int) -> int:
        before = from_te(SeqStmt([fetch, store(wide, 0, 1.0)]), wide)
        found: list[Any] = []
        tir.stmt_functor.post_order_visit(
            apply(StorageFlatten(line), before).body,
            lambda s: found.append(int(s.extent)) if isinstance(s, tir.For) else None,
        )
        return found[0]

    assert (calls_for(64), calls_for(128)) == (4, 2)


def divided(separator: bool) -> tir.PrimFunc:
    """A stage between two others, its layout of tiles with a separator inside."""
    a = te.placeholder((4, 8), name="a")
    b = te.compute((4, 8), lambda i, j: a[i, j] + 1.0, name="b")
    c = te.compute((4, 8), lambda i, j: b[i, j] * 2.0, name="c")
    s = te.create_schedule(c.op)
    between = (te.AXIS_SEPARATOR,) if separator else ()
    for tensor in (a, b):
        s[tensor].transform_layout(lambda i, j: [i, j // 4, *between, j % 4])
    return tvm.lower(s, [a, c])["main"]


def test_flatten_keeps_a_dimension_for_each_part_between_axis_separators() -> None:
    func = divided(separator=True)
    shapes: list[Any] = []
    tir.stmt_functor.post_order_visit(
        func.body,
        lambda s: (
            shapes.append([int(e) for e in s.extents]) if isinstance(s, tir.Allocate) else None
        ),
    )
    assert shapes == [[8, 4]]
    assert_same_results(divided(separator=False), func, (4, 2, 4), (4, 8), stage=Stage.FLAT)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_memory_in_two_dimensions_is_rejected_by_processors_without_it(target: str) -> None:
    with pytest.raises(LoweringError, match="one dimension before code generation, got 2 indices"):
        tvm.build(divided(separator=True), target=target)
