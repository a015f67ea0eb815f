from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.tir.interp import interpret
from tvm.tir.stmt import Allocate, DeclBuffer, For, SeqStmt, Stmt
from tvm.tir.transform import StorageRewrite
from tvm.tir.verify import Stage

from .checks import apply, assert_same_results, assert_unchanged
from .programs import PARALLEL, SERIAL, function, loop, store

N = 1024
A = tir.decl_buffer((N,), name="A")
B = tir.decl_buffer((N,), name="B")

KERNELS = StorageRewrite(for_kernels=True)


def allocated(buffer: tir.Buffer, *body: Stmt) -> Stmt:
    return Allocate(
        buffer.data, buffer.dtype, buffer.shape, True, DeclBuffer(buffer, SeqStmt(body))
    )


def copy(target: tir.Buffer, source: tir.Buffer) -> Stmt:
    return loop(N, lambda k: store(target, k, source[k] + 1.0), name="k")


def allocations(func: tir.PrimFunc) -> list[Allocate]:
    found: list[Allocate] = []
    tir.stmt_functor.post_order_visit(
        func.body, lambda s: found.append(s) if isinstance(s, Allocate) else None
    )
    return found


def temporaries(count: int) -> list[tir.Buffer]:
    return [tir.decl_buffer((N,), name=f"t{i}") for i in range(count)]


def test_storage_is_shared_along_a_chain() -> None:
    def flip(target: tir.Buffer, source: tir.Buffer) -> Stmt:
        return loop(N, lambda k: store(target, k, source[N - 1 - k] + 1.0), name="k")

    t = temporaries(4)
    steps = [flip(t[0], A), flip(t[1], t[0]), flip(t[2], t[1]), flip(t[3], t[2]), flip(B, t[3])]
    body: Stmt = SeqStmt(steps)
    for buffer in t:
        body = allocated(buffer, body)
    before = function([A, B], body)
    result = apply(StorageRewrite(), before)
    assert len(allocations(result)) == 2
    assert_same_results(before, result, N, N, stage=Stage.FLAT)
    assert_unchanged(StorageRewrite(), result)


def test_storage_live_at_once_is_not_shared() -> None:
    t = temporaries(2)
    both = loop(N, lambda k: store(B, k, t[0][k] + t[1][k]), name="k")
    before = function([A, B], allocated(t[0], allocated(t[1], copy(t[0], A), copy(t[1], A), both)))
    assert_unchanged(StorageRewrite(), before)


def test_storage_moves_out_of_serial_loops() -> None:
    (t,) = temporaries(1)
    before = function([A, B], loop(2, lambda i: allocated(t, copy(t, A), copy(B, t))))
    result = apply(StorageRewrite(), before)
    assert isinstance(result.body, Allocate)
    assert_same_results(before, result, N, N, stage=Stage.FLAT)


def test_storage_stays_inside_parallel_loops() -> None:
    (t,) = temporaries(1)
    inner = loop(2, lambda j: allocated(t, copy(t, A), copy(B, t)), SERIAL, "j")
    before = function([A, B], loop(2, lambda i: inner, PARALLEL))
    result = apply(StorageRewrite(), before)
    assert isinstance(result.body, For) and isinstance(result.body.body, Allocate)
    assert_same_results(before, result, N, N, stage=Stage.FLAT)


def test_storage_used_across_iterations_is_not_shared_inside_the_loop() -> None:
    t = temporaries(2)
    inside = loop(
        2, lambda i: SeqStmt([copy(B, t[0]), allocated(t[1], copy(t[1], A), copy(B, t[1]))])
    )
    before = function([A, B], allocated(t[0], copy(t[0], A), inside))
    result = apply(StorageRewrite(), before)
    assert len(allocations(result)) == 2
    assert_same_results(before, result, N, N, stage=Stage.FLAT)


def two_types(dtype: str) -> tir.PrimFunc:
    t = temporaries(1)[0]
    u = tir.decl_buffer((N,), dtype, "u")
    fill = loop(N, lambda k: store(u, k, (k % 64).astype(dtype)), name="k")
    take = loop(N, lambda k: store(B, k, B[k] + u[k].astype("float32")), name="k")
    return function([A, B], allocated(t, allocated(u, copy(t, A), copy(B, t), fill, take)))


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8"])
def test_storage_is_shared_between_types(dtype: str) -> None:
    before = two_types(dtype)
    assert count_after(before) == 1
    assert_unchanged(StorageRewrite(for_kernels=True), before)
    exact = before.with_attr("target", tvm.target.Target("vulkan"))
    assert len(allocations(apply(StorageRewrite(), exact))) == 2


