"""Sorting and scans become loop programs by the target's pass."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.error import TVMError
from tvm.relax.backend import DispatchSortScan
from tvm.script import relax as R


@R.function
def main(x: R.Tensor(("n", 7), "float32")):
    with R.dataflow():
        a = R.sort(x, axis=1, descending=True)
        b = R.argsort(x, axis=0, dtype="int64")
        c = R.topk(x, k=3, axis=1)
        d = R.cumsum(x, axis=1)
        e = R.cumprod(x, axis=0)
        f = R.exp(x)
        out = (a, b, c, d, e, f)
        R.output(out)
    return out


def test_operators_that_sort_or_scan_are_replaced_and_others_stay() -> None:
    mod = tvm.IRModule({"main": main})
    with tvm.target.Target("llvm"):
        after = DispatchSortScan()(mod)
    values = [b.value for b in after["main"].body.blocks[0].bindings]
    names = [str(v.op.name) for v in values if isinstance(v, relax.Call)]
    assert names == ["relax.call_tir"] * 5 + ["relax.exp"]
    assert {g.name_hint for g in after.functions} >= {"sort", "argsort", "topk", "cumsum"}

    x = np.random.default_rng(0).normal(size=(5, 7)).astype("float32")
    vm = relax.VirtualMachine(relax.build(after, "llvm"), tvm.cpu())
    a, b, c, d, e, _ = vm["main"](tvm.nd.array(x))
    np.testing.assert_array_equal(a.numpy(), -np.sort(-x, axis=1))
    np.testing.assert_array_equal(b.numpy(), np.argsort(x, axis=0))
    np.testing.assert_array_equal(c[0].numpy(), -np.sort(-x, axis=1)[:, :3])
    np.testing.assert_allclose(d.numpy(), np.cumsum(x, axis=1), rtol=1e-5)
    np.testing.assert_allclose(e.numpy(), np.cumprod(x, axis=0), rtol=1e-5)


def test_a_target_is_required() -> None:
    with pytest.raises(TVMError, match="a target is required here"):
        DispatchSortScan()(tvm.IRModule({"main": main}))
