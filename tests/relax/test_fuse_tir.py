"""FuseTIR: a function of grouped calls is one loop program that computes the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax, tir, topi
from tvm.error import TVMError
from tvm.relax.transform import FuseTIR
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def _run(mod: tvm.IRModule, *args: np.ndarray) -> Any:
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return vm["main"](*[tvm.nd.array(a) for a in args])


@I.ir_module
class Inplace:
    @T.prim_func(private=True)
    def add_one(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("add"):
                v = T.axis.spatial(4, i)
                A[v] = A[v] + 1.0

    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("double"):
                v = T.axis.spatial(4, i)
                B[v] = A[v] * 2.0

    @R.function(private=True)
    def fused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": True})
        cls = Inplace
        with R.dataflow():
            lv = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))
            gv = R.call_tir_inplace(
                cls.add_one, (lv,), out_sinfo=R.Tensor((4,), "float32"), inplace_indices=[0]
            )
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Inplace
        with R.dataflow():
            gv = cls.fused(x)
            R.output(gv)
        return gv


def test_a_result_that_is_written_in_place_is_the_buffer_before() -> None:
    fused = FuseTIR()(Inplace)
    func = fused["fused"]
    assert isinstance(func, tir.PrimFunc)
    assert len(func.params) == 2
    assert not func.body.block.alloc_buffers
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(_run(fused, x).numpy(), x * 2 + 1)


def _grouped(params: list[relax.Var], emit: Any) -> tvm.IRModule:
    """``main`` calls the group of what ``emit`` emits with its own parameters."""
    bb = relax.BlockBuilder()
    with bb.function("group", params, attrs={"Primitive": True}, private=True):
        with bb.dataflow():
            out = bb.emit_output(emit(bb))
        bb.emit_func_output(out)
    group = bb.get().get_global_var("group")
    own = [relax.Var(p.name_hint, p.struct_info) for p in params]
    with bb.function("main", own):
        with bb.dataflow():
            out = bb.emit_output(relax.Call(group, own))
        bb.emit_func_output(out)
    return bb.get()


def test_fields_that_are_not_used_are_no_parameters() -> None:
    info = relax.TensorStructInfo([3], "float32")
    pair = relax.Var("pair", relax.TupleStructInfo([info, info]))
    mod = FuseTIR()(_grouped([pair], lambda bb: bb.emit_te(topi.exp, bb.emit(pair[1]))))
    assert len(mod["group"].params) == 2
    a, b = np.zeros(3, "float32"), np.ones(3, "float32")
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    found = vm["main"]((tvm.nd.array(a), tvm.nd.array(b))).numpy()
    np.testing.assert_allclose(found, np.exp(b), rtol=1e-6)


def test_a_tensor_is_not_returned_twice() -> None:
    x = relax.Var("x", relax.TensorStructInfo([3], "float32"))

    def twice(bb: relax.BlockBuilder) -> relax.Tuple:
        y = bb.emit_te(topi.exp, x)
        return relax.Tuple([y, y])

    with pytest.raises(TVMError, match="cannot return a tensor twice"):
        FuseTIR()(_grouped([x], twice))
