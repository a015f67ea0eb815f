from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, topi
from tvm.script import tir as T
from tvm.tir.expr import BufferLoad, Ramp, Shuffle
from tvm.tir.stmt_functor import post_order_visit
from tvm.tir.transform import TransposeTiles

from .checks import assert_transforms, assert_unchanged


def test_lines_of_four_are_exchanged_by_eight_shuffles() -> None:
    @T.prim_func
    def program(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"tir.noalias": True})
        for r in range(4):
            B[r * 7 : r * 7 + 4] = A[T.Ramp(r + 1, 9, 4)] + T.Broadcast(T.Cast("float32", r), 4)

    before = program

    @T.prim_func
    def program(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"tir.noalias": True})
        a: T.float32x4 = A[1:5]
        b: T.float32x4 = A[10:14]
        c: T.float32x4 = A[19:23]
        d: T.float32x4 = A[28:32]
        ab: T.float32x4 = T.Shuffle([a, b], [0, 4, 1, 5])
        cd: T.float32x4 = T.Shuffle([c, d], [0, 4, 1, 5])
        ab_high: T.float32x4 = T.Shuffle([a, b], [2, 6, 3, 7])
        cd_high: T.float32x4 = T.Shuffle([c, d], [2, 6, 3, 7])
        first: T.float32x4 = T.Shuffle([ab, cd], [0, 1, 4, 5])
        second: T.float32x4 = T.Shuffle([ab, cd], [2, 3, 6, 7])
        third: T.float32x4 = T.Shuffle([ab_high, cd_high], [0, 1, 4, 5])
        fourth: T.float32x4 = T.Shuffle([ab_high, cd_high], [2, 3, 6, 7])
        B[0:4] = first + T.Broadcast(T.float32(0), 4)
        B[7:11] = second + T.Broadcast(T.float32(1), 4)
        B[14:18] = third + T.Broadcast(T.float32(2), 4)
        B[21:25] = fourth + T.Broadcast(T.float32(3), 4)

    simple = tvm.transform.Sequential([TransposeTiles(), tvm.tir.transform.Simplify()])
    assert_transforms(simple, before, program)


def test_turns_that_read_other_lines_stay_a_loop() -> None:
    @T.prim_func
    def program(A: T.Buffer((99,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"tir.noalias": True})
        for r in range(4):
            B[r * 4 : r * 4 + 4] = A[T.Ramp(r * 2, 9, 4)]
        for r in range(6):
            B[r * 4 : r * 4 + 4] = A[T.Ramp(r, 9, 4)]

    assert_unchanged(TransposeTiles(), program)


def test_what_is_stored_where_it_is_read_stays_a_loop() -> None:
    @T.prim_func
    def program(A: T.Buffer((64,), "float32")):
        T.func_attr({"tir.noalias": True})
        for r in range(4):
            A[r * 4 : r * 4 + 4] = A[T.Ramp(r, 4, 4)]

    assert_unchanged(TransposeTiles(), program)


def test_arguments_that_may_overlap_stay_a_loop() -> None:
    @T.prim_func
    def program(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for r in range(4):
            B[r * 4 : r * 4 + 4] = A[T.Ramp(r, 4, 4)]

    assert_unchanged(TransposeTiles(), program)


def test_lines_of_hidden_lanes_are_not_read() -> None:
    @T.prim_func
    def program(A: T.Buffer((20,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"tir.noalias": True})
        for r in range(4):
            B.vstore(
                [T.Ramp(r * 3, 1, 4)],
                A.vload([T.Ramp(r, 8, 4)], predicate=T.Ramp(0, 1, 4) < T.Broadcast(3, 4)),
                predicate=T.Ramp(0, 1, 4) < T.Broadcast(3, 4),
            )

    func = TransposeTiles()(tvm.IRModule({"main": program}))["main"]
    starts: list[int] = []

    def visit(node: object) -> None:
        if isinstance(node, BufferLoad):
            starts.append(int(tvm.arith.Analyzer().simplify(node.indices[0].base)))

    post_order_visit(func.body, visit)
    assert starts == [0, 8, 16, 0]


def test_text_in_c_keeps_its_loops() -> None:
    @T.prim_func
    def program(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"tir.noalias": True, "target": T.target("c")})
        for r in range(4):
            B[r * 4 : r * 4 + 4] = A[T.Ramp(r, 4, 4)]

    assert_unchanged(TransposeTiles(), program)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_tiles_of_every_width_hold_the_columns(lanes: int) -> None:
    a = te.placeholder((lanes, 16), name="a")
    out = te.compute((16, lanes), lambda i, j: a[j, i] * 2.0 + a[0, i], name="out")
    s = te.create_schedule(out.op)
    s[out].vectorize(out.op.axis[1])
    func = TransposeTiles()(tvm.lower(s, [a, out]))["main"]
    strides, shuffles = [], []

    def visit(node: object) -> None:
        if isinstance(node, BufferLoad) and isinstance(node.indices[-1], Ramp):
            strides.append(int(node.indices[-1].stride))
        if isinstance(node, Shuffle):
            shuffles.append(node)

    post_order_visit(func.body, visit)
    assert set(strides) == {1} and len(shuffles) == 16 * {4: 2, 8: 3, 16: 4}[lanes]
    given = np.random.default_rng(0).random((lanes, 16), dtype="float32")
    found = tvm.nd.empty((16, lanes))
    tvm.build(s, [a, out], "llvm")(tvm.nd.array(given), found)
    np.testing.assert_allclose(found.numpy(), given.T * 2 + given[0][:, None], rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "source", "target"),
    [
        ((1, 2, 28, 28, 16), "NCHW16c", "NCHW"),
        ((2, 32, 14, 14), "NCHW", "NCHW16c"),
        ((1, 3, 7, 9, 16), "NCHW16c", "NCHW"),
        ((1, 24, 20, 36), "NCHW", "NCHW8c"),
        ((2, 12, 20, 33), "NCHW", "NHWC"),
        ((2, 12, 24, 32), "NHWC", "NCHW"),
        ((1, 4, 8, 8, 8), "NCHW8c", "NCHW4c"),
    ],
)
def test_layouts_are_changed_in_tiles(shape: tuple[int, ...], source: str, target: str) -> None:
    data = te.placeholder(shape, name="data")
    out = topi.nn.relu(topi.layout_transform(data, source, target))
    with tvm.target.Target("llvm"):
        func = tvm.build(topi.x86.schedule_injective(out), [data, out])
    given = np.random.default_rng(0).standard_normal(shape).astype("float32")
    with tvm.target.Target("llvm -opt-level=0"):
        plain = tvm.build(te.create_schedule(out.op), [data, out])
    found, expected = [tvm.nd.empty([int(d) for d in out.shape]) for _ in range(2)]
    func(tvm.nd.array(given), found)
    plain(tvm.nd.array(given), expected)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
