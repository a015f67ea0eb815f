"""What kernels reach of the machine's peaks."""

import numpy as np
import pytest

import tvm
from tvm import relay, rpc
from tvm.contrib import peak
from tvm.error import TVMError
from tvm.runtime import profiler_vm
from tvm.runtime.profiling import Count, Duration, Ratio, Report
from tvm.utils import roofline
from tvm.utils.roofline import x86


@pytest.fixture
def peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 1e9 operations and 1e9 bytes a second: measuring one takes seconds."""
    monkeypatch.setattr(x86, "estimate_peak_fma_vector_flops", lambda *_: 1e9)
    monkeypatch.setattr(x86, "estimate_peak_bandwidth_dram", lambda *_: 1e9)


def dense() -> tvm.IRModule:
    x, w = relay.var("x", shape=(64, 128)), relay.var("w", shape=(32, 128))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))


@pytest.mark.usefixtures("peaks")
@pytest.mark.parametrize("given", ["dict", "list", "none"])
def test_kernels_are_compared_with_the_roof(given: str) -> None:
    w = np.ones((32, 128), "float32")
    x = tvm.nd.array(np.ones((64, 128), "float32"))
    params = {"dict": {"w": tvm.nd.array(w)}, "list": [x], "none": None}[given]
    for _ in range(2):  # kernels that are known already are compared too
        report = tvm.utils.roofline_analysis(dense(), params, "llvm", tvm.cpu())
        (call,) = [call for call in report.calls if "dense" in str(call["Name"])]
        assert call["Estimated FLOPs"].value >= 2 * 64 * 128 * 32 and call["Bound"] == "compute"
        seconds = call["Duration (us)"].value / 1e6
        expected = call["Estimated FLOPs"].value / seconds
        assert call["FLOP/s"].value == pytest.approx(expected)
        assert call["Percent of Theoretical Optimal"].ratio == pytest.approx(expected / 1e9 * 100)
    assert report.configuration["Estimated Peak FLOP/s (float32 FMA)"] == Ratio(1e9)
    assert "Percent of Theoretical Optimal" in report.table() and "Bound" in str(report)


@pytest.mark.usefixtures("peaks")
def test_bytes_are_those_of_the_arguments() -> None:
    shapes = "float32[4, 8], int8[16], float64[], float32[0, 4]"
    call = {
        "Name": "f",
        "Argument Shapes": shapes,
        "Duration (us)": Duration(1.0),
        "Count": Count(1),
    }
    body = tvm.tir.Evaluate(tvm.tir.Var("x", "float32") * 2.0)
    found = roofline.roofline_from_existing(
        Report([call], {}, {}),
        {tvm.ir.GlobalVar("f"): tvm.tir.PrimFunc([], body)},
        "llvm",
        tvm.cpu(),
    )
    assert found.calls[0]["Bandwidth (B/s)"].value == pytest.approx((128 + 16 + 8) * 1e6)
    assert found.calls[0]["Bound"] == "memory"


@pytest.mark.usefixtures("peaks")
def test_kernels_of_open_extents_stay_as_they_are() -> None:
    x = relay.var("x", shape=(relay.Any(), 4))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    saved = roofline.SaveLoweredTIR()
    with tvm.transform.PassContext(instruments=[saved]):
        executable = relay.vm.compile(mod, "llvm")
    machine = profiler_vm.VirtualMachineProfiler(executable, tvm.cpu())
    report = machine.profile(np.zeros((2, 4), "float32"), func_name="main")
    found = roofline.roofline_from_existing(report, saved.functions, "llvm", tvm.cpu())
    (call,) = [call for call in found.calls if call["Name"] == "vm_mod_fused_nn_relu"]
    assert "Bound" not in call


def test_peaks_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(x86, "REPEAT", 1)
    monkeypatch.setattr(x86, "STEPS", 64)
    monkeypatch.setattr(x86, "BYTES", 1 << 20)
    target = tvm.target.Target("llvm -mcpu=x86-64-v2")
    assert x86.estimate_peak_fma_vector_flops(target, tvm.cpu()) > 1e6
    assert x86.estimate_peak_fma_vector_flops(target, tvm.cpu(), None, "float64", 2, 16) > 1e6
    assert x86.estimate_peak_bandwidth_dram(target, tvm.cpu(), vec_width=4) > 1e6


def test_machines_of_sessions_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(x86, "REPEAT", 1)
    monkeypatch.setattr(x86, "STEPS", 64)
    monkeypatch.setattr(x86, "BYTES", 1 << 20)
    with rpc.Server(port=0) as server:
        remote = rpc.connect("127.0.0.1", server.port)
        report = tvm.utils.roofline_analysis(dense(), None, "llvm", remote.cpu(), remote=remote)
    (call,) = [c for c in report.calls if "Percent of Theoretical Optimal" in c]
    assert call["Percent of Theoretical Optimal"].ratio > 0


def test_bandwidths_and_speeds_are_measured_by_data_type() -> None:
    where = ("llvm", "llvm", None, tvm.cpu(), 1)
    assert peak.measure_bandwidth_sum(1 << 16, 16, 64, "float", 32, 4, *where) > 0
    assert peak.measure_compute_mad(1 << 12, 64, "int", 16, 8, *where) > 0


def test_cuda_devices_are_rejected() -> None:
    with pytest.raises(TVMError, match="requires a CUDA device"):
        roofline.cuda.estimate_peak_bandwidth_global_mem(tvm.target.Target("cuda"), tvm.cpu())
