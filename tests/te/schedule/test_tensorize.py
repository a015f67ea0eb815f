from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError, ScheduleError, TVMError

from ..outline import expect, lowered
from ..programs import matmul, run


def add_intrin(size: Any = 4, **buffer: Any) -> te.tensor_intrin.TensorIntrin:
    """z = x + y, of vectors, as a loop."""
    x, y = te.placeholder((size,), name="x"), te.placeholder((size,), name="y")
    z = te.compute((size,), lambda i: x[i] + y[i], name="z")

    def work(ins: list[Any], outs: list[Any]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        first, second, out = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        with ib.for_range(0, outs[0].shape[0], name="e") as e:
            out[e] = first[e] + second[e]
        return ib.get()

    params = {"offset_factor": 1, **buffer}
    return te.decl_tensor_intrin(z.op, work, name="vadd", default_buffer_params=params)


def gemv_intrin(rows: int, depth: int, parts: str = "body reset update") -> Any:
    """z[i] = sum over k of w[i, k] * x[k]."""
    w, x = te.placeholder((rows, depth), name="w"), te.placeholder((depth,), name="x")
    k = te.reduce_axis((0, depth), name="k")
    z = te.compute((rows,), lambda i: te.sum(w[i, k] * x[k], axis=k), name="z")
    stride, step = te.var("stride"), te.var("step")
    buffer_w = tir.decl_buffer(w.shape, w.dtype, "w", strides=[stride, 1], offset_factor=1)
    buffer_x = tir.decl_buffer(x.shape, x.dtype, "x", strides=[step], offset_factor=1)

    def work(ins: list[Any], outs: list[Any]) -> Any:
        def statement(clears: bool, adds: bool) -> tir.Stmt:
            ib = tir.ir_builder.create()
            with ib.for_range(0, rows, name="row") as row:
                if clears:
                    ib.emit(outs[0].vstore([row], tir.const(0, "float32")))
                if adds:
                    with ib.for_range(0, depth, name="col") as col:
                        product = ins[0].vload([row, col]) * ins[1].vload([col])
                        ib.emit(outs[0].vstore([row], outs[0].vload([row]) + product))
            return ib.get()

        every = {
            "body": statement(True, True),
            "reset": statement(True, False),
            "update": statement(False, True),
        }
        return tuple([every[p] if p in parts.split() else None for p in every])

    params = {"offset_factor": 1}
    return te.decl_tensor_intrin(
        z.op, work, "gemv", {w: buffer_w, x: buffer_x}, default_buffer_params=params
    )


def vector_sum(size: Any = 16) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    a, b = te.placeholder((size,), name="A"), te.placeholder((size,), name="B")
    return a, b, te.compute((size,), lambda i: a[i] + b[i], name="C")


def test_tensorize_replaces_a_loop() -> None:
    a, b, c = vector_sum()
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].tensorize(inner, add_intrin())
    assert lowered(s, [a, b, c]) == expect("""
        for i.outer in serial(4)
          for e in serial(4)
            store C
    """)
    x, y = np.arange(16, dtype="float32"), np.ones(16, "float32")
    np.testing.assert_array_equal(run(s, [a, b, c], x, y)[0], x + 1)
    built, out = tvm.build(s, [a, b, c], "llvm"), tvm.nd.empty((16,))
    built(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_array_equal(out.numpy(), x + 1)


def test_symbolic_sizes_of_an_intrinsic_are_matched() -> None:
    a, b, c = vector_sum(12)
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[0], factor=6)
    s[c].tensorize(inner, add_intrin(te.var("n")))
    x, y = np.arange(12, dtype="float32"), np.ones(12, "float32")
    np.testing.assert_array_equal(run(s, [a, b, c], x, y)[0], x + 1)


@pytest.mark.parametrize("reads", [True, False])
def test_tensorize_works_on_what_is_kept_inside(reads: bool) -> None:
    a, b, c = vector_sum(12)
    d = te.compute((12,), lambda i: c[i] * 2, name="D")
    s = te.create_schedule(d.op)
    outer, _ = s[d].split(d.op.axis[0], factor=4)
    s[c].compute_at(s[d], outer)
    if reads:
        for source in (a, b):
            s[s.cache_read(source, "global", [c])].compute_at(s[d], outer)
    s[c].tensorize(s[c].op.axis[0], add_intrin())
    x, y = np.arange(12, dtype="float32"), np.ones(12, "float32")
    np.testing.assert_array_equal(run(s, [a, b, d], x, y)[0], (x + 1) * 2)


def test_axes_beside_those_of_the_intrinsic_stay_outside() -> None:
    a, b, c = matmul(8, 6, 12)
    s = te.create_schedule(c.op)
    s[c].tensorize(c.op.axis[0], gemv_intrin(6, 12))
    with pytest.raises(
        ScheduleError, match="one iteration of i, which is none of the axes of gemv"
    ):
        lowered(s, [a, b, c])


