"""Kernels for several processors in one library."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import knobs, relay, te
from tvm.contrib.graph_executor import GraphModule
from tvm.driver.build_module import KERNEL_VERSIONS, build_lowered
from tvm.error import TVMError
from tvm.ir.module import IRModule

TARGET = "llvm -mcpu=x86-64 -versions=x86-64-v2"


def constant_function(value: float) -> IRModule:
    out = te.compute((4,), lambda i: tvm.tir.const(value, "float32"), name="out")
    return tvm.lower(te.create_schedule(out.op), [out], name="fill")


def library(target: str = TARGET, **versions: float) -> Any:
    """A function that tells which version it is of."""
    given = {name.replace("_", "-"): constant_function(value) for name, value in versions.items()}
    mod = constant_function(1.0).with_attr(KERNEL_VERSIONS, given)
    return build_lowered(mod, tvm.target.Target(target))


def told(module: Any) -> float:
    out = tvm.nd.empty((4,))
    module["fill"](out)
    return float(out.numpy()[0])


def test_the_last_version_that_can_run_is_taken() -> None:
    target = f"{TARGET},sapphirerapids"
    assert told(library(x86_64_v2=2.0)) == 2.0
    # no processor has both of these
    either = "llvm -mcpu=x86-64 -versions=x86-64-v2,alderlake,knl"
    assert told(library(either, x86_64_v2=2.0, alderlake=3.0, knl=4.0)) in (2.0, 3.0, 4.0)
    assert told(library(target, x86_64_v2=2.0, sapphirerapids=3.0)) in (2.0, 3.0)


def test_a_version_is_asked_for_by_name() -> None:
    with knobs.KERNEL_VERSION.scope("base"):
        assert told(library(x86_64_v2=2.0)) == 1.0
    target = "llvm -mcpu=x86-64 -versions=x86-64-v2,nehalem"
    with knobs.KERNEL_VERSION.scope("x86-64-v2"):
        assert told(library(target, x86_64_v2=2.0, nehalem=3.0)) == 2.0
    with knobs.KERNEL_VERSION.scope("of another library"):
        assert told(library(target, x86_64_v2=2.0, nehalem=3.0)) == 3.0


@pytest.mark.parametrize(
    ("wanted", "expected"), [("", 3.0), ("base", 1.0), ("x86-64-v2", 2.0), ("nehalem", 3.0)]
)
def test_the_loader_of_a_library_chooses(
    wanted: str, expected: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "llvm -mcpu=x86-64 -versions=x86-64-v2,nehalem"
    path = tmp_path / "fill.so"
    library(target, x86_64_v2=2.0, nehalem=3.0).export_library(str(path))
    monkeypatch.setenv("TVM_KERNEL_VERSION", wanted)
    assert told(tvm.runtime.load_module(str(path))) == expected


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_a_model_has_kernels_for_each_version(
    executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = relay.var("x", shape=(1, 16, 9, 9)), relay.var("w", shape=(48, 16, 1, 1))
    conv = relay.nn.conv2d(x, w, channels=48, kernel_size=(1, 1))
    mod = IRModule.from_expr(relay.Function([x, w], relay.nn.relu(conv)))
    rng = np.random.default_rng(0)
    data = rng.normal(size=(1, 16, 9, 9)).astype("float32")
    weights = rng.normal(size=(48, 16, 1, 1)).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(
            mod,
            "llvm -mcpu=x86-64-v3 -versions=x86-64-v4",
            params={"w": weights},
            executor=relay.backend.Executor(executor),
        )
    for version in ("", "base"):
        monkeypatch.setenv("TVM_KERNEL_VERSION", version)
        path = tmp_path / f"{version or 'best'}.so"
        lib.export_library(str(path))
        factory = tvm.runtime.load_module(str(path))["default"](tvm.cpu())
        is_aot = executor == "aot"
        module = (tvm.runtime.executor.AotModule if is_aot else GraphModule)(factory)
        module.set_input("x", data)
        module.run()
        expected = np.maximum(np.einsum("oi,nihw->nohw", weights[:, :, 0, 0], data), 0)
        np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_versions_share_the_widest_layout() -> None:
    x, w = relay.var("x", shape=(1, 32, 8, 8)), relay.var("w", shape=(32, 32, 3, 3))
    mod = IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w, padding=(1, 1))))
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm -mcpu=x86-64-v3 -versions=x86-64-v4")
    assert "[1,2,8,8,16]" in "".join(lib.get_graph_json().split())


def test_a_system_library_has_no_versions() -> None:
    out = te.compute((4,), lambda i: 1.0, name="out")
    runtime = relay.backend.Runtime("cpp", {"system-lib": True})
    with pytest.raises(TVMError, match="versions of kernels require a library that is loaded"):
        tvm.build(te.create_schedule(out.op), [out], TARGET, runtime=runtime)
