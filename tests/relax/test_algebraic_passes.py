"""Passes that replace products, joins and reshapes by others: what they make computes the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.error import TVMError
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R


def _compare(mod: tvm.IRModule, *passes: tvm.ir.transform.Pass) -> Counter[str]:
    """Run a module and what passes make of it on the same numbers; the operators that are left."""
    new = tvm.ir.transform.Sequential(list(passes))(mod)
    assert relax.analysis.well_formed(new)
    rng = np.random.default_rng(0)
    arrays = []
    for param in mod["main"].params:
        shape = [int(d) for d in param.struct_info.shape.values]
        values = rng.normal(size=shape).astype("float32")
        if param.struct_info.dtype == "int64":
            values = rng.integers(0, 2, shape)
        arrays.append(tvm.nd.array(values))
    results = []
    for module in (mod, new):
        vm = relax.VirtualMachine(relax.build(module, "llvm"), tvm.cpu())
        results.append(vm["main"](*arrays).numpy())
    np.testing.assert_allclose(results[1], results[0], 1e-4, 1e-4)
    values = [b.value for block in new["main"].body.blocks for b in block.bindings]
    return Counter(v.op.name[6:] for v in values if isinstance(v, relax.Call))


def test_parallel_products_are_one() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(
            x: R.Tensor((2, 3, 4), "float32"),
            w0: R.Tensor((5, 4), "float32"),
            w1: R.Tensor((2, 4), "float32"),
            b0: R.Tensor((5,), "float32"),
            b1: R.Tensor((2,), "float32"),
        ):
            with R.dataflow():
                t0 = R.permute_dims(w0)
                m0 = R.matmul(x, t0)
                a0 = R.add(m0, b0)
                r0 = R.nn.relu(a0)
                t1 = R.permute_dims(w1)
                m1 = R.matmul(x, t1)
                a1 = R.add(m1, b1)
                r1 = R.nn.relu(a1)
                out = R.concat([r0, r1], axis=2)
                R.output(out)
            return out

    ops = _compare(Mod, transform.CombineParallelMatmul())
    assert ops == {"permute_dims": 2, "concat": 3, "matmul": 1, "add": 1, "nn.relu": 1, "split": 1}
    refused = transform.CombineParallelMatmul(lambda x, w, b, values: len(w) > 2)(Mod)
    assert refused["main"] is Mod["main"]


def test_products_that_need_each_other_stay() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((3, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.matmul(x, w)
                b = R.matmul(x, a)
                R.output(b)
            return b

    assert _compare(Mod, transform.CombineParallelMatmul()) == {"matmul": 2}


def test_matrices_are_joined_before_they_are_transposed() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(
            x: R.Tensor((1, 4), "float32"),
            a: R.Tensor((2, 4), "float32"),
            b: R.Tensor((3, 4), "float32"),
        ):
            with R.dataflow():
                c = R.permute_dims(a)
                d = R.permute_dims(b, [1, 0])
                e = R.matmul(x, R.concat([c, d], axis=1))
                R.output(e)
            return e

    ops = _compare(Mod, transform.ReorderPermuteDimsAfterConcat())
    assert ops == {"concat": 1, "permute_dims": 1, "matmul": 1}


def test_the_cheaper_order_of_three_factors_is_taken() -> None:
    @I.ir_module
    class Left:
        @R.function
        def main(
            x: R.Tensor((16, 8), "float32"),
            a: R.Tensor((8, 2), "float32"),
            b: R.Tensor((2, 8), "float32"),
        ):
            with R.dataflow():
                w = R.matmul(a, b)
                y = R.matmul(x, w)
                R.output(y)
            return y

    @I.ir_module
    class Transposed:
        @R.function
        def main(
            x: R.Tensor((16, 8), "float32"),
            a: R.Tensor((8, 2), "float32"),
            b: R.Tensor((2, 8), "float32"),
        ):
            with R.dataflow():
                w = R.matmul(a, b)
                y = R.matmul(x, R.permute_dims(w))
                R.output(y)
            return y

    for mod in (Left, Transposed):
        _compare(mod, transform.AdjustMatmulOrder())
        new = transform.AdjustMatmulOrder()(mod)["main"]
        products = [
            b.value.struct_info.shape.values
            for b in new.body.blocks[0].bindings
            if isinstance(b.value, relax.Call) and b.value.op.name == "relax.matmul"
        ]
        assert [int(p[-1]) for p in products] == [2, 8]


def test_factors_of_unknown_batch_are_ordered_by_bounds() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(
            x: R.Tensor(("n", 64), "float32"),
            a: R.Tensor((64, 4), "float32"),
            b: R.Tensor((4, 64), "float32"),
        ):
            with R.dataflow():
                w = R.matmul(a, b)
                y = R.matmul(x, w)
                R.output(y)
            return y

    new = transform.AdjustMatmulOrder()(Mod)
    assert int(new["main"].body.blocks[0].bindings[0].value.struct_info.shape.values[-1]) == 4


def test_products_with_sums_are_expanded_unless_these_are_constant() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(
            x: R.Tensor((2, 3), "float32"),
            a: R.Tensor((3, 4), "float32"),
            b: R.Tensor((3, 4), "float32"),
        ):
            with R.dataflow():
                y = R.matmul(x, R.add(a, b))
                R.output(y)
            return y

    assert _compare(Mod, transform.ExpandMatmulOfSum()) == {"matmul": 2, "add": 1}
    fixed = tvm.IRModule({"main": Mod["main"].with_attr("num_input", 1)})
    assert transform.ExpandMatmulOfSum()(fixed)["main"] is fixed["main"]


def test_results_are_taken_instead_of_weights() -> None:
    @I.ir_module
    class Columns:
        @R.function
        def main(
            x: R.Tensor((2, 3), "float32"),
            table: R.Tensor((3, 5), "float32"),
            routing: R.Tensor((4,), "int64"),
        ):
            with R.dataflow():
                y = R.matmul(x, R.take(table, routing, axis=1))
                R.output(y)
            return y

    @I.ir_module
    class Batch:
        @R.function
        def main(
            x: R.Tensor((4, 2, 3), "float32"),
            table: R.Tensor((2, 3, 5), "float32"),
            routing: R.Tensor((4,), "int64"),
        ):
            with R.dataflow():
                y = R.matmul(x, R.take(table, routing, axis=0))
                R.output(y)
            return y

    assert _compare(Columns, transform.ReorderTakeAfterMatmul()) == {"matmul": 1, "take": 1}
    new = transform.ReorderTakeAfterMatmul()(Batch)
    assert new["main"].body.blocks[0].bindings[-1].value.op.name == "relax.take"
    _compare(Batch, transform.ReorderTakeAfterMatmul())


def test_reshapes_in_a_row_are_one() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((2, 6), "float32")):
            with R.dataflow():
                a = R.reshape(x, (3, 4))
                b = R.reshape(a, (2, 6))
                c = R.exp(b)
                d = R.reshape(c, (2, 2, 3))
                e = R.reshape(d, (12,))
                R.output(e)
            return e

    assert _compare(Mod, transform.RemoveRedundantReshape()) == {"exp": 1, "reshape": 1}


@pytest.mark.parametrize("name", ["exp", "erf", "tanh"])
def test_fast_functions_stay_near_exact_ones(name: str) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 5), "float32"))
    with builder.function("main", [x]):
        y = builder.emit(getattr(relax.op, name)(relax.op.nn.softmax(x, 0)))
        builder.emit_func_output(y)
    assert _compare(builder.get(), transform.FastMathTransform()) == {"call_tir": 2}


def test_passes_without_code_generators_say_so() -> None:
    with pytest.raises(TVMError, match="SplitCallTIRByPattern requires code generators"):
        transform.SplitCallTIRByPattern([], lambda *match: None)