def transposed(rows: int, cols: int, depth: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """C[j, i] = sum over k of W[i, k] * X[j, k]."""
    w, x = te.placeholder((rows, depth), name="W"), te.placeholder((cols, depth), name="X")
    k = te.reduce_axis((0, depth), name="k")
    out = te.compute((cols, rows), lambda j, i: te.sum(w[i, k] * x[j, k], axis=k), name="C")
    return w, x, out


def check_transposed(s: te.Schedule, tensors: tuple[te.Tensor, te.Tensor, te.Tensor]) -> None:
    source = np.random.default_rng(0)
    w, x = [source.random([int(n) for n in t.shape], "float32") for t in tensors[:2]]
    np.testing.assert_allclose(run(s, list(tensors), w, x)[0], x @ w.T, rtol=1e-5)


@pytest.mark.parametrize("order", ["j io ko", "ko j io", "j ko io", "io ko j"])
@pytest.mark.parametrize("parts", ["body reset update", "reset update", "body update"])
def test_reductions_are_cleared_once(parts: str, order: str) -> None:
    w, x, c = transposed(8, 3, 12)
    s = te.create_schedule(c.op)
    (j, i), (k,) = c.op.axis, c.op.reduce_axis
    io, ii = s[c].split(i, factor=4)
    ko, ki = s[c].split(k, factor=3)
    loops = {"j": j, "io": io, "ko": ko}
    s[c].reorder(*[loops[name] for name in order.split()], ii, ki)
    s[c].tensorize(ii, gemv_intrin(4, 3, parts))
    source = np.random.default_rng(0)
    p, q = source.random((8, 12), "float32"), source.random((3, 12), "float32")
    np.testing.assert_allclose(run(s, [w, x, c], p, q)[0], q @ p.T, rtol=1e-5)
    built, out = tvm.build(s, [w, x, c], "llvm"), tvm.nd.empty((3, 8))
    built(tvm.nd.array(p), tvm.nd.array(q), out)
    np.testing.assert_allclose(out.numpy(), q @ p.T, rtol=1e-5)


def test_the_whole_reduction_needs_the_body_only() -> None:
    w, x, c = transposed(8, 3, 12)
    s = te.create_schedule(c.op)
    _, ii = s[c].split(c.op.axis[1], factor=4)
    s[c].tensorize(ii, gemv_intrin(4, 12, "body"))
    check_transposed(s, (w, x, c))


def test_tails_outside_the_tensorized_loop_are_guarded() -> None:
    w, x, c = transposed(8, 5, 12)
    s = te.create_schedule(c.op)
    j, i = c.op.axis
    s[c].split(j, factor=2)
    _, ii = s[c].split(i, factor=4)
    s[c].tensorize(ii, gemv_intrin(4, 12, "body"))
    check_transposed(s, (w, x, c))


def test_padded_strides_reach_the_intrinsic() -> None:
    w, x, c = transposed(8, 3, 12)
    s = te.create_schedule(c.op)
    copy = s.cache_read(w, "global", [c])
    s[copy].storage_align(s[copy].op.axis[0], 16, 1)
    _, ii = s[c].split(c.op.axis[1], factor=4)
    s[c].tensorize(ii, gemv_intrin(4, 12, "body"))
    source = np.random.default_rng(0)
    p, q = source.random((8, 12), "float32"), source.random((3, 12), "float32")
    built, out = tvm.build(s, [w, x, c], "llvm"), tvm.nd.empty((3, 8))
    built(tvm.nd.array(p), tvm.nd.array(q), out)
    np.testing.assert_allclose(out.numpy(), q @ p.T, rtol=1e-5)


def test_another_body_is_rejected_with_both() -> None:
    a, b = te.placeholder((16,), name="A"), te.placeholder((16,), name="B")
    c = te.compute((16,), lambda i: a[i] - b[i], name="C")
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].tensorize(inner, add_intrin())
    with pytest.raises(ScheduleError) as error:
        lowered(s, [a, b, c])
    text = str(error.value)
    assert "tensorize requires a body that matches that of intrinsic vadd" in text
    assert "expected: x[i] + y[i]" in text and "found:    x[i] - y[i]" in text


