"""Operators write over arguments that nobody reads any more, and compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.relax.agreement import assert_computes_the_same, random_arrays, run
from tvm import relax
from tvm.relax import transform
from tvm.relax.testing.transform import dataflow_alias_analysis, dataflow_liveness_analysis
from tvm.script import ir as I
from tvm.script import relax as R


def inplace_calls(mod: tvm.IRModule) -> list[str]:
    op = tvm.ir.Op.get("relax.call_tir_inplace")
    bindings = [b for block in mod["main"].body.blocks for b in block.bindings]
    return [b.var.name_hint for b in bindings if getattr(b.value, "op", None) is op]


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((1, 3), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            v = R.reshape(b, (3, 2))
            c = R.multiply(b, y)
            d = R.reshape(R.tanh(v), (2, 3))
            e = R.subtract(c, d)
            f = R.divide(e, e)
            R.output(f, c)
        return (f, c)


def test_arguments_that_are_dead_are_written_over() -> None:
    after = transform.DataflowUseInplaceCalls()(Chain)
    # b is alive under the name v where c is computed, and dead where tanh is; c is an output
    names = inplace_calls(after)
    assert [n for n in names if not n.startswith("lv")] == ["b", "e", "f"] and len(names) == 4
    assert_computes_the_same(Chain, after)


def test_inputs_and_outputs_stay_as_they_are() -> None:
    after = transform.DataflowUseInplaceCalls()(Chain)
    args = [tvm.nd.array(a) for a in random_arrays(Chain["main"])]
    before = [a.numpy().copy() for a in args]
    vm = relax.VirtualMachine(relax.build(after, "llvm"), tvm.cpu())
    first = vm["main"](*args)
    kept = [first[i].numpy().copy() for i in (0, 1)]
    vm["main"](*args)
    for a, b in zip(before, args, strict=True):
        np.testing.assert_array_equal(a, b.numpy())
    for i in (0, 1):
        np.testing.assert_array_equal(kept[i], first[i].numpy())


@pytest.mark.parametrize("seed", range(6))
def test_random_blocks_compute_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bb = relax.BlockBuilder()
    params = [relax.Var(n, relax.TensorStructInfo((2, 2))) for n in "xy"]
    with bb.function("main", params):
        with bb.dataflow():
            values = list(params)
            for _ in range(8):
                a, b = [values[i] for i in rng.integers(len(values), size=2)]
                kind = rng.integers(4)
                if kind == 0:
                    new = relax.op.tanh(a)
                elif kind == 1:
                    new = relax.op.subtract(a, b)
                elif kind == 2:
                    new = relax.op.multiply(a, b)
                else:
                    new = relax.op.reshape(a, (2, 2))
                values.append(bb.emit(new))
            out = bb.emit_output(relax.Tuple([values[-1], values[int(rng.integers(2, 10))]]))
        bb.emit_func_output(out)
    mod = bb.finalize()
    assert_computes_the_same(mod, transform.DataflowUseInplaceCalls()(mod))


def test_lives_and_aliases_are_known() -> None:
    block = Chain["main"].body.blocks[0]
    ranges = {v.name_hint: r for v, r in dataflow_liveness_analysis(block).items()}
    assert ranges["x"] == (-1, len(block.bindings)) and ranges["a"] == (0, 1)
    sets, tuples = dataflow_alias_analysis(block, Chain["main"].params)
    sets = {v.name_hint: s for v, s in sets.items()}
    assert sets["b"] <= sets["v"] and not sets["a"] & sets["b"] and tuples == {}


def test_modules_without_room_stay() -> None:
    @I.ir_module
    class Fresh:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "int32"):
            with R.dataflow():
                y = R.exp(x)
                z = R.astype(y, "int32")
                R.output(z)
            return z

    after = transform.DataflowUseInplaceCalls()(Fresh)
    tvm.ir.assert_structural_equal(after, Fresh)
    assert run(after, np.zeros(2, "float32")).tolist() == [1, 1]


def test_a_constant_with_a_name_is_not_written_over() -> None:
    values = np.array([1, 2], "float32")

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            c = R.const(values)
            y = R.subtract(x, c)
            z = R.add(x, R.const(values))
            R.output(y, z)
        return (y, z)

    mod = relax.transform.DataflowUseInplaceCalls()(tvm.IRModule({"main": main}))
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x = np.array([5, 7], "float32")
    for _ in range(2):
        y, z = machine["main"](tvm.nd.array(x))
        np.testing.assert_array_equal(y.numpy(), x - values)
        np.testing.assert_array_equal(z.numpy(), x + values)
