"""Programs written for releases 0.6 and 0.7 run unchanged."""

from __future__ import annotations

import numpy as np
import pytest

import tvm

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
TARGET = "llvm"


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def test_vector_add() -> None:
    n = tvm.var("n")
    A = tvm.placeholder((n,), name="A")
    B = tvm.placeholder((n,), name="B")
    C = tvm.compute(A.shape, lambda i: A[i] + B[i], name="C")
    s = tvm.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=64)
    s[C].parallel(outer)
    fadd = tvm.build(s, [A, B, C], TARGET, target_host="llvm", name="myadd")
    ctx = tvm.context(TARGET, 0)
    a = tvm.nd.array(np.random.uniform(size=1024).astype(A.dtype), ctx)
    b = tvm.nd.array(np.random.uniform(size=1024).astype(B.dtype), ctx=ctx)
    c = tvm.nd.array(np.zeros(1024, dtype=C.dtype), ctx)
    fadd(a, b, c)
    np.testing.assert_allclose(c.asnumpy(), a.asnumpy() + b.asnumpy(), rtol=1e-6)
    assert c.ctx == tvm.cpu(0)


def test_module_is_saved_and_loaded(tmp_path: object) -> None:
    from tvm.contrib import cc, util

    temp = util.tempdir()
    A = tvm.placeholder((8,), name="A")
    B = tvm.compute((8,), lambda i: A[i] * tvm.const(3, A.dtype))
    f = tvm.build(tvm.create_schedule(B.op), [A, B], TARGET, name="triple")
    f.save(temp.relpath("triple.o"))
    cc.create_shared(temp.relpath("triple.so"), [temp.relpath("triple.o")])
    loaded = tvm.module.load(temp.relpath("triple.so"))
    b = tvm.nd.empty((8,), ctx=tvm.cpu())
    loaded(tvm.nd.array(np.ones(8, "float32")), b)
    np.testing.assert_array_equal(b.asnumpy(), np.full(8, 3, "float32"))


