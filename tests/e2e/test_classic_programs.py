"""Programs as the classic documentation has them, unchanged."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tvm
import tvm.testing
from tvm import relay, te
from tvm.contrib import cc, graph_executor, utils


def _vector_add(target: str = "llvm"):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.axis[0])
    return tvm.build(s, [A, B, C], target, name="myadd")


def _check_add(fadd, n: int = 1024) -> None:
    dev = tvm.device("llvm", 0)
    a = tvm.nd.array(np.random.uniform(size=n).astype("float32"), dev)
    b = tvm.nd.array(np.random.uniform(size=n).astype("float32"), dev)
    c = tvm.nd.array(np.zeros(n, dtype="float32"), dev)
    fadd(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


def test_vector_add_with_symbolic_size() -> None:
    fadd = _vector_add()
    _check_add(fadd)
    _check_add(fadd, 7)
    assert fadd.type_key == "llvm" and len(fadd.imported_modules) == 0
    assert "myadd" in fadd.get_source()
    assert "define" in fadd.get_source("ll") and ".globl" in fadd.get_source("asm")


def test_split_and_vectorize_with_a_tail() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=8)
    s[B].parallel(outer)
    s[B].vectorize(inner)
    f = tvm.build(s, [A, B], "llvm")
    for size in (1, 8, 13, 64):
        a = tvm.nd.array(np.arange(size, dtype="float32"))
        b = tvm.nd.array(np.zeros(size, dtype="float32"))
        f(a, b)
        tvm.testing.assert_allclose(b.numpy(), a.numpy() * 2)


def test_binding_to_threads_lowers_to_a_device_kernel() -> None:
    n = 1024
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    bx, tx = s[B].split(B.op.axis[0], factor=64)
    s[B].bind(bx, te.thread_axis("blockIdx.x"))
    s[B].bind(tx, te.thread_axis("threadIdx.x"))
    text = str(tvm.lower(s, [A, B], simple_mode=True))
    assert "blockIdx.x" in text and "threadIdx.x" in text


def test_matrix_multiplication_tutorial() -> None:
    M = K = N = 128
    k = te.reduce_axis((0, K), "k")
    A = te.placeholder((M, K), name="A")
    B = te.placeholder((K, N), name="B")
    bn, factor = 32, 4
    packedB = te.compute(
        (N // bn, K, bn), lambda bigN, k, littleN: B[k, bigN * bn + littleN], name="packedB"
    )
    C = te.compute(
        (M, N),
        lambda m, n: te.sum(A[m, k] * packedB[n // bn, k, tvm.tir.indexmod(n, bn)], axis=k),
        name="C",
    )
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    mo, no, mi, ni = s[C].tile(C.op.axis[0], C.op.axis[1], bn, bn)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    (kaxis,) = s[CC].op.reduce_axis
    ko, ki = s[CC].split(kaxis, factor=factor)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].unroll(ki)
    s[CC].vectorize(nc)
    s[C].parallel(mo)
    bigN, _, littleN = s[packedB].op.axis
    s[packedB].vectorize(littleN)
    s[packedB].parallel(bigN)
    text = str(tvm.lower(s, [A, B, C], simple_mode=True))
    assert "T.parallel" in text and "packedB" in text
    func = tvm.build(s, [A, B, C], target="llvm", name="mmult")
    dev = tvm.device("llvm", 0)
    a = tvm.nd.array(np.random.rand(M, K).astype("float32"), dev)
    b = tvm.nd.array(np.random.rand(K, N).astype("float32"), dev)
    c = tvm.nd.array(np.zeros((M, N), dtype="float32"), dev)
    func(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), np.dot(a.numpy(), b.numpy()), rtol=1e-5)
    evaluator = func.time_evaluator(func.entry_name, dev, number=10)
    assert evaluator(a, b, c).mean > 0


def test_python_functions_are_called_by_name_and_from_compiled_code() -> None:
    @tvm.register_func("tests.classic.scale", override=True)
    def scale(x, y):
        y.copyfrom(x.numpy() * 3)

    assert tvm.get_global_func("tests.classic.scale") is not None
    assert tvm.get_global_func("tests.classic.nothing", allow_missing=True) is None
    A = te.placeholder((4,), name="A")
    B = te.extern(
        (4,), [A],
        lambda ins, outs: tvm.tir.call_packed("tests.classic.scale", ins[0], outs[0]), name="B",
    )  # fmt: skip
    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
    a, b = tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.array(np.zeros(4, "float32"))
    f(a, b)
    tvm.testing.assert_allclose(b.numpy(), a.numpy() * 3)


def test_callbacks_are_packed_functions() -> None:
    double = tvm.convert(lambda x: 2 * x)
    apply = tvm.convert(lambda function, value: function(value))
    assert isinstance(double, tvm.runtime.PackedFunc)
    assert apply(double, 21) == 42

    def fail(x):
        raise KeyError(f"no {x}")

    with pytest.raises(KeyError, match="no 5"):
        tvm.convert(fail)(5)


def test_a_relay_function_is_built_and_run() -> None:
    x = relay.var("x", shape=(1, 8), dtype="float32")
    w = relay.var("w", shape=(4, 8), dtype="float32")
    func = relay.Function([x, w], relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, w))))
    mod = tvm.IRModule.from_expr(func)
    weight = np.random.rand(4, 8).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params={"w": weight})
    dev = tvm.cpu()
    module = graph_executor.GraphModule(lib["default"](dev))
    data = np.random.rand(1, 8).astype("float32")
    module.set_input("x", tvm.nd.array(data))
    module.run()
    out = module.get_output(0).numpy()
    scores = np.maximum(data @ weight.T, 0)
    expected = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    tvm.testing.assert_allclose(out, expected, rtol=1e-5)
    graph, library, params = relay.build(mod, target="llvm", params={"w": weight})
    other = graph_executor.create(graph, library, dev)
    other.set_input(**params)
    other.run(x=data)
    tvm.testing.assert_allclose(other.get_output(0).numpy(), expected, rtol=1e-5)


@pytest.mark.slow
def test_resnet_workload() -> None:
    mod, params = relay.testing.resnet.get_workload(
        num_layers=18, batch_size=1, image_shape=(3, 224, 224)
    )
    data = np.random.uniform(-1, 1, size=(1, 3, 224, 224)).astype("float32")
    outputs = []
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            lib = relay.build(mod, target="llvm", params=params)
        module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
        module.set_input("data", data)
        module.run()
        outputs.append(module.get_output(0, tvm.nd.empty((1, 1000))).numpy())
    tvm.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-4, atol=1e-6)
    assert outputs[0].sum() == pytest.approx(1, abs=1e-4)


def test_shared_libraries_from_object_files() -> None:
    folder = utils.tempdir()
    fadd = _vector_add()
    fadd.save(folder.relpath("myadd.o"))
    cc.create_shared(folder.relpath("myadd.so"), [folder.relpath("myadd.o")])
    _check_add(tvm.runtime.load_module(folder.relpath("myadd.so")))


def test_an_exported_model_runs_in_a_fresh_process(tmp_path) -> None:
    x = relay.var("x", shape=(2, 3), dtype="float32")
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x) + relay.const(1.0)))
    lib = relay.build(mod, target="llvm")
    path = tmp_path / "model.so"
    lib.export_library(str(path))
    code = f"""
import numpy as np, tvm
from tvm.contrib import graph_executor
lib = tvm.runtime.load_module({str(path)!r})
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
x = np.ones((2, 3), "float32")
module.set_input("x", x)
module.run()
np.testing.assert_allclose(module.get_output(0).numpy(), np.exp(x) + 1, rtol=1e-6)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