def test_storage_is_not_shared_with_larger_types() -> None:
    assert count_after(two_types("float64")) == 2


def test_storage_that_nothing_uses_is_not_allocated() -> None:
    t, u = temporaries(2)
    before = function([A, B], allocated(t, allocated(u, copy(t, A), copy(B, t))))
    result = apply(StorageRewrite(), before)
    assert [alloc.buffer_var for alloc in allocations(result)] == [t.data]
    assert_same_results(before, result, N, N, stage=Stage.FLAT)


def test_storage_of_special_units_is_one_piece() -> None:
    scope = "local.unit"
    t = [tir.decl_buffer((N,), kind, f"t{i}", scope=scope) for i, kind in enumerate(KINDS)]
    steps: list[Stmt] = [loop(N, lambda k, b=b: store(b, k, (k % 64).astype(b.dtype))) for b in t]
    total = loop(N, lambda k: store(B, k, sum([b[k].astype("float32") for b in t], A[k])))
    body: Stmt = SeqStmt([*steps, total])
    for buffer in t:
        body = allocated(buffer, body)
    before = function([A, B], body)
    result = apply(StorageRewrite(), before)
    (alloc,) = allocations(result)
    assert alloc.dtype == t[0].dtype and int(alloc.extents[0]) == N + N * 2 + N // 2
    assert_same_results(before, result, N, N, stage=Stage.FLAT)

    @tvm.register_func(f"tvm.info.mem.{scope}", override=True)
    def describe() -> Any:
        return tvm.ir.make_node(
            "MemoryInfo", unit_bits=8, max_simd_bits=256, max_num_bits=N, head_address=None
        )

    try:
        with pytest.raises(
            tvm.TVMError, match=f"requires .* bits of memory {scope}, which has 1024"
        ):
            apply(StorageRewrite(), before)
    finally:
        tvm._ffi.registry.remove_global_func(f"tvm.info.mem.{scope}")


KINDS = ("float32", "float64", "int16")


def test_storage_is_taken_over_within_one_statement() -> None:
    t, u = temporaries(2)
    steps = [(t, A), (u, t), (B, u)]
    body = loop(
        N,
        lambda i: allocated(t, allocated(u, *[store(a, i, b[i] + 1.0) for a, b in steps])),
    )
    assert count_after(function([A, B], body)) == 1