def test_misuse_is_rejected() -> None:
    a, b, c = vector_sum()

    def schedule(factor: int, intrin: Any) -> te.Schedule:
        s = te.create_schedule(c.op)
        _, inner = s[c].split(c.op.axis[0], factor=factor)
        s[c].tensorize(inner, intrin)
        return s

    with pytest.raises(ScheduleError, match="requires extent 4 of axis i for vadd, got 8"):
        lowered(schedule(8, add_intrin()), [a, b, c])
    with pytest.raises(ScheduleError, match="tensorize requires regions that are complete"):
        lowered(schedule(5, add_intrin(5)), [a, b, c])
    with pytest.raises(LoweringError, match="buffer . requires offset 0, got i_outer"):
        lowered(schedule(4, add_intrin(offset_factor=0)), [a, b, c])
    with pytest.raises(LoweringError, match="requires an offset that is a multiple of 16"):
        lowered(schedule(4, add_intrin(offset_factor=16)), [a, b, c])
    with pytest.raises(LoweringError, match="buffer . requires scope local, got global"):
        lowered(schedule(4, add_intrin(scope="local")), [a, b, c])
    with pytest.raises(ScheduleError, match="tensorize requires a tensor intrinsic, got"):
        schedule(4, 3)
    with pytest.raises(ScheduleError, match="tensorize requires 1 reduction axes"):
        s = te.create_schedule(c.op)
        s[c].tensorize(c.op.axis[0], gemv_intrin(16, 4))
        lowered(s, [a, b, c])


def test_loops_that_the_intrinsic_replaces_hold_nothing_else() -> None:
    a, b, c = vector_sum()
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[0], factor=4)
    s[s.cache_read(a, "global", [c])].compute_at(s[c], inner)
    s[c].tensorize(inner, add_intrin())
    with pytest.raises(ScheduleError, match="got i.inner, inside which stages run"):
        lowered(s, [a, b, c])


def test_a_reduction_without_update_is_rejected() -> None:
    w, x, c = transposed(8, 3, 12)
    s = te.create_schedule(c.op)
    (j, i), (k,) = c.op.axis, c.op.reduce_axis
    ko, ki = s[c].split(k, factor=3)
    s[c].reorder(j, ko, i, ki)
    s[c].tensorize(i, gemv_intrin(8, 3, "body"))
    with pytest.raises(ScheduleError, match="tensorize requires an update of gemv"):
        lowered(s, [w, x, c])


def test_declarations_are_checked() -> None:
    a, b, c = vector_sum()
    d = te.compute((16,), lambda i: c[i] + 1, name="D")
    with pytest.raises(ValueError, match="Do not yet support composition op"):
        te.decl_tensor_intrin(d.op, lambda ins, outs: tir.Evaluate(0))
    with pytest.raises(TypeError, match="expect Operation"):
        te.decl_tensor_intrin(a.op, lambda ins, outs: tir.Evaluate(0))
    with pytest.raises(TVMError, match="requires a statement, or body, reset and update"):
        te.decl_tensor_intrin(c.op, lambda ins, outs: "no")


