"""What classic programs look at: attributes of schedules, of their parts, and of what passes leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import TVMError


def test_rfactor_shows_its_axes() -> None:
    n = te.size_var("n")
    k1, k2 = te.reduce_axis((0, n), name="k1"), te.reduce_axis((0, n), name="k2")
    A = te.placeholder((n, n, n), name="A")
    B = te.compute((n,), lambda i: te.sum(A[i, k1, k2], axis=[k1, k2]))
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(k1, factor=4)
    s[B].split(B.op.axis[0], factor=8)
    BF = s.rfactor(B, ki, 1)
    assert BF.shape[0] is n and BF.shape[1].value == 4
    assert BF.op.body[0].axis[0] is k2 and BF.op.body[0].axis[1].var is ko.var
    assert s[B].op.body[0].axis[0].dom.extent.value == 4


def test_pragmas_and_annotations_are_listed() -> None:
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j])
    s = te.create_schedule(B.op)
    xo, _, xi, yi = s[B].tile(*B.op.axis, x_factor=10, y_factor=5)
    s[B].vectorize(yi)
    s[B].unroll(xi)
    s[B].pragma(xo, "pragma1")
    s[B].pragma(xo, "pragma2", 2)
    attrs = s[B].iter_var_attrs
    assert attrs[xi].iter_type == tir.IterVar.Unrolled
    assert attrs[yi].iter_type == tir.IterVar.Vectorized
    assert [key.value for key in attrs[xo].pragma_keys] == ["pragma1", "pragma2"]
    assert attrs[xo].pragma_values[1].value == 2


def test_bounds_of_a_cache_inside_a_scan() -> None:
    m, n = te.var("m"), te.var("n")
    X = te.compute((m, n), lambda i, j: tir.const(1, "float32"), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
    scan = te.scan(init, update, state)
    s = te.create_schedule(scan.op)
    XX = s.cache_read(X, "local", update)
    xo, _ = s[update].split(update.op.axis[1], factor=4)
    s[XX].compute_at(s[update], xo)
    s = s.normalize()
    bounds = te.schedule.InferBound(s)
    assert isinstance(te.schedule.ScheduleOps(s, bounds), tir.Stmt)
    assert bounds[XX.op.axis[1]].extent.value == 4
    assert set(te.schedule.ScanGetBody(scan.op)) == {update.op}
    fixed = te.schedule.ScanFixPointAnalysis(scan.op)
    assert fixed[scan.op.spatial_axis_[0]].value == 1


def test_reductions_without_a_condition_are_built() -> None:
    made = tir.Reduce(None, [1], [tir.IterVar((0, 1), "x", 2)], None, 0)
    assert made.combiner is None and made.value_index == 0


def test_a_marked_copy_becomes_an_instruction() -> None:
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), name="A")
    B = te.compute((m, n), lambda i, j: A[i, j], name="B")
    s = te.create_schedule(B.op)
    s[B].pragma(B.op.axis[0], "memcpy")
    stmt = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    mod = tvm.IRModule.from_expr(te.schedule.SchedulePostProcToPrimFunc([A, B], stmt, None))
    seen: list[Any] = []

    def copy(source: Any, target: Any, before: Any, after: Any, value: Any) -> tir.Stmt:
        seen.append((tuple(source.shape), target.strides[1].value, len(before), len(after)))
        return tir.Evaluate(0)

    mod = tir.transform.StorageFlatten(64)(mod)
    tir.transform.InjectCopyIntrin("memcpy", copy)(mod)
    ((shape, stride, before, after),) = seen
    assert shape[0] is m and shape[1] is n and (stride, before, after) == (1, 0, 0)


def test_passes_written_as_classes_and_functions_run() -> None:
    @tir.transform.prim_func_pass(opt_level=1)
    class Replacing:
        def __init__(self, func: tir.PrimFunc) -> None:
            self.func = func

        def transform_function(self, func: Any, mod: Any, context: Any) -> tir.PrimFunc:
            return self.func

    wanted = tir.PrimFunc([], tir.Evaluate(2))
    replace = Replacing(wanted)
    assert replace.info.name == "Replacing" and replace.info.opt_level == 1
    mod = tvm.IRModule({"main": tir.PrimFunc([], tir.Evaluate(1))})
    assert replace(mod)["main"].same_as(wanted)


def test_a_loop_is_vectorized_by_a_pass_of_the_user() -> None:
    a, b = te.placeholder((128,), name="a"), te.placeholder((128,), name="b")
    c = te.compute((128,), lambda i: a[i] + b[i], name="c")

    def split_by_8(node: Any) -> Any:
        if not isinstance(node, tir.For):
            return None
        outer, inner = te.var("outer"), te.var("inner")
        body = tir.stmt_functor.substitute(node.body, {node.loop_var: outer * 8 + inner})
        body = tir.For(inner, 0, 8, tir.ForKind.VECTORIZED, body)
        return tir.For(outer, 0, node.extent.value // 8, tir.ForKind.SERIAL, body)

    @tir.transform.prim_func_pass(opt_level=0)
    def vectorize(func: Any, mod: Any, context: Any) -> tir.PrimFunc:
        return func.with_body(
            tir.stmt_functor.ir_transform(func.body, None, split_by_8, ["tir.For"])
        )

    s = te.create_schedule(c.op)
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectorize)]}):
        body = tvm.lower(s, [a, b, c])["main"].body
    assert isinstance(body.body.indices[0], tir.Ramp)


def test_indices_outside_are_found_at_run_time_when_told_to() -> None:
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i + 1])
    with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        func = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
    with pytest.raises(TVMError):
        func(tvm.nd.array(np.zeros(64, "float32")), tvm.nd.empty((64,)))
