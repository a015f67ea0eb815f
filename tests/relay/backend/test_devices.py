"""Programs for several devices: each kernel runs where its values live."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.op.annotation import on_device
from tvm.relay.prelude import Prelude
from tvm.runtime.executor import AotModule
from tvm.runtime.profiler_vm import VirtualMachineProfiler
from tvm.runtime.vm import Executable, VirtualMachine

CPU, EXT = tvm.cpu(0), tvm.ext_dev(0)
TARGETS = {"cpu": "llvm", "ext_dev": "ext_dev"}
A, B, C = np.random.default_rng(0).random((3, 8), "float32") + 1
x, y = relay.var("x", shape=(8,)), relay.var("y", shape=(8,))


def run_graph(func: Any, target: Any = TARGETS, level: int = 3) -> tuple[list[np.ndarray], Any]:
    with tvm.transform.PassContext(opt_level=level):
        lib = relay.build(func, target)
    model = graph_executor.GraphModule(lib["default"](CPU, EXT))
    model.run(x=A, y=B)
    return [model.get_output(i).numpy() for i in range(model.get_num_outputs())], lib


def run_vm(program: Any, *args: Any, target: Any = TARGETS, devices: Any = (CPU, EXT)) -> Any:
    mod = program if isinstance(program, tvm.IRModule) else tvm.IRModule.from_expr(program)
    return VirtualMachine(relay.vm.compile(mod, target), list(devices)).run(*args)


def close(found: Any, expected: np.ndarray) -> None:
    found = found if isinstance(found, np.ndarray) else found.numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "target",
    [
        TARGETS,
        [tvm.target.Target("llvm"), tvm.target.Target("ext_dev")],
        {CPU: "llvm", EXT: "llvm"},
        {1: "llvm", 12: "ext_dev -mcpu=x86-64"},
    ],
)
@pytest.mark.parametrize("level", [0, 3])
def test_graphs_run_on_two_devices(target: Any, level: int) -> None:
    body = on_device(relay.sqrt(relay.log(x) + relay.const(C)), EXT) * y + relay.const(C)
    (found,), lib = run_graph(relay.Function([x, y], body), target, level)
    close(found, np.sqrt(np.log(A) + C) * B + C)
    graph = json.loads(lib.graph_json)
    places = dict(
        zip([n["name"] for n in graph["nodes"]], graph["attrs"]["device_index"][1], strict=True)
    )
    assert places["x"] == 12 and places["y"] == 1 and places["copy"] == 1
    assert {1, 12} == {places[p] for p in lib.params}  # one constant on each
    ids = dict(zip(places, graph["attrs"]["storage_id"][1], strict=True))
    for one, other in [(a, b) for a in places for b in places if places[a] != places[b]]:
        assert ids[one] != ids[other]


def test_the_fallback_device_is_the_context_s() -> None:
    with tvm.transform.PassContext(config={"relay.fallback_device_type": 12}):
        lib = relay.build(relay.Function([x, y], on_device(relay.exp(x), CPU) + y), TARGETS)
    model = graph_executor.GraphModule(lib["default"](CPU, EXT))
    model.run(x=A, y=B)
    close(model.get_output(0), np.exp(A) + B)
    assert json.loads(lib.graph_json)["attrs"]["device_index"][1] == [1, 12, 1, 12, 12]


def test_tuples_are_copied_field_by_field() -> None:
    halves = on_device(relay.split(x, 2).astuple(), EXT)
    body = relay.TupleGetItem(halves, 0) + on_device(relay.TupleGetItem(halves, 1), EXT)
    close(run_graph(relay.Function([x, y], body))[0][0], A[:4] + A[4:])


def test_values_elsewhere_are_results_and_arrays_of_their_device() -> None:
    body = relay.Tuple([on_device(relay.exp(x), EXT, constrain_result=True)])
    lib = relay.build(relay.Function([x], body), TARGETS)
    model = graph_executor.create(lib.graph_json, lib.lib, [CPU, EXT])
    model.run(x=A)
    assert model.get_output(0).device == EXT
    close(model.get_output(0), np.exp(A))
    with pytest.raises(ValueError, match="needs a device of kind ext_dev, which was not given"):
        graph_executor.GraphModule(lib["default"](CPU))


def test_saved_libraries_run_on_two_devices(tmp_path: Path) -> None:
    func = relay.Function([x, y], on_device(relay.exp(x), EXT) + y)
    relay.build(func, TARGETS).export_library(tmp_path / "graph.so")
    loaded = tvm.runtime.load_module(tmp_path / "graph.so")
    model = graph_executor.GraphModule(loaded["default"](EXT, CPU))
    model.run(x=A, y=B)
    close(model.get_output(0), np.exp(A) + B)
    code, lib = relay.vm.compile(tvm.IRModule.from_expr(func), TARGETS).save()
    lib.export_library(tmp_path / "vm.so")
    program = Executable.load_exec(code, tvm.runtime.load_module(tmp_path / "vm.so"))
    close(VirtualMachine(program, [CPU, EXT]).run(A, B), np.exp(A) + B)


@pytest.mark.parametrize("link_params", [True, False])
def test_aot_models_copy_between_devices(link_params: bool, tmp_path: Path) -> None:
    func = relay.Function([x, y], on_device(relay.exp(x) + relay.const(C), EXT) * y)
    executor = relay.backend.Executor("aot", {"link-params": link_params})
    lib = relay.build(func, TARGETS, executor=executor)
    lib.export_library(tmp_path / "aot.so")
    for factory in (lib, tvm.runtime.load_module(tmp_path / "aot.so")):
        model = AotModule(factory["default"](CPU, EXT))
        model.set_input("x", A)
        model.set_input("y", B)
        for _ in range(2):
            model.run()
        close(model.get_output(0), (np.exp(A) + C) * B)
    with pytest.raises(tvm.error.TVMError, match="got the unpacked interface"):
        relay.build(
            func, TARGETS, executor=relay.backend.Executor("aot", {"unpacked-api": True}),
            runtime=relay.backend.Runtime("crt"),
        )  # fmt: skip


def test_shapes_of_values_elsewhere_are_found_when_the_program_runs() -> None:
    rows = relay.TensorType((relay.Any(), 4))
    a, b = relay.var("a", rows), relay.var("b", rows)
    shape = relay.var("shape", shape=(2,), dtype="int64")
    data = np.arange(12, dtype="float32").reshape(3, 4)
    joined = on_device(relay.concatenate([relay.exp(a), b], 0), EXT) + relay.const(1.0)
    close(
        run_vm(relay.Function([a, b], joined), data, data), np.concatenate([np.exp(data), data]) + 1
    )
    found = on_device(relay.argwhere(a), EXT) + relay.const(1, "int32")
    close(run_vm(relay.Function([a], found), data), np.argwhere(data) + 1)
    reshaped = on_device(relay.reshape(relay.exp(a), shape), EXT)
    close(
        run_vm(relay.Function([a, shape], reshaped), data, np.array([2, 6])),
        np.exp(data).reshape(2, 6),
    )


def decided_elsewhere() -> relay.Function:
    far = on_device(relay.max(x) > relay.const(9.0), EXT, constrain_result=True)
    return relay.Function([x, y], relay.If(far, on_device(relay.exp(x), EXT), y) + y)


def looping() -> tvm.IRModule:
    mod, loop = tvm.IRModule(), relay.GlobalVar("loop")
    n, total = relay.var("n", "int32"), relay.var("total", shape=(8,))
    more = on_device(total + relay.const(1.0), EXT, constrain_result=True)
    again = loop(n - relay.const(1), more)
    body = relay.If(relay.equal(n, relay.const(0)), total, again)
    mod[loop] = relay.Function([n, total], body, relay.TensorType((8,)))
    start = on_device(relay.exp(x), CPU)
    mod["main"] = relay.Function([x, y], on_device(loop(relay.const(5), start), EXT) + y)
    return mod


def closing_over() -> relay.Function:
    f, z = relay.var("f"), relay.var("z", shape=(8,))
    inner = relay.Function([z], on_device(relay.exp(z) + y, EXT))
    uses = f(on_device(relay.sqrt(x), CPU)) + f(on_device(relay.log(x), CPU))
    return relay.Function([x, y], relay.Let(f, inner, uses))


def listed() -> tvm.IRModule:
    mod = tvm.IRModule()
    Prelude(mod)
    _, cons, nil = mod.get_type("List")
    values = cons(on_device(relay.exp(x), EXT), cons(y, nil()))
    mod["main"] = relay.Function([x, y], mod.get_global_var("hd")(values) + x)
    return mod


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (decided_elsewhere, B + B),
        (looping, np.exp(A) + 5 + B),
        (closing_over, np.exp(np.sqrt(A)) + A + 2 * B),
        (listed, np.exp(A) + A),
    ],
)
def test_control_flow_runs_across_devices(make: Callable[[], Any], expected: np.ndarray) -> None:
    close(run_vm(make(), A, B), expected)


def test_whole_programs_run_on_the_extension_device() -> None:
    func = relay.Function([x, y], relay.exp(x) + y)
    found = run_vm(func, A, B, target="ext_dev", devices=[EXT])
    assert found.device == EXT
    close(found, np.exp(A) + B)
    lib = relay.build(func, "ext_dev")
    model = graph_executor.GraphModule(lib["default"](EXT))
    model.run(x=A, y=B)
    close(model.get_output(0), np.exp(A) + B)


def test_two_processors_compile_one_program() -> None:
    old, new = tvm.target.Target("llvm -mcpu=x86-64"), tvm.target.Target("llvm -mcpu=x86-64-v3")
    place = tvm.target.VirtualDevice(CPU, new)
    func = relay.Function([x, y], on_device(relay.exp(x), place) * relay.const(C) + y)
    (found,), lib = run_graph(func, [old, new])
    close(found, np.exp(A) * C + B)
    (other,) = lib.lib.imported_modules
    assert "vfmadd" in other.get_source("asm") and "vfmadd" not in lib.lib.get_source("asm")


def test_profiles_tell_the_devices_of_kernels() -> None:
    func = relay.Function([x, y], on_device(relay.exp(x), EXT) + y)
    exe = relay.vm.compile(tvm.IRModule.from_expr(func), TARGETS)
    report = VirtualMachineProfiler(exe, [CPU, EXT]).profile(A, B, func_name="main")
    devices = {call["Name"]: call["Device"] for call in report.calls}
    assert devices["vm_mod_fused_exp"] == "ext_dev0" and devices["vm_mod_fused_add"] == "cpu0"
    assert devices["VM::AllocStorage"] in ("ext_dev0", "cpu0")


def test_gradients_go_back_over_the_copies() -> None:
    for copied in (relay.device_copy(relay.exp(x), EXT, CPU), on_device(relay.exp(x), EXT)):
        func = relay.Function([x], copied * relay.const(C))
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
        grad = relay.transform.gradient(mod["main"], mod, mode="first_order")
        found = relay.create_executor("debug").evaluate(grad)(A)
        close(found[1][0], np.exp(A) * C)


def test_devices_without_a_target_are_rejected() -> None:
    func = relay.Function([x], on_device(relay.exp(x), EXT))
    with pytest.raises(tvm.error.OpNotImplemented, match="placed on ext_dev, .* compiled for llvm"):
        relay.build(func, "llvm")
    cell = on_device(relay.RefCreate(relay.exp(x)), EXT)
    with pytest.raises(tvm.error.TVMError, match="device_copy requires tensors"):
        run_vm(relay.Function([x], relay.RefRead(cell) + relay.const(1.0)), A)