def scaled_intrin() -> te.tensor_intrin.TensorIntrin:
    """z = x * factor, of four elements."""
    x, factor = te.placeholder((4,), name="x"), te.var("factor", "float32")
    z = te.compute((4,), lambda i: x[i] * factor, name="z")

    def work(ins: list[Any], outs: list[Any], scalars: list[Any]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        with ib.for_range(0, 4, name="e") as e:
            ib.emit(outs[0].vstore([e], ins[0].vload([e]) * scalars[0]))
        return ib.get()

    params = {"offset_factor": 1}
    return te.decl_tensor_intrin(z.op, work, "scale", None, factor, params)


def test_a_compute_may_call_an_intrinsic_with_scalars() -> None:
    a = te.placeholder((6, 4), name="A")
    scale = scaled_intrin()
    before = te.compute((6, 4), lambda i, j: a[i, j] + 1, name="before")
    b = te.compute((6, 4), lambda i: scale(before[5 - i, 0:4], 3.0), name="B")
    assert isinstance(b.op, te.tensor.TensorComputeOp)
    c = te.compute((6, 4), lambda i, j: b[i, j] - 1, name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[before].compute_at(s[b], b.op.axis[0])
    x = np.random.default_rng(0).random((6, 4), "float32")
    np.testing.assert_allclose(run(s, [a, c], x)[0], (x[::-1] + 1) * 3 - 1, rtol=1e-6)
    with pytest.raises(TVMError, match="requires 1 slices of tensors and 1 scalars, got 1 and 0"):
        te.compute((6, 4), lambda i: scale(before[i, 0:4]))


def test_a_compute_may_reduce_by_an_intrinsic() -> None:
    w, x = te.placeholder((8, 12), name="W"), te.placeholder((12,), name="X")
    gemv = gemv_intrin(8, 3)
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute(
        (1, 8),
        lambda _: gemv(w[0:8, k * 3 : k * 3 + 3], x[k * 3 : k * 3 + 3], reduce_axis=k),
        name="C",
    )
    p, q = np.random.default_rng(0).random((8, 12), "float32"), np.ones(12, "float32")
    np.testing.assert_allclose(
        run(te.create_schedule(c.op), [w, x, c], p, q)[0][0], p @ q, rtol=1e-5
    )


def test_single_rows_of_a_part_that_is_not_whole_are_cleared_and_updated() -> None:
    w, x = te.placeholder((5, 6), name="W"), te.placeholder((6,), name="X")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((5,), lambda i: te.sum(w[i, k] * x[k], axis=k), name="C")
    s = te.create_schedule(c.op)
    block, row = s[c].split(c.op.axis[0], factor=4)
    row, one = s[c].split(row, factor=1)
    ko, ki = s[c].split(k, factor=3)
    s[c].reorder(block, ko, row, one, ki)
    s[c].tensorize(one, gemv_intrin(1, 3))
    a, b = np.random.default_rng(0).random((5, 6), "float32"), np.ones(6, "float32")
    np.testing.assert_allclose(run(s, [w, x, c], a, b)[0], a.sum(1), rtol=1e-6)


def test_calls_of_an_intrinsic_have_a_write_cache() -> None:
    a = te.placeholder((6, 4), name="A")
    scale = scaled_intrin()
    b = te.compute((6, 4), lambda i: scale(a[5 - i, 0:4], 3.0), name="B")
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=2)
    cache = s.cache_write(b, "global")
    assert isinstance(cache.op, te.tensor.TensorComputeOp) and cache.op.schedulable_ndim == 2
    s[cache].compute_at(s[b], s[b].op.axis[0])
    x = np.random.default_rng(0).random((6, 4), "float32")
    np.testing.assert_allclose(run(s, [a, b], x)[0], x[::-1] * 3, rtol=1e-6)
    uneven = te.create_schedule(b.op)
    uneven[b].split(b.op.axis[0], factor=4)
    with pytest.raises(ScheduleError, match="requires splits of B that divide"):
        uneven.cache_write(b, "local")


def test_tensorize_leaves_calls_of_an_intrinsic_as_they_are() -> None:
    a = te.placeholder((6, 4), name="A")
    b = te.compute((6, 4), lambda i: scaled_intrin()(a[i, 0:4], 3.0), name="B")
    s = te.create_schedule(b.op)
    s[b].tensorize(b.op.axis[0], add_intrin(4))
    x = np.random.default_rng(0).random((6, 4), "float32")
    np.testing.assert_allclose(run(s, [a, b], x)[0], x * 3, rtol=1e-6)


def test_regions_and_bodies_are_found_by_their_global_names() -> None:
    a, b, c = vector_sum()
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    intrin = add_intrin()
    s[c].tensorize(inner, intrin)
    s = s.normalize()
    infer = tvm.get_global_func("test.op.InferTensorizeRegion")
    written, read = infer(s[c], te.schedule.InferBound(s))
    region = tvm.ir.Range.from_min_extent(outer.var * 4, 4)
    tvm.ir.assert_structural_equal(written[c.op.axis[0]], region)
    assert [tensor.name for tensor in read] == ["A", "B"]
    tvm.ir.assert_structural_equal(read[b][0], region)
    match = tvm.get_global_func("test.op.MatchTensorizeBody")
    (body,) = match(s[c], written, read, intrin)
    tvm.ir.assert_structural_equal(body, intrin.op.body[0])
    plain = te.create_schedule(c.op)
    with pytest.raises(ScheduleError, match="a stage with a tensorized loop, got C"):
        infer(plain[c], te.schedule.InferBound(plain))


def test_an_intrinsic_may_know_of_loops_around_it() -> None:
    # of the last block some elements are beyond the end: the intrinsic is told which block it is
    a, b, c = vector_sum(10)
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], factor=4)
    cache = s.cache_write(c, "global")
    outer, inner = cache.op.axis
    x, y = te.placeholder((4,), name="x"), te.placeholder((4,), name="y")
    z = te.compute(
        (4,),
        lambda i: tir.Select(outer.var * 4 + i < 10, x[i] + y[i], tir.const(0, "float32")),
        name="z",
    )

    def add(ins: Any, outs: Any) -> Any:
        body = tir.ir_builder.create()
        with body.for_range(0, 4) as i:
            is_inside = outer.var * 4 + i < 10
            with body.if_scope(is_inside):
                body.emit(outs[0].vstore(i, ins[0].vload(i) + ins[1].vload(i)))
        return body.get()

    s[cache].tensorize(
        inner, te.decl_tensor_intrin(z.op, add, default_buffer_params={"offset_factor": 1})
    )
    one, two = np.arange(10, dtype="float32"), np.ones(10, "float32")
    np.testing.assert_array_equal(run(s, [a, b, c], one, two)[0], one + 1)
