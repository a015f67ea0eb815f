"""Programs in the style of the classic tutorials, compiled and run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_tool
from tvm import te, tir
from tvm.contrib import clang

SOURCE = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return SOURCE.random(shape, "float32")


def assert_computes(
    function: Any, inputs: list[np.ndarray], wanted: list[np.ndarray], rtol: float = 1e-5
) -> None:
    outputs = [tvm.nd.empty(array.shape, str(array.dtype)) for array in wanted]
    function(*[tvm.nd.array(array) for array in inputs], *outputs)
    for output, array in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(output.numpy(), array, rtol=rtol, atol=1e-5)


GEMV = """
extern "C" int gemv_update(float* c, float* a, float* b, int m, int l, int stride) {
  for (int i = 0; i < m; ++i) for (int j = 0; j < l; ++j) c[i] += a[j] * b[i * stride + j];
  return 0;
}
extern "C" int gemv_reset(float* c, int m) {
  for (int i = 0; i < m; ++i) c[i] = 0.0f;
  return 0;
}
"""


def declare_gemv(m: int, depth: int) -> te.tensor_intrin.TensorIntrin:
    a, b = te.placeholder((depth,), name="a"), te.placeholder((m, depth), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    a_buffer = tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
    b_buffer = tir.decl_buffer(
        b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s"), 1]
    )
    c_buffer = tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

    def calls(ins: Any, outs: Any) -> Any:
        (x, y), z = ins, outs[0]

        def update() -> Any:
            pointers = z.access_ptr("w"), x.access_ptr("r"), y.access_ptr("r")
            return tir.call_extern("int32", "gemv_update", *pointers, m, depth, y.strides[0])

        def reset() -> Any:
            return tir.call_extern("int32", "gemv_reset", z.access_ptr("w"), m)

        return update(), reset(), update()

    return te.decl_tensor_intrin(c.op, calls, binds={a: a_buffer, b: b_buffer, c: c_buffer})


@needs_tool("clang")
def test_matrix_product_on_an_instruction_from_a_library_of_c() -> None:
    n, m, depth, tile = 8, 32, 64, 16
    A, B = te.placeholder((n, depth), name="A"), te.placeholder((m, depth), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    x, y = C.op.axis
    yo, yi = s[C].split(y, factor=tile)
    zo, zi = s[C].split(C.op.reduce_axis[0], factor=tile)
    s[C].reorder(x, yo, zo, yi, zi)
    s[C].tensorize(yi, declare_gemv(tile, tile))
    s[C].pragma(yo, "import_llvm", clang.create_llvm(GEMV))
    a, b = floats(n, depth), floats(m, depth)
    assert_computes(tvm.build(s, [A, B, C], "llvm", name="gemv"), [a, b], [a @ b.T], 1e-4)


def largest() -> Any:
    def combine(x: Any, y: Any) -> Any:
        left = tir.Select(x[1] >= y[1], x[0], y[0])
        return left, tir.Select(x[1] >= y[1], x[1], y[1])

    return te.comm_reducer(
        combine, lambda i, v: (tir.const(-1, i), te.min_value(v)), name="largest"
    )


@pytest.mark.parametrize("factor_axis", [None, 0, 1])
def test_place_of_the_largest_number(factor_axis: int | None) -> None:
    m, n = 6, 32
    idx, val = te.placeholder((m, n), "int32", "idx"), te.placeholder((m, n), "int32", "val")
    k, reducer = te.reduce_axis((0, n), "k"), largest()
    T0, T1 = te.compute((m,), lambda i: reducer((idx[i, k], val[i, k]), axis=k), name="T")
    s = te.create_schedule(T0.op)
    if factor_axis is not None:
        _, ki = s[T0].split(k, factor=8)
        s.rfactor(T0, ki, factor_axis=factor_axis)
    values = SOURCE.permutation(m * n).reshape(m, n).astype("int32")
    places = np.tile(np.arange(n, dtype="int32"), (m, 1))
    wanted = [values.argmax(1).astype("int32"), values.max(1)]
    assert_computes(tvm.build(s, [idx, val, T0, T1], "llvm"), [places, values], wanted)


def test_recurrence_with_two_stages_in_a_step() -> None:
    m, n = te.var("m"), te.var("n")
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i])
    doubled = te.compute((m, n), lambda t, i: state[t - 1, i] * 2, name="doubled")
    update = te.compute((m, n), lambda t, i: doubled[t, i] + X[t, i], name="update")
    total = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(total.op)
    xo, _ = s[update].split(update.op.axis[1], factor=32)
    s[doubled].compute_at(s[update], xo)
    x = floats(10, 8)
    steps = [x[0]]
    for row in x[1:]:
        steps.append(steps[-1] * 2 + row)
    assert_computes(tvm.build(s, [X, total], "llvm"), [x], [np.array(steps)])


def test_matrix_product_on_packed_tiles_with_a_write_cache() -> None:
    n, tile = 64, 16
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    packed = te.compute((n / tile, n, tile), lambda x, y, z: B[y, x * tile + z], name="packed")
    C = te.compute(
        (n, n), lambda i, j: te.sum(A[i, k] * packed[j // tile, k, tir.indexmod(j, tile)], axis=k)
    )
    s = te.create_schedule(C.op)
    cached = s.cache_write(C, "global")
    mo, no, _, _ = s[C].tile(C.op.axis[0], C.op.axis[1], tile, tile)
    s[cached].compute_at(s[C], no)
    mc, nc = s[cached].op.axis
    ko, ki = s[cached].split(s[cached].op.reduce_axis[0], factor=4)
    s[cached].reorder(ko, mc, ki, nc)
    s[cached].vectorize(nc)
    s[cached].unroll(ki)
    s[C].parallel(mo)
    outer, _, inner = s[packed].op.axis
    s[packed].vectorize(inner)
    s[packed].parallel(outer)
    a, b = floats(n, n), floats(n, n)
    assert_computes(tvm.build(s, [A, B, C], "llvm"), [a, b], [a @ b], 1e-4)


def test_pass_of_a_user_vectorizes_loops() -> None:
    n = tir.const(128, "int32")
    a, b = te.placeholder((n,), name="a"), te.placeholder((n,), name="b")
    c = te.compute((n,), lambda i: a[i] + b[i], name="c")

    def vectorized(loop: tir.For) -> tir.Stmt | None:
        if not isinstance(loop.extent, tir.IntImm) or loop.extent.value % 8:
            return None
        outer, inner = te.var("outer"), te.var("inner")
        body = tir.stmt_functor.substitute(loop.body, {loop.loop_var: outer * 8 + inner})
        body = tir.For(inner, 0, 8, tir.ForKind.VECTORIZED, body)
        return tir.For(outer, 0, loop.extent.value // 8, tir.ForKind.SERIAL, body)

    @tir.transform.prim_func_pass(opt_level=0)
    def vectorize(func: tir.PrimFunc, mod: Any, ctx: Any) -> tir.PrimFunc:
        return func.with_body(
            tir.stmt_functor.ir_transform(func.body, None, vectorized, ["tir.For"])
        )

    s = te.create_schedule(c.op)
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectorize)]}):
        mod = tvm.lower(s, [a, b, c])
        function = tvm.build(s, [a, b, c], "llvm")
    ramps: list[Any] = []
    tir.stmt_functor.post_order_visit(
        mod["main"].body, lambda n: ramps.append(n) if isinstance(n, tir.Ramp) else None
    )
    assert ramps and all(int(ramp.lanes) == 8 for ramp in ramps)
    x, y = floats(128), floats(128)
    assert_computes(function, [x, y], [x + y])


def test_statements_from_the_builder_between_stages() -> None:
    n = te.size_var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    T = te.compute((n,), lambda i: A[i] + B[i])

    def doubled_in_fours(ins: Any, outs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        target, source = ib.buffer_ptr(outs[0]), ib.buffer_ptr(ins[0])
        part = ib.allocate("float32", (4,), name="part", scope="local")
        with ib.for_range(0, ins[0].shape[0] // 4, kind="serial") as i:
            with ib.for_range(0, 4) as j:
                part[j] = source[i * 4 + j] * 2.0
            with ib.for_range(0, 4) as j, ib.if_scope(part[j] > 0):
                target[i * 4 + j] = part[j] + tir.const(1, "float32")
        return ib.get()

    C = te.extern(T.shape, [T], doubled_in_fours, name="C")
    function = tvm.build(te.create_schedule(C.op), [A, B, C], "llvm")
    a = floats(16) + 1
    assert_computes(function, [a, a], [a * 4 + 1])


def test_buffers_that_broadcast_at_run_time() -> None:
    shapes = [[te.var(f"{name}{k}") for k in range(3)] for name in "mno"]
    A, B = te.placeholder(shapes[0], name="A"), te.placeholder(shapes[1], name="B")
    C = te.compute(shapes[2], lambda i, j, k: A[i, j, k] + B[i, j, k], name="C")
    binds = {
        t: tir.decl_buffer(t.shape, t.dtype, name=t.op.name, buffer_type="auto_broadcast")
        for t in (A, B)
    }
    function = tvm.build(te.create_schedule(C.op), [A, B, C], "llvm", binds=binds)
    for one, other in (((2, 4, 3), (2, 1, 1)), ((1, 4, 1), (2, 4, 3)), ((2, 4, 3), (2, 4, 3))):
        a, b = floats(*one), floats(*other)
        assert_computes(function, [a, b], [a + b])


def test_arguments_with_strides_and_an_offset() -> None:
    n = te.size_var("n")
    A = te.placeholder((n, 8), name="A")
    B = te.compute((n, 8), lambda i, j: A[i, j] + 1, name="B")
    s, a = te.create_schedule(B.op), floats(3, 8)
    strided = tir.decl_buffer(A.shape, A.dtype, name="Ab", strides=[te.var("s0"), te.var("s1")])
    assert_computes(tvm.build(s, [A, B], "llvm", binds={A: strided}), [a], [a + 1])
    moved = tir.decl_buffer(A.shape, A.dtype, name="Ab", elem_offset=te.var("o"), offset_factor=4)
    assert_computes(tvm.build(s, [moved, B], "llvm", binds={A: moved}), [a], [a + 1])


def test_intrinsics_of_a_user_are_lowered_by_rules() -> None:
    def rule(call: tir.Call) -> tir.PrimExpr:
        name = {"float32": "logf", "float64": "log"}[str(call.dtype)]
        return tir.call_pure_extern(call.dtype, name, call.args[0])

    tvm.ir.register_op_attr("tir.my_log", "TCallEffectKind", tir.CallEffectKind.Pure)
    tvm.ir.register_intrin_lowering("tir.my_log", target="llvm", f=rule, level=99)
    n = te.var("n")
    A = te.placeholder((n,), "float64", name="A")
    B = te.compute((n,), lambda i: tir.call_intrin(A.dtype, "tir.my_log", A[i]))
    x = (floats(9) + 1).astype("float64")
    assert_computes(tvm.build(te.create_schedule(B.op), [A, B], "llvm"), [x], [np.log(x)])


def test_softmax_in_rows() -> None:
    A = te.placeholder((16, 16), name="A")
    k, k2 = te.reduce_axis((0, 16)), te.reduce_axis((0, 16))
    top = te.compute((16,), lambda i: te.max(A[i, k], axis=k), name="top")
    power = te.compute((16, 16), lambda i, j: te.exp(A[i, j] - top[i]), name="power")
    total = te.compute((16,), lambda i: te.sum(power[i, k2], axis=k2), name="total")
    result = te.compute((16, 16), lambda i, j: power[i, j] / total[i], name="result")
    s = te.create_schedule(result.op)
    for tensor in (power, top, total):
        s[tensor].compute_at(s[result], result.op.axis[0])
    a = floats(16, 16)
    e = np.exp(a - a.max(1, keepdims=True))
    wanted = e / e.sum(1, keepdims=True)
    assert_computes(tvm.build(s, [A, result], "llvm"), [a], [wanted])


def test_gradient_of_a_dense_layer() -> None:
    X, W = te.placeholder((4, 5), name="X"), te.placeholder((3, 5), name="W")
    H, k = te.placeholder((4, 3), name="H"), te.reduce_axis((0, 5), name="k")
    Y = te.compute((4, 3), lambda i, j: te.sum(X[i, k] * W[j, k], axis=k), name="Y")
    Z = te.compute((4, 3), lambda i, j: te.tanh(Y[i, j]), name="Z")
    dX, dW = te.gradient(Z, [X, W], head=H)
    function = tvm.build(te.create_schedule([dX.op, dW.op]), [H, X, W, dX, dW], "llvm")
    x, w, h = floats(4, 5), floats(3, 5), floats(4, 3)
    slope = h * (1 - np.tanh(x @ w.T) ** 2)
    assert_computes(function, [h, x, w], [slope @ w, slope.T @ x], 1e-4)
