"""Tensors share storages, and results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.error import TVMError
from tvm.ir.transform import Sequential
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def storages(func: relax.Function) -> list[int]:
    values = [b.value for block in func.body.blocks for b in block.bindings]
    alloc = tvm.ir.Op.get("relax.memory.alloc_storage")
    sizes = [v.args[0].values[0] for v in values if isinstance(v, relax.Call) and v.op is alloc]
    return [getattr(size, "value", size) for size in sizes]


def planned(mod: tvm.IRModule) -> tvm.IRModule:
    passes = [
        transform.LegalizeOps(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
        transform.StaticPlanBlockMemory(),
    ]
    return Sequential(passes)(mod)


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"tir_var_upper_bound": {"n": 8}})
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.tanh(a)
            c = R.reshape(R.add(b, b), (n * 4,))
            d = R.reshape(R.abs(c), (n, 4))
            e = R.multiply(d, b)
            f = R.add(e, d)
            R.output(f)
        return f


@I.ir_module
class Branches:
    @R.function
    def main(flag: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.exp(x)
        if flag:
            b = R.add(R.multiply(a, x), x)
            c = R.add(b, a)
        else:
            b = R.subtract(R.add(R.tanh(a), x), x)
            c = R.subtract(b, a)
        d = R.add(c, a)
        return R.add(R.tanh(d), c)


def test_tensors_that_do_not_live_together_share_a_storage() -> None:
    func = planned(Chain)["main"]
    assert storages(func) == [128, 128, 128]  # of five tensors, the result aside
    text = relax.analysis.estimate_memory_usage(planned(Chain))
    assert "Function main" in text and "3 constant-size" in text


@pytest.mark.parametrize("rows", [1, 8])
def test_planned_programs_compute_the_same(rows: int) -> None:
    x = np.random.default_rng(rows).random((rows, 4), "float32")
    vm = relax.VirtualMachine(relax.build(Chain, "llvm"), tvm.cpu())
    twice = [vm["main"](tvm.nd.array(x)).numpy() for _ in range(2)]
    b = np.tanh(np.exp(x))
    for got in twice:
        np.testing.assert_allclose(got, 2 * b * b + 2 * b, rtol=1e-5)


@pytest.mark.parametrize("flag", [True, False])
def test_planned_branches_compute_the_same(flag: bool) -> None:
    x = np.random.default_rng(0).random(4, "float32")
    vm = relax.VirtualMachine(relax.build(Branches, "llvm"), tvm.cpu())
    got = vm["main"](tvm.nd.array(np.array(flag)), tvm.nd.array(x)).numpy()
    a = np.exp(x)
    c = a * x + x + a if flag else np.tanh(a) - a
    np.testing.assert_allclose(got, np.tanh(c + a) + c, rtol=1e-5, atol=1e-6)


def test_results_of_packed_functions_may_be_their_arguments() -> None:
    """What a packed function returned keeps its memory."""

    @I.ir_module
    class Viewed:
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((2, 2), "float32"):
            a = R.exp(x)
            v = R.call_packed(
                "vm.builtin.reshape", a, R.shape([2, 2]), sinfo_args=R.Tensor((2, 2), "float32")
            )
            b = R.negative(x)
            c = R.abs(b)
            d = R.reshape(R.multiply(c, c), (2, 2))
            return R.add(v, d)

    x = np.random.default_rng(0).random(4, "float32")
    vm = relax.VirtualMachine(relax.build(Viewed, "llvm"), tvm.cpu())
    got = vm["main"](tvm.nd.array(x)).numpy()
    np.testing.assert_allclose(got, (np.exp(x) + x * x).reshape(2, 2), rtol=1e-5)


def test_bounds_are_integers() -> None:
    @I.ir_module
    class Wrong:
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            R.func_attr({"tir_var_upper_bound": {"n": [4]}, "relax.force_pure": True})
            return x

    with pytest.raises(TVMError, match="tir_var_upper_bound requires integers"):
        transform.StaticPlanBlockMemory()(Wrong)
