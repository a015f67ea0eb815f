"""Executables and machines: saving, loading, running, profiling."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.runtime.native_library import INCLUDES, RUNTIME_OPTIONS
from tvm import relay
from tvm.contrib import cc
from tvm.runtime import profiler_vm
from tvm.runtime.vm import Executable, VirtualMachine

X = np.arange(6, dtype="float32").reshape(2, 3)
Y = np.full((2, 3), 2, "float32")


@pytest.fixture(scope="module")
def exe() -> Executable:
    """(x + y) * w, and x - y."""
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    weight = relay.const(np.full((2, 3), 3, "float32"))
    c = relay.var("c", shape=(), dtype="bool")
    body = relay.If(c, relay.nn.relu(relay.add(x, y)) * weight, relay.subtract(x, y))
    return relay.vm.compile(relay.Function([x, y, c], body), "llvm")


@pytest.fixture
def machine(exe: Executable) -> VirtualMachine:
    return VirtualMachine(exe, tvm.cpu())


def test_tables_are_shown(exe: Executable) -> None:
    assert exe.globals == ["main"]
    assert exe.get_function_params("main") == ["x", "y", "c"]
    assert any("subtract" in name for name in exe.primitive_ops)
    assert "VM Function[0]: main(x, y, c)" in exe.bytecode and "if $" in exe.bytecode
    assert "VM Const[0]" in exe.constants and "float32" in exe.constants
    assert "VirtualDevice[0]: device type 1, id 0 (using as host)" in exe.virtual_devices
    assert "Primitive ops (#" in exe.stats and "PackedFunc[0]" in exe.primitives


def test_a_saved_program_runs_again(exe: Executable, tmp_path: Path) -> None:
    code, lib = exe.save()
    lib.export_library(tmp_path / "kernels.so")
    loaded = Executable.load_exec(code, tvm.runtime.load_module(tmp_path / "kernels.so"))
    assert loaded.bytecode == exe.bytecode
    found = VirtualMachine(loaded, tvm.cpu()).run(X, Y, True)
    np.testing.assert_allclose(found.numpy(), (X + Y) * 3)


def test_an_exported_program_is_one_library(exe: Executable, tmp_path: Path) -> None:
    exe.mod.export_library(tmp_path / "program.so")
    loaded = tvm.runtime.load_module(tmp_path / "program.so")
    assert loaded.type_key == "VMExecutable"
    found = VirtualMachine(loaded, tvm.cpu()).run(X, Y, False)
    np.testing.assert_allclose(found.numpy(), X - Y)


def test_programs_tell_their_inputs(exe: Executable, tmp_path: Path) -> None:
    exe.mod.export_library(tmp_path / "program.so")
    loaded = Executable(tvm.runtime.load_module(tmp_path / "program.so"))
    for each in (exe, loaded, Executable.load_exec(*exe.save())):
        shapes, dtypes = each.get_input_info()
        assert shapes == {"x": (2, 3), "y": (2, 3), "c": ()}
        assert dtypes == {"x": "float32", "y": "float32", "c": "bool"}
        assert each.get_output_names() == []  # the function does not say
    with pytest.raises(ValueError, match="no function 'other'"):
        exe.get_input_info("other")


def test_open_dimensions_of_inputs_are_none() -> None:
    x = relay.var("x", shape=(relay.Any(), 3), dtype="int64")
    exe = relay.vm.compile(relay.Function([x], x + x), "llvm")
    assert exe.get_input_info() == ({"x": (None, 3)}, {"x": "int64"})


def test_every_cut_of_a_program_is_rejected(exe: Executable) -> None:
    code, lib = exe.save()
    for end in range(0, len(code), 7):
        with pytest.raises(ValueError, match="executable"):
            Executable.load_exec(code[:end], lib)


def test_damaged_bytes_are_rejected(exe: Executable) -> None:
    code, lib = exe.save()
    rng = np.random.default_rng(0)
    for _ in range(400):
        damaged = bytearray(code)
        damaged[rng.integers(len(code))] ^= 1 << rng.integers(8)
        with pytest.raises(ValueError):
            Executable.load_exec(damaged, lib)


def test_bytes_begin_as_the_classic_format_does(exe: Executable) -> None:
    code, _ = exe.save()
    assert int.from_bytes(code[:8], "little") == 0xD225DE2F4214151E
    size = int.from_bytes(code[8:16], "little")
    assert bytes(code[16 : 16 + size]) == b"0.18.0"
    devices = code[16 + size :]
    assert int.from_bytes(devices[:8], "little") == 1
    assert [int.from_bytes(devices[i : i + 4], "little") for i in (8, 12)] == [1, 0]
    host, names = devices[24:28], devices[28:]  # behind an empty memory scope
    assert int.from_bytes(host, "little") == 0
    assert int.from_bytes(names[:8], "little") == len(exe.globals)


def test_programs_with_a_wide_number_of_the_host_load(
    exe: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, lib = exe.save()
    place = 16 + int.from_bytes(code[8:16], "little") + 28
    wide = bytes(code[:place]) + bytes(4) + bytes(code[place:])
    monkeypatch.setenv("TVM_CHECKSUM", "0")  # it is that of other bytes
    found = VirtualMachine(Executable.load_exec(wide, lib), tvm.cpu()).run(X, Y, False)
    np.testing.assert_allclose(found.numpy(), X - Y)


def test_inputs_are_set_by_place_and_name(machine: VirtualMachine) -> None:
    machine.set_input("main", X, y=Y, c=True)
    np.testing.assert_allclose(machine.invoke("main").numpy(), (X + Y) * 3)
    machine.set_one_input("main", "c", False)
    machine.set_one_input("main", 0, Y)
    np.testing.assert_allclose(machine.invoke("main").numpy(), 0 * X)
    assert machine.get_input_index("y") == 1 and machine.get_input_index("z") == -1


def test_missing_and_unknown_inputs_are_named(machine: VirtualMachine, exe: Executable) -> None:
    with pytest.raises(ValueError, match=r"takes 3 inputs, got 1"):
        machine.run(X)
    with pytest.raises(ValueError, match=r"got also \['z'\]"):
        machine.run(X, Y, z=1)
    with pytest.raises(ValueError, match="no function 'other'; it has 'main'"):
        machine.invoke("other")
    fresh = VirtualMachine(exe, tvm.cpu())
    fresh.set_one_input("main", "x", X)
    with pytest.raises(ValueError, match=r"input 1 \('y'\) of 'main' is not set"):
        fresh.invoke("main")
    with pytest.raises(TypeError, match="got str"):
        machine.run("text", Y, True)


def test_wrong_shapes_and_dtypes_are_rejected(machine: VirtualMachine) -> None:
    with pytest.raises(ValueError, match=r"needs shape\[0\] == 2, got 3"):
        machine.run(X.T.copy(), Y, True)
    with pytest.raises((TypeError, ValueError), match="float32"):
        machine.run(X.astype("int32"), Y, True)
    np.testing.assert_allclose(machine.run(X, Y, True).numpy(), (X + Y) * 3)


def test_results_stay_in_the_machine(machine: VirtualMachine) -> None:
    machine.invoke_stateful("main", X, Y, True)
    (found,) = machine.get_outputs()
    np.testing.assert_allclose(found.numpy(), (X + Y) * 3)


def test_results_are_left_in_given_arrays(machine: VirtualMachine) -> None:
    out = tvm.nd.empty((2, 3))
    machine.invoke_with_outputs("main", {"x": X, "y": Y, "c": True}, [out])
    np.testing.assert_allclose(out.numpy(), (X + Y) * 3)
    machine.set_outputs("main", tvm.nd.empty((3, 2)))
    with pytest.raises(ValueError, match=r"output 0 of 'main' is float32 of shape \(2, 3\)"):
        machine.invoke("main")


def address(array: tvm.nd.NDArray) -> int:
    return int(np.from_dlpack(array).ctypes.data)


def test_results_are_computed_in_given_arrays() -> None:
    x = relay.var("x", relay.TensorType((relay.Any(), 3)))
    c = relay.var("c", "bool")
    chosen = relay.If(c, relay.exp(x), relay.reshape(x + x, (-1, 3)))
    pair = relay.Tuple([relay.nn.dense(x, relay.const(np.eye(3, dtype="float32"))), chosen, x])
    exe = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x, c], pair)), "llvm")
    machine = VirtualMachine(exe, tvm.cpu())
    for choice, expected in ((True, np.exp(X)), (False, X + X)):
        given = [tvm.nd.empty((2, 3)) for _ in range(3)]
        machine.set_outputs("main", *given)
        found = machine.invoke("main", X, choice)
        for out, value in zip(given, (X, expected, X), strict=True):
            np.testing.assert_allclose(out.numpy(), value, rtol=1e-6)
        assert address(found[0]) == address(given[0])
    own = tvm.nd.array(X)
    machine.set_outputs("main", own, *[tvm.nd.empty((2, 3)) for _ in range(2)])
    np.testing.assert_allclose(machine.invoke("main", own, True)[1].numpy(), np.exp(X), rtol=1e-6)


def test_results_outlive_later_runs(machine: VirtualMachine) -> None:
    first = machine.run(X, Y, True)
    machine.run(2 * X, Y, True)
    np.testing.assert_allclose(first.numpy(), (X + Y) * 3)


@pytest.mark.parametrize("memory", ["naive", "pooled", None, {tvm.cpu(): "naive"}])
def test_allocators_are_chosen(exe: Executable, memory: object) -> None:
    machine = VirtualMachine(exe, tvm.cpu(), memory)
    np.testing.assert_allclose(machine.run(X, Y, True).numpy(), (X + Y) * 3)


def test_an_unknown_allocator_is_rejected(exe: Executable) -> None:
    with pytest.raises(ValueError, match='"naive" or "pooled"'):
        VirtualMachine(exe, tvm.cpu(), "best")


def test_pooled_memory_is_used_again(machine: VirtualMachine) -> None:
    used = tvm.get_global_func("vm.UsedMemory")
    machine.run(X, Y, True)
    before = used(tvm.cpu(), 2)
    for _ in range(20):
        machine.run(X, Y, True)
    assert used(tvm.cpu(), 2) == before


def test_large_constants_are_kept_beside_the_program(tmp_path: Path) -> None:
    x = relay.var("x", shape=(64,))
    weight = np.arange(64, dtype="float32")
    exe = relay.vm.compile(relay.Function([x], x * relay.const(weight)), "llvm")
    assert [a.shape for a in exe.get_late_bound_consts(256).values()] == [(64,)]
    exe.move_late_bound_consts(str(tmp_path / "consts"), 256)
    code, lib = exe.save()
    assert len(code) < 4000 and "late bound" in exe.constants
    loaded = Executable.load_exec(code, lib)
    with pytest.raises(ValueError, match="has no value yet"):
        VirtualMachine(loaded, tvm.cpu()).run(weight)
    loaded.load_late_bound_consts(str(tmp_path / "consts"))
    found = VirtualMachine(loaded, tvm.cpu()).run(weight)
    np.testing.assert_allclose(found.numpy(), weight * weight)


def test_a_program_runs_without_python(tmp_path: Path) -> None:
    x = relay.var("x", shape=(relay.Any(), 3))
    relay.vm.compile(relay.Function([x], relay.sum(x, axis=1)), "llvm").mod.export_library(
        tmp_path / "program.so"
    )
    source = Path(__file__).parent / "cpp" / "run_vm.cc"
    options = ["-std=c++17", "-O0", "-Wall", "-Werror", *INCLUDES, *RUNTIME_OPTIONS]
    cc.create_executable(str(tmp_path / "run"), [str(source)], options=options, cc="g++")
    done = subprocess.run(
        [tmp_path / "run", tmp_path / "program.so"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr


def test_runs_are_measured(machine: VirtualMachine) -> None:
    for end_to_end in (False, True):
        result = machine.benchmark(tvm.cpu(), X, Y, True, repeat=2, number=3, end_to_end=end_to_end)
        assert len(result.results) == 2 and result.min > 0
    assert machine.benchmark(tvm.cpu(), repeat=1, number=1).min > 0  # with the inputs it has


def test_the_profiler_reports_kernels(exe: Executable) -> None:
    assert profiler_vm.enabled()
    machine = profiler_vm.VirtualMachineProfiler(exe, tvm.cpu())
    report = machine.profile(X, Y, True)
    assert any("add" in str(call["Name"]) for call in report.calls)
    assert "float32[2, 3]" in report.table() and "VM" in str(report.configuration["Executor"])
    assert "#InvokeCount" in machine.get_stat()


def test_collectors_measure_each_kernel(exe: Executable) -> None:
    class Counter(tvm.runtime.profiling.MetricCollector):
        def start(self, dev: object) -> int:
            return 1

        def stop(self, started: int) -> dict[str, object]:
            return {"Ones": tvm.runtime.profiling.Count(started)}

    machine = profiler_vm.VirtualMachineProfiler(exe, tvm.cpu())
    report = machine.profile(X, Y, False, collectors=[Counter()])
    assert [str(call["Ones"]) for call in report.calls] == ["1"] * len(report.calls)
    names = [call["Name"] for call in report.calls]
    assert names.count("VM::AllocStorage") == names.count("VM::AllocTensor") == 1
    # kernels alone come from sources that have a hash
    assert [len(call["Hash"]) for call in report.calls if "Hash" in call] == [16]
    assert len(names) == 3
