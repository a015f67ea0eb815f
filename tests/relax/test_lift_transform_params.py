"""What depends on parameters alone is computed beforehand, and runs give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.error import TVMError
from tvm.ir import assert_structural_equal
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Model:
    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"), w: R.Tensor((4, 3), "float32"), b: R.Tensor((4,), "float32")
    ) -> R.Tensor((2, 4), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            t = R.permute_dims(w, [1, 0])
            y = R.matmul(x, t)
            z = R.add(y, b)
            R.output(z)
        return z


def machine(mod: tvm.IRModule) -> relax.VirtualMachine:
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


def lifted_run(mod: tvm.IRModule, x: np.ndarray, params: list[np.ndarray], name: str) -> Any:
    vm = machine(mod)
    bundle = tvm.runtime.container.ADT(0, [tvm.nd.array(p) for p in params])
    made = vm[name](bundle)
    return vm["main"](tvm.nd.array(x), *[made[i] for i in range(len(made))]).numpy()


def test_parameters_are_transformed_before_runs() -> None:
    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((2, 3), "float32"),
            b: R.Tensor((4,), "float32"),
            t: R.Tensor((3, 4), "float32"),
        ) -> R.Tensor((2, 4), "float32"):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                y = R.matmul(x, t)
                z = R.add(y, b)
                R.output(z)
            return z

        @R.function
        def main_transform_params(
            params: R.Tuple(R.Tensor((4, 3), "float32"), R.Tensor((4,), "float32")),
        ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((3, 4), "float32")):
            R.func_attr({"num_input": 0})
            with R.dataflow():
                w = params[0]
                t = R.permute_dims(w, [1, 0])
                b = params[1]
                gv = (b, t)
                R.output(gv)
            return gv

    after = transform.LiftTransformParams()(Model)
    assert_structural_equal(after, Expected)
    assert_structural_equal(transform.LiftTransformParams()(after), after)
    rng = np.random.default_rng(0)
    x, w, b = [rng.random(s, "float32") for s in ((2, 3), (4, 3), 4)]
    got = lifted_run(after, x, [w, b], "main_transform_params")
    np.testing.assert_allclose(got, x @ w.T + b, rtol=1e-5)


def test_parameters_are_let_go_of() -> None:
    with tvm.transform.PassContext(config={"relax.lift_transform_params.consume_params": True}):
        after = transform.LiftTransformParams()(Model)
    assert after.script().count("tuple_reset_item") == 2
    x, w, b = [np.ones(s, "float32") for s in ((2, 3), (4, 3), 4)]
    got = lifted_run(after, x, [w, b], "main_transform_params")
    np.testing.assert_allclose(got, x @ w.T + b)


def test_symbolic_variables_of_parameters_are_handed_on() -> None:
    @I.ir_module
    class Symbolic:
        @R.function
        def main(x: R.Tensor((1,), "int64"), w: R.Tensor(("n",), "int64")) -> R.Tensor(
            ("n",), "int64"
        ):
            R.func_attr({"num_input": 1})
            n = T.int64()
            with R.dataflow():
                s = R.sum(w, keepdims=True)
                y = R.broadcast_to(R.add(x, s), (n,))
                R.output(y)
            return y

    after = transform.LiftTransformParams()(Symbolic)
    assert relax.analysis.well_formed(after)
    assert len(after["main"].params) == 3


@I.ir_module
class Two:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor(
        (2, 4), "float32"
    ):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            t = R.permute_dims(w, [1, 0])
            y = R.matmul(x, t)
            R.output(y)
        return y

    @R.function
    def other(x: R.Tensor((5, 3), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor(
        (5, 4), "float32"
    ):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            e = R.exp(w)
            t = R.permute_dims(w, [1, 0])
            y = R.matmul(x, t)
            z = R.add(y, R.sum(e))
            R.output(z)
        return z


@pytest.mark.parametrize("shared", [True, ["main", "other"]])
def test_functions_share_what_all_of_them_transform(shared: Any) -> None:
    after = transform.LiftTransformParams(shared)(Two)
    assert relax.analysis.well_formed(after)
    names = {g.name_hint for g in after.functions}
    assert names == {"main", "other", "transform_params"}
    assert len(after["main"].params) == len(after["other"].params) == 3
    rng = np.random.default_rng(0)
    x, w = rng.random((2, 3), "float32"), rng.random((4, 3), "float32")
    got = lifted_run(after, x, [w], "transform_params")
    np.testing.assert_allclose(got, x @ w.T, rtol=1e-5)


def test_functions_that_share_have_the_same_parameters() -> None:
    mod = Two.clone()
    mod["third"] = Model["main"].with_attr("global_symbol", "third")
    with pytest.raises(TVMError, match="requires functions with the same parameters"):
        transform.LiftTransformParams(True)(mod)
