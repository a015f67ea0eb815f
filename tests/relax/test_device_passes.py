"""Devices of tensors, workspaces, and what is known of parameters."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.relax.agreement import run
from tvm import relax
from tvm.error import TVMError
from tvm.ir import assert_structural_equal
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R


def test_tensors_live_where_hints_say() -> None:
    @I.ir_module
    class Hinted:
        I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0)]})

        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.hint_on_device(x, tvm.cpu())
                b = R.add(a, y)
                c = R.hint_on_device(b, tvm.cuda())
                d = R.multiply(c, c)
                R.output(d)
            return d

    @I.ir_module
    class Expected:
        I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda", 0)]})

        @R.function
        def main(
            x: R.Tensor((2, 3), "float32", "llvm"), y: R.Tensor((2, 3), "float32", "llvm")
        ) -> R.Tensor((2, 3), "float32", "cuda"):
            with R.dataflow():
                a: R.Tensor((2, 3), "float32", "llvm") = x
                b: R.Tensor((2, 3), "float32", "llvm") = R.add(a, y)
                c: R.Tensor((2, 3), "float32", "cuda") = R.to_vdevice(b, "cuda")
                d: R.Tensor((2, 3), "float32", "cuda") = R.multiply(c, c)
                R.output(d)
            return d

    assert_structural_equal(transform.RealizeVDevice()(Hinted), Expected)


def test_devices_spread_from_results() -> None:
    @I.ir_module
    class Placed:
        I.module_global_infos({"vdevice": [I.vdevice("llvm")]})

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32", "llvm"):
            with R.dataflow():
                y = R.exp(x)
                z = R.negative(y)
                R.output(z)
            return z

    after = transform.RealizeVDevice()(Placed)
    assert after["main"].params[0].struct_info.vdevice.target.kind.name == "llvm"
    np.testing.assert_allclose(run(after, np.zeros(4, "float32")), -np.ones(4))


def test_hints_name_devices_of_the_module() -> None:
    @I.ir_module
    class Unknown:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                y = R.hint_on_device(x, tvm.cpu())
                R.output(y)
            return y

    with pytest.raises(TVMError, match="no vdevice for"):
        transform.RealizeVDevice()(Unknown)


def test_parameters_become_what_a_function_says() -> None:
    @I.ir_module
    class Model:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 2), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                R.output(y)
            return y

    def info_of(var: relax.Var) -> relax.StructInfo | None:
        return relax.TensorStructInfo((3, 4)) if var.name_hint == "x" else None

    after = transform.UpdateParamStructInfo(info_of)(Model)
    assert after["main"].ret_struct_info == relax.TensorStructInfo((3, 2))
    assert relax.analysis.well_formed(after)


def test_external_functions_share_a_workspace() -> None:
    @I.ir_module
    class External:
        @R.function(private=True)
        def large(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"WorkspaceSize": 256})
            with R.dataflow():
                y = R.exp(x)
                R.output(y)
            return y

        @R.function(private=True)
        def small(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"WorkspaceSize": 64})
            with R.dataflow():
                y = R.negative(x)
                R.output(y)
            return y

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = External
            with R.dataflow():
                y = cls.large(x)
                z = cls.small(y)
                R.output(z)
            return z

    after = transform.AllocateWorkspace()(External)
    assert relax.analysis.well_formed(after)
    assert [len(after[name].params) for name in ("large", "small", "main")] == [2, 2, 1]
    assert after["main"].script().count("alloc_tensor") == 1
    assert "R.shape([256])" in after["main"].script()


@pytest.mark.parametrize(
    "make",
    [
        transform.MetaScheduleApplyDatabase,
        lambda: transform.MetaScheduleTuneTIR("x", 1),
        lambda: transform.MetaScheduleTuneIRMod({}, "x", 1),
        transform.FewShotTuning,
    ],
)
def test_tuning_by_meta_schedule_is_refused(make) -> None:
    with pytest.raises(TVMError, match="requires meta_schedule, which this package does not have"):
        make()


@I.ir_module
class TwoDevices:
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("c")]})

    @R.function
    def main(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32", "llvm")):
        with R.dataflow():
            x = R.exp(R.add(a, a))
            y = R.exp(R.add(b, b))
            R.output(x, y)
        return (x, y)


def test_loop_programs_are_for_the_target_of_their_device() -> None:
    after = relax.transform.LegalizeOps()(TwoDevices)
    targets = {g.name_hint: f.attrs.get("target") for g, f in after.functions.items()}
    assert str(targets["add_llvm"].kind.name) == str(targets["tir_exp_llvm"].kind.name) == "llvm"
    assert targets["add"] is targets["tir_exp"] is None
    fused = relax.get_pipeline("zero")(TwoDevices)
    found = sorted(
        [str(f.attrs.get("target", "")) for f in fused.functions.values() if not isinstance(f, relax.Function)]
    )  # fmt: skip
    assert found[0] == "" and found[1].startswith("llvm") and len(found) == 2

    vm = relax.VirtualMachine(relax.build(fused, "llvm"), tvm.cpu())
    a, b = np.array([0, 1, 2, 3], "float32"), np.array([1, 0, -1, 2], "float32")
    for found, given in zip(vm["main"](tvm.nd.array(a), tvm.nd.array(b)), (a, b), strict=True):
        np.testing.assert_allclose(found.numpy(), np.exp(2 * given), rtol=1e-5)


def test_loop_programs_that_nothing_calls_go() -> None:
    @I.ir_module
    class Before:
        I.module_global_infos({"vdevice": [I.vdevice("llvm")]})

        @R.function
        def main(b: R.Tensor((4,), "float32", "llvm")):
            return R.exp(b)

    after = relax.transform.LegalizeOps()(Before)
    assert [g.name_hint for g in after.functions] == ["main", "tir_exp_llvm"]