def test_matrix_multiplication_on_cpu() -> None:
    M, K, N, bn = 64, 64, 64, 32
    k = tvm.reduce_axis((0, K), "k")
    A = tvm.placeholder((M, K), name="A")
    B = tvm.placeholder((K, N), name="B")
    packedB = tvm.compute((N // bn, K, bn), lambda x, y, z: B[y, x * bn + z], name="packedB")
    C = tvm.compute(
        (M, N),
        lambda x, y: tvm.sum(A[x, k] * packedB[y // bn, k, tvm.indexmod(y, bn)], axis=k),
        name="C",
    )
    s = tvm.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    s[CC].compute_at(s[C], yo)
    xc, yc = s[CC].op.axis
    (k,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(k, factor=4)
    s[CC].reorder(ko, xc, ki, yc)
    s[CC].unroll(ki)
    s[CC].vectorize(yc)
    s[C].parallel(xo)
    x, y, z = s[packedB].op.axis
    s[packedB].vectorize(z)
    s[packedB].parallel(x)
    with tvm.build_config(auto_unroll_max_step=16, unroll_explicit=True):
        print(tvm.lower(s, [A, B, C], simple_mode=True))
        func = tvm.build(s, [A, B, C], target=TARGET, name="mmult")
    ctx = tvm.context(TARGET, 0)
    a, b = random(M, K), random(K, N)
    c = tvm.nd.array(np.zeros((M, N), dtype="float32"), ctx)
    func(tvm.nd.array(a, ctx), tvm.nd.array(b, ctx), c)
    np.testing.assert_allclose(c.asnumpy(), a @ b, rtol=1e-4, atol=1e-4)
    evaluator = func.time_evaluator(func.entry_name, ctx, number=1)
    assert evaluator(tvm.nd.array(a, ctx), tvm.nd.array(b, ctx), c).mean > 0


def test_reduction_with_rfactor() -> None:
    n, m = tvm.var("n"), tvm.var("m")
    A = tvm.placeholder((n, m), name="A")
    k = tvm.reduce_axis((0, m), "k")
    B = tvm.compute((n,), lambda i: tvm.sum(A[i, k], axis=k), name="B")
    s = tvm.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    assert BF.op.name == "B.rf"
    f = tvm.build(s, [A, B], TARGET)
    a = random(5, 33)
    b = tvm.nd.array(np.zeros(5, "float32"))
    f(tvm.nd.array(a), b)
    np.testing.assert_allclose(b.asnumpy(), a.sum(1), rtol=1e-4)


def test_own_commutative_reducer() -> None:
    n = tvm.var("n")
    product = tvm.comm_reducer(lambda x, y: x * y, lambda t: tvm.const(1, dtype=t), name="product")
    A = tvm.placeholder((n, 4), name="A")
    k = tvm.reduce_axis((0, 4), name="k")
    B = tvm.compute((n,), lambda i: product(A[i, k], axis=k), name="B")
    f = tvm.build(tvm.create_schedule(B.op), [A, B], TARGET)
    a, b = random(3, 4), tvm.nd.array(np.zeros(3, "float32"))
    f(tvm.nd.array(a), b)
    np.testing.assert_allclose(b.asnumpy(), a.prod(1), rtol=1e-5)


def test_scan() -> None:
    m, n = tvm.var("m"), tvm.var("n")
    X = tvm.placeholder((m, n), name="X")
    s_state = tvm.placeholder((m, n))
    s_init = tvm.compute((1, n), lambda _, i: X[0, i])
    s_update = tvm.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
    s_scan = tvm.scan(s_init, s_update, s_state, inputs=[X])
    s = tvm.create_schedule(s_scan.op)
    fscan = tvm.build(s, [X, s_scan], TARGET, name="myscan")
    x = random(10, 6)
    y = tvm.nd.array(np.zeros((10, 6), "float32"))
    fscan(tvm.nd.array(x), y)
    np.testing.assert_allclose(y.asnumpy(), np.cumsum(x, axis=0), rtol=1e-5, atol=1e-6)


def test_extern_tensor_function() -> None:
    @tvm.register_func("tests.compat.my_tvm_addone", override=True)
    def my_tvm_addone(x: tvm.nd.NDArray, y: tvm.nd.NDArray) -> None:
        tvm.nd.array(x.asnumpy() + 1).copyto(y)

    n = 8
    A = tvm.placeholder((n,), name="A")
    B = tvm.extern(
        A.shape,
        [A],
        lambda ins, outs: tvm.call_packed("tests.compat.my_tvm_addone", ins[0], outs[0]),
        name="C",
    )
    f = tvm.build(tvm.create_schedule(B.op), [A, B], TARGET)
    a, b = random(n), tvm.nd.array(np.zeros(n, "float32"))
    f(tvm.nd.array(a), b)
    np.testing.assert_allclose(b.asnumpy(), a + 1)


def test_extern_with_ir_builder() -> None:
    def gen(ins: list, outs: list) -> tvm.stmt.Stmt:
        ib = tvm.ir_builder.create()
        src, dst = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 10, name="i") as i:
            with ib.if_scope(ib.likely(i < 5)):
                dst[i] = src[i] * tvm.const(2, "float32")
            with ib.else_scope():
                dst[i] = tvm.max(src[i], tvm.const(0, "float32"))
        return ib.get()

    A = tvm.placeholder((10,), name="A")
    B = tvm.extern((10,), [A], gen, dtype="float32")
    f = tvm.build(tvm.create_schedule(B.op), [A, B], TARGET)
    a, b = random(10), tvm.nd.array(np.zeros(10, "float32"))
    f(tvm.nd.array(a), b)
    want = np.where(np.arange(10) < 5, a * 2, np.maximum(a, 0))
    np.testing.assert_allclose(b.asnumpy(), want)


def test_intrinsics_and_math_functions() -> None:
    A = tvm.placeholder((64,), name="A")
    B = tvm.compute(A.shape, lambda i: tvm.exp(A[i]) + tvm.tanh(A[i]), name="B")
    C = tvm.compute(
        A.shape, lambda i: tvm.select(B[i] > 1, B[i], tvm.call_pure_intrin("float32", "exp", A[i]))
    )
    s = tvm.create_schedule(C.op)
    s[B].compute_inline()
    f = tvm.build(s, [A, C], TARGET)
    a, c = random(64), tvm.nd.array(np.zeros(64, "float32"))
    f(tvm.nd.array(a), c)
    b = np.exp(a) + np.tanh(a)
    np.testing.assert_allclose(c.asnumpy(), np.where(b > 1, b, np.exp(a)), rtol=1e-5)


def test_rule_of_an_own_intrinsic() -> None:
    from tvm.ir.op import register_op_attr

    register_op_attr("tir.oldmylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)

    def lower_mylog(op: tvm.expr.Expr) -> tvm.expr.Expr:
        if op.dtype == "float32":
            return tvm.call_pure_extern("float32", "logf", op.args[0])
        return op

    tvm.register_intrin_rule("llvm", "oldmylog", lower_mylog, override=True)
    A = tvm.placeholder((16,), name="A")
    B = tvm.compute(A.shape, lambda i: tvm.call_pure_intrin(A.dtype, "oldmylog", A[i]), name="B")
    f = tvm.build(tvm.create_schedule(B.op), [A, B], TARGET)
    a, b = np.abs(random(16)) + 0.5, tvm.nd.array(np.zeros(16, "float32"))
    f(tvm.nd.array(a), b)
    np.testing.assert_allclose(b.asnumpy(), np.log(a), rtol=1e-5)


def test_tensorize() -> None:
    N, M, L = 32, 16, 8
    A = tvm.placeholder((N, L), name="A")
    B = tvm.placeholder((M, L), name="B")
    k = tvm.reduce_axis((0, L), name="k")
    C = tvm.compute((N, M), lambda i, j: tvm.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = tvm.create_schedule(C.op)
    x, y = C.op.axis
    (z,) = C.op.reduce_axis
    yo, yi = s[C].split(y, 4)
    s[C].reorder(x, yo, yi, z)
    s[C].tensorize(yi, gemv_intrinsic(4, L))
    f = tvm.build(s, [A, B, C], TARGET, name="gemv")
    a, b = random(N, L), random(M, L)
    c = tvm.nd.array(np.zeros((N, M), "float32"))
    f(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.asnumpy(), a @ b.T, rtol=1e-4, atol=1e-5)


def gemv_intrinsic(m: int, length: int) -> object:
    a = tvm.placeholder((length,), name="a")
    b = tvm.placeholder((m, length), name="b")
    k = tvm.reduce_axis((0, length), name="k")
    c = tvm.compute((m,), lambda i: tvm.sum(a[k] * b[i, k], axis=k), name="c")
    Ab = tvm.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
    Bb = tvm.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[tvm.var("s1"), 1])
    Cb = tvm.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

    def intrin_func(ins: list, outs: list) -> tvm.stmt.Stmt:
        aa, bb = ins
        cc = outs[0]
        ib = tvm.ir_builder.create()
        out, left, right = ib.buffer_ptr(cc), ib.buffer_ptr(aa), ib.buffer_ptr(bb)
        with ib.for_range(0, m) as i:
            out[i] = tvm.const(0, "float32")
            with ib.for_range(0, length) as j:
                out[i] = out[i] + left[j] * right[i, j]
        return ib.get()

    with tvm.build_config(offset_factor=0):
        return tvm.decl_tensor_intrin(c.op, intrin_func, binds={a: Ab, b: Bb, c: Cb})


def test_tuple_inputs() -> None:
    m, n = tvm.var("m"), tvm.var("n")
    idx = tvm.placeholder((m, n), name="idx", dtype="int32")
    val = tvm.placeholder((m, n), name="val", dtype="int32")
    argmax = tvm.comm_reducer(
        lambda x, y: (
            tvm.expr.Select(x[1] >= y[1], x[0], y[0]),
            tvm.expr.Select(x[1] >= y[1], x[1], y[1]),
        ),
        lambda t0, t1: (tvm.const(-1, t0), tvm.min_value(t1)),
        name="argmax",
    )
    k = tvm.reduce_axis((0, n), "k")
    T0, T1 = tvm.compute((m,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    f = tvm.build(tvm.create_schedule(T0.op), [idx, val, T0, T1], TARGET)
    values = np.random.default_rng(1).permutation(12).reshape(3, 4).astype("int32")
    numbers = np.tile(np.arange(4, dtype="int32"), (3, 1))
    where, best = tvm.nd.empty((3,), "int32"), tvm.nd.empty((3,), "int32")
    f(tvm.nd.array(numbers), tvm.nd.array(values), where, best)
    np.testing.assert_array_equal(where.asnumpy(), values.argmax(1))
    np.testing.assert_array_equal(best.asnumpy(), values.max(1))


def test_hybrid_script() -> None:
    @tvm.hybrid.script
    def outer_product(a, b):  # type: ignore[no-untyped-def]
        c = output_tensor((4, 5), a.dtype)
        for i in range(4):
            for j in range(5):
                c[i, j] = a[i] * b[j]
        return c

    a, b = tvm.placeholder((4,), name="a"), tvm.placeholder((5,), name="b")
    c = outer_product(a, b)
    f = tvm.build(tvm.create_schedule(c.op), [a, b, c], TARGET)
    x, y, out = random(4), random(5), tvm.nd.empty((4, 5))
    f(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.asnumpy(), np.outer(x, y), rtol=1e-6)


def test_custom_pass_over_statements() -> None:
    seen = []

    def vectorize(stmt: tvm.stmt.Stmt) -> tvm.stmt.Stmt:
        tvm.ir_pass.PostOrderVisit(
            stmt, lambda op: seen.append(op) if isinstance(op, tvm.stmt.For) else None
        )
        return tvm.ir_pass.IRTransform(stmt, None, lambda op: None, ["For"])

    ib = tvm.ir_builder.create()
    A = ib.pointer("float32", name="A")
    with ib.for_range(0, 8, name="i") as i:
        A[i] = A[i] + 1
    vectorize(ib.get())
    assert len(seen) == 1


def test_passes_are_functions_of_statements() -> None:
    m = tvm.var("m")
    A = tvm.placeholder((m,), name="A")
    B = tvm.compute((m,), lambda i: A[i] + 1, name="B")
    s = tvm.create_schedule(B.op)
    s[B].split(B.op.axis[0], 4)
    s = s.normalize()
    stmt = tvm.schedule.ScheduleOps(s, tvm.schedule.InferBound(s))
    Ab = tvm.decl_buffer(A.shape, A.dtype, name="A")
    Bb = tvm.decl_buffer(B.shape, B.dtype, name="B")
    flat = tvm.ir_pass.StorageFlatten(stmt, {A: Ab, B: Bb}, 64)
    parted = tvm.ir_pass.LoopPartition(flat, True)
    assert len(str(tvm.ir_pass.Simplify(parted))) > 0
    assert tvm.ir_pass.VerifySSA(parted)
    x = tvm.var("x")
    assert tvm.ir_pass.Equal(tvm.ir_pass.Simplify(x * 4 - x * 4), tvm.const(0, "int32"))
    assert tvm.ir_pass.Equal(tvm.ir_pass.CanonicalSimplify(x + 2 - x), tvm.const(2, "int32"))


def test_nodes_are_made_by_functions() -> None:
    i = tvm.var("i")
    body = tvm.make.Evaluate(i)
    loop = tvm.make.For(i, 0, 4, 0, 0, tvm.make.Block(body, body))
    assert isinstance(loop, tvm.stmt.For) and isinstance(loop.body, tvm.stmt.Block)
    both = tvm.all(i < 4, i > 1)
    assert isinstance(both, tvm.expr.And)
    assert isinstance(tvm.make.node("IntImm", dtype="int32", value=1), tvm.expr.IntImm)
    assert tvm.make.range_by_min_extent(1, 4).extent.value == 4


def test_operators_of_the_topi_package() -> None:
    from topi.util import get_const_tuple

    import topi

    A = tvm.placeholder((2, 8), name="A")
    B = topi.nn.softmax(topi.add(A, topi.nn.relu(A)))
    assert get_const_tuple(B.shape) == (2, 8)
    with tvm.target.create("llvm"):
        s = topi.generic.schedule_injective(B)
    f = tvm.build(s, [A, B], "llvm")
    a, b = random(2, 8), tvm.nd.empty((2, 8))
    f(tvm.nd.array(a), b)
    e = np.exp(a + np.maximum(a, 0))
    np.testing.assert_allclose(b.asnumpy(), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_relay_quick_start() -> None:
    from tvm import relay
    from tvm.contrib import graph_runtime

    data = relay.var("data", shape=(1, 3, 8, 8), dtype="float32")
    weight = relay.var("weight")
    conv = relay.nn.conv2d(data, weight, kernel_size=(3, 3), channels=4, padding=(1, 1))
    out = relay.nn.batch_flatten(relay.nn.relu(conv))
    mod = relay.Module.from_expr(relay.Function(relay.analysis.free_vars(out), out))
    params = {"weight": tvm.nd.array(random(4, 3, 3, 3))}
    with relay.build_config(opt_level=3):
        graph, lib, params = relay.build(mod, "llvm", params=params)
    ctx = tvm.cpu(0)
    x = random(1, 3, 8, 8)
    m = graph_runtime.create(graph, lib, ctx)
    m.set_input("data", tvm.nd.array(x))
    m.set_input(**params)
    m.run()
    got = m.get_output(0, tvm.nd.empty((1, 256), "float32", ctx)).asnumpy()
    want = relay.create_executor("debug", mod=mod, ctx=ctx, target="llvm").evaluate()(
        tvm.nd.array(x), tvm.nd.array(random(4, 3, 3, 3))
    )
    np.testing.assert_allclose(got, want.asnumpy(), rtol=1e-4, atol=1e-4)
