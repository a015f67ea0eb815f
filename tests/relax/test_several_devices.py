"""Programs whose tensors live on several devices of the machine."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class TwoDevices:
    I.module_global_infos({"vdevice": [I.vdevice("llvm", 1), I.vdevice("llvm", 0)]})

    @R.function
    def main(
        x: R.Tensor((2, 3), "float32", "llvm:0"),
        y: R.Tensor((3, 4), "float32", "llvm:0"),
        z: R.Tensor((4, 5), "float32", "llvm:1"),
    ) -> R.Tensor((2, 5), "float32", "llvm:1"):
        with R.dataflow():
            first = R.matmul(x, y)
            moved = R.to_vdevice(first, "llvm:1")
            result = R.nn.relu(R.matmul(moved, z))
            R.output(result)
        return result


@pytest.mark.parametrize("is_kernel", [True, False])
def test_results_live_where_their_operands_do(is_kernel: bool) -> None:
    mod = TwoDevices if is_kernel else relax.get_pipeline("zero")(TwoDevices)
    devices = [tvm.cpu(info.vdevice_id) for info in TwoDevices.global_infos["vdevice"]]
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), devices)
    homes = [tvm.cpu(p.struct_info.vdevice.vdevice_id) for p in TwoDevices["main"].params]
    values = [np.random.rand(*s).astype("float32") for s in ((2, 3), (3, 4), (4, 5))]
    args = [tvm.nd.array(v, home) for v, home in zip(values, homes, strict=True)]
    result = machine["main"](*args)
    assert result.device == homes[2]
    np.testing.assert_allclose(result.numpy(), values[0] @ values[1] @ values[2], rtol=1e-5)
