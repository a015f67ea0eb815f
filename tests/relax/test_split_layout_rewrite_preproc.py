"""Blocks that rewrite the layout of weights, as loop programs of their own."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Rewrites:
    @T.prim_func(private=True)
    def f(
        X: T.Buffer((8, 8), "float32"),
        W: T.Buffer((8, 8), "float32"),
        Y: T.Buffer((8, 8), "float32"),
    ):
        T.func_attr({"layout_free_buffers": [1]})
        W1 = T.alloc_buffer((2, 8, 4))
        for i, j in T.grid(8, 8):
            with T.block("rewrite"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                W1[vi // 4, vj, vi % 4] = W[vi, vj]
        for i, j in T.grid(8, 8):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + W1[vi // 4, vj, vi % 4]

    @R.function
    def main(x: R.Tensor((8, 8), "float32"), w: R.Tensor((8, 8), "float32")):
        cls = Rewrites
        with R.dataflow():
            y = R.call_tir(cls.f, (x, w), out_sinfo=R.Tensor((8, 8), "float32"))
            R.output(y)
        return y


def test_a_rewriting_block_becomes_a_program_of_its_own() -> None:
    @I.ir_module
    class After:
        @T.prim_func(private=True)
        def f_prepacked(
            X: T.Buffer((8, 8), "float32"),
            W1: T.Buffer((2, 8, 4), "float32"),
            Y: T.Buffer((8, 8), "float32"),
        ):
            for i, j in T.grid(8, 8):
                with T.block("add"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = X[vi, vj] + W1[vi // 4, vj, vi % 4]

        @T.prim_func(private=True)
        def f_weight_prepack(W: T.Buffer((8, 8), "float32"), W1: T.Buffer((2, 8, 4), "float32")):
            for i, j in T.grid(8, 8):
                with T.block("rewrite"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                    W1[vi // 4, vj, vi % 4] = W[vi, vj]

        @R.function
        def main(x: R.Tensor((8, 8), "float32"), w: R.Tensor((8, 8), "float32")):
            cls = After
            with R.dataflow():
                w1 = R.call_tir(cls.f_weight_prepack, (w,), R.Tensor((2, 8, 4), "float32"))
                y = R.call_tir(cls.f_prepacked, (x, w1), R.Tensor((8, 8), "float32"))
                R.output(y)
            return y

    after = transform.SplitLayoutRewritePreproc()(Rewrites)
    assert_structural_equal(after, After)
    x, w = [tvm.nd.array(np.random.rand(8, 8).astype("float32")) for _ in range(2)]
    machine = relax.VirtualMachine(relax.build(after, "llvm"), tvm.cpu())
    np.testing.assert_array_equal(machine["main"](x, w).numpy(), x.numpy() + w.numpy())


def test_a_weight_that_is_read_elsewhere_stays() -> None:
    @T.prim_func(private=True)
    def reads_twice(
        X: T.Buffer((8,), "float32"), W: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")
    ):
        T.func_attr({"layout_free_buffers": [1]})
        W1 = T.alloc_buffer((2, 4))
        for i in range(8):
            with T.block("rewrite"):
                vi = T.axis.spatial(8, i)
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                W1[vi // 4, vi % 4] = W[vi]
        for i in range(8):
            with T.block("add"):
                vi = T.axis.spatial(8, i)
                Y[vi] = X[vi] + W1[vi // 4, vi % 4] + W[vi]

    mod = tvm.IRModule({"f": reads_twice})
    assert transform.SplitLayoutRewritePreproc()(mod) is mod


def test_weights_and_constants_are_free_of_layout() -> None:
    @T.prim_func(private=True)
    def add(
        a: T.Buffer((2,), "float32"), b: T.Buffer((2,), "float32"), c: T.Buffer((2,), "float32")
    ):
        for i in range(2):
            c[i] = a[i] + b[i]

    builder = relax.BlockBuilder()
    gvar = builder.add_func(add, "add")
    x, w = [relax.Var(name, R.Tensor((2,), "float32")) for name in "xw"]
    info = R.Tensor((2,), "float32")
    with builder.function("main", [x, w], attrs={"num_input": 1}):
        with builder.dataflow():
            y = builder.emit(relax.call_tir(gvar, (x, w), info))
            z = builder.emit(relax.call_tir(gvar, (y, x), info))
            one = relax.const(np.ones(2, "float32"))
            out = builder.emit_output(relax.call_tir(gvar, (one, z), info))
        builder.emit_func_output(out)
    after = transform.AttachAttrLayoutFreeBuffers()(builder.get())
    callees = [b.value.args[0] for b in after["main"].body.blocks[0].bindings]
    free = [after[callee].attrs.get("layout_free_buffers") for callee in callees]
    assert [None if f is None else list(f) for f in free] == [[1], None, [0]]
