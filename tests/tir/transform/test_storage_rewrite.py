from __future__ import annotations

from tvm import tir
from tvm.tir.stmt import Allocate, DeclBuffer, For, SeqStmt, Stmt
from tvm.tir.transform import StorageRewrite
from tvm.tir.verify import Stage

from .programs import (
    PARALLEL,
    SERIAL,
    apply,
    assert_same_results,
    assert_unchanged,
    function,
    loop,
    store,
)

N = 1024
A = tir.decl_buffer((N,), name="A")
B = tir.decl_buffer((N,), name="B")


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
    t = temporaries(4)
    steps = [copy(t[0], A), copy(t[1], t[0]), copy(t[2], t[1]), copy(t[3], t[2]), copy(B, t[3])]
    body: Stmt = SeqStmt(steps)
    for buffer in t:
        body = allocated(buffer, body)
    before = function([A, B], body)
    result = apply(StorageRewrite(), before)
    assert len(allocations(result)) == 2
    assert_same_results(before, result, N, N, stage=Stage.FLAT)
    assert_unchanged(StorageRewrite(), result)


def test_storage_live_at_once_is_kept_apart() -> None:
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


def test_storage_of_other_types_is_not_shared() -> None:
    t = temporaries(1)[0]
    u = tir.decl_buffer((N,), "int32", "u")
    fill = loop(N, lambda k: store(u, k, k), name="k")
    take = loop(N, lambda k: store(B, k, u[k].astype("float32")), name="k")
    before = function([A, B], allocated(t, allocated(u, copy(t, A), copy(B, t), fill, take)))
    assert_unchanged(StorageRewrite(), before)


def test_small_storage_is_left_in_place() -> None:
    small = tir.decl_buffer((4,), name="small")
    body = allocated(small, store(small, 0, A[0]), store(B, 0, small[0]))
    assert_unchanged(StorageRewrite(), function([A, B], loop(2, lambda i: body)))