def test_pointers_to_whole_vectors_change_their_type() -> None:
    (t,) = temporaries(1)
    fill = loop(N // 8, lambda i: store(t, tir.Ramp(i * 8, 1, 8), A[tir.Ramp(i * 8, 1, 8)]))
    take = loop(N // 8, lambda i: store(B, i * 8, t[i * 8 + 3]))
    before = function([A, B], allocated(t, fill, take))
    result = apply(StorageRewrite(), before)
    assert [alloc.dtype for alloc in allocations(result)] == ["float32x8"]
    assert_same_results(before, result, N, N, stage=Stage.FLAT)


def test_small_storage_is_left_in_place() -> None:
    small = tir.decl_buffer((4,), name="small")
    body = allocated(small, store(small, 0, A[0]), store(B, 0, small[0]))
    assert_unchanged(StorageRewrite(1024, True), function([A, B], loop(2, lambda i: body)))


def in_turn(consumer: Stmt) -> tir.PrimFunc:
    """t0 from A, the consumer from t0 to t1, B from t1."""
    t = IN_TURN
    steps = [copy(t[0], A), consumer, copy(B, t[1])]
    return function([A, B], allocated(t[0], allocated(t[1], *steps)))


IN_TURN = temporaries(2)


def count_after(before: tir.PrimFunc) -> int:
    result = apply(StorageRewrite(), before)
    assert_same_results(before, result, N, N, stage=Stage.FLAT)
    return len(allocations(result))


def test_storage_is_taken_over_element_by_element() -> None:
    s, t = IN_TURN
    twice = loop(N, lambda k: store(t, k, s[k] * s[k]), name="k")
    assert count_after(in_turn(twice)) == 1


def test_storage_is_taken_over_by_vectors() -> None:
    s, t = IN_TURN
    ramp = loop(N // 8, lambda k: store(t, tir.Ramp(k * 8, 1, 8), s[tir.Ramp(k * 8, 1, 8)] + 1.0))
    assert count_after(in_turn(ramp)) == 1


def test_storage_is_taken_over_by_threads_each_with_its_part() -> None:
    s, t = IN_TURN
    rows = loop(32, lambda i: loop(32, lambda k: store(t, i * 32 + k, s[i * 32 + k]), name="k"))
    assert count_after(in_turn(rows.replace(kind=PARALLEL))) == 1


def test_storage_is_taken_over_under_a_pragma_of_the_loop() -> None:
    s, t = IN_TURN
    twice = loop(N, lambda k: store(t, k, s[k] * s[k]), name="k")
    axis = tir.IterVar(tvm.ir.Range(0, N), twice.loop_var, tir.IterVar.DataPar)
    marked = tir.AttrStmt(axis, "pragma_auto_unroll_max_step", 8, twice)
    outer = loop(1, lambda i: marked, name="i")
    assert count_after(in_turn(outer)) == 1


def test_storage_read_elsewhere_is_not_taken_over() -> None:
    s, t = IN_TURN
    flipped = loop(N, lambda k: store(t, k, s[k] + s[N - 1 - k]), name="k")
    assert count_after(in_turn(flipped)) == 2
    turned = loop(N, lambda k: store(t, k, s[k] + s[tir.indexmod(k + 1, N)]), name="k")
    assert count_after(in_turn(turned)) == 2


def test_storage_written_twice_is_not_taken_over() -> None:
    s, t = IN_TURN
    again = loop(2, lambda i: loop(N, lambda k: store(t, k, s[k] * 2.0), name="k"))
    assert count_after(in_turn(again)) == 2
    summed = loop(N, lambda k: store(t, k, s[k] + t[tir.indexdiv(k, 2)]), name="k")
    assert len(allocations(apply(StorageRewrite(), in_turn(summed)))) == 2


def test_storage_read_by_another_store_is_not_taken_over() -> None:
    s, t = IN_TURN
    first = tir.decl_buffer((N,), name="first")
    both = loop(N, lambda k: SeqStmt([store(t, k, s[k]), store(first, k, s[0])]), name="k")
    use = loop(N, lambda k: store(B, k, t[k] + first[k]), name="k")
    body = allocated(s, allocated(t, allocated(first, copy(s, A), both, use)))
    assert count_after(function([A, B], body)) == 3


def test_storage_needed_later_is_not_taken_over() -> None:
    s, t = IN_TURN
    both = loop(N, lambda k: store(B, k, t[k] + s[k]), name="k")
    body = allocated(s, allocated(t, copy(s, A), copy(t, s), both))
    assert count_after(function([A, B], body)) == 2


def chain_of(count: int, size: Any) -> tir.PrimFunc:
    def turned(tensor: te.Tensor) -> te.Tensor:
        return te.compute((size,), lambda i: tensor[size - 1 - i] + 1, name="B")

    tensor = first = te.placeholder((size,), name="A")
    for _ in range(count):
        tensor = turned(tensor)
    return tvm.lower(te.create_schedule(tensor.op), [first, tensor])["main"]


def test_stages_of_one_variable_size_share_memory() -> None:
    n = te.size_var("n")
    func = chain_of(6, n)
    assert len(allocations(func)) == 2
    data, out = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    interpret(func, data, out)
    np.testing.assert_array_equal(out, data + 6)


def test_variable_sizes_inside_of_branches_and_loops_stay() -> None:
    n = tir.Var("n")
    a = tir.decl_buffer((64,), name="A")

    def filled(name: str, extent: Any) -> tir.Stmt:
        memory = tir.decl_buffer((extent,), name=name)
        body = tir.SeqStmt([store(memory, 0, 1.0), store(a, 0, memory[0])])
        return tir.Allocate(memory.data, "float32", [extent], True, body)

    both = tir.SeqStmt([filled("X", n), filled("Y", n)])
    assert len(allocations(apply(StorageRewrite(), function([a, n], both)))) == 1
    assert_unchanged(KERNELS, function([a, n], tir.IfThenElse(n > 0, both)))
    i = tir.Var("i")
    loop_around = tir.For(i, 0, n, tir.ForKind.SERIAL, filled("X", n - i))
    assert_unchanged(StorageRewrite(), function([a, n], loop_around))
    other = tir.SeqStmt([filled("X", n), filled("Y", n + 1)])
    assert len(allocations(apply(StorageRewrite(), function([a, n], other)))) == 2
