"""The virtual machine: instructions, values, inputs and outputs, closures, instruments, files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.testing.vm import check_saved_func
from tvm.runtime import ShapeTuple
from tvm.script import ir as I
from tvm.script import relax as R


def machine_of(builder: relax.ExecBuilder, **options: Any) -> relax.VirtualMachine:
    return relax.VirtualMachine(builder.get(), tvm.cpu(), **options)


def add_program() -> relax.ExecBuilder:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=2, param_names=["x", "y"]):
        ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    return ib


def identity_program() -> relax.ExecBuilder:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_ret(ib.r(0))
    return ib


def pair() -> tuple[Any, Any]:
    return tvm.nd.array(np.array([1.0, 2.0])), tvm.nd.array(np.array([3.0, 5.0]))


def test_a_call_is_saved_and_called() -> None:
    result = check_saved_func(machine_of(add_program()), "main", *pair())
    np.testing.assert_array_equal(result.numpy(), [4, 7])


def test_values_of_all_kinds_pass() -> None:
    main = machine_of(identity_program())["main"]
    a, b = pair()
    assert main("text") == "text"
    assert main(2.5) == 2.5
    assert main(None) is None
    assert main(ShapeTuple([2, 3])) == ShapeTuple([2, 3])
    found = main((a, [b, ShapeTuple([4])]))
    assert found[0].same_as(a) or found[0] == a
    assert found[1][1] == (4,)


def test_a_loop_counts() -> None:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("vm.builtin.copy", args=[ib.imm(0)], dst=ib.r(1))
        ib.emit_if(ib.r(0), 4)
        ib.emit_call("test.vm.add_scalar", args=[ib.r(0), ib.imm(-1)], dst=ib.r(0))
        ib.emit_call("test.vm.add_scalar", args=[ib.r(1), ib.imm(2)], dst=ib.r(1))
        ib.emit_goto(-3)
        ib.emit_ret(ib.r(1))
    assert machine_of(ib)["main"](5) == 10


def test_functions_recurse_without_the_thread_s_stack() -> None:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_if(ib.r(0), 3)
        ib.emit_call("test.vm.add_scalar", args=[ib.r(0), ib.imm(-1)], dst=ib.r(1))
        ib.emit_call("main", args=[ib.r(1)], dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    assert machine_of(ib)["main"](20_000) == 0


def test_inputs_are_set_by_name_and_outputs_kept() -> None:
    vm = machine_of(add_program())
    a, b = pair()
    vm.set_input("main", y=a, x=b.numpy())
    vm.invoke_stateful("main")
    np.testing.assert_array_equal(vm.get_outputs("main").numpy(), [4, 7])


def test_outputs_are_nested_tuples() -> None:
    vm = machine_of(identity_program())
    a, b = pair()
    vm.set_input("main", (a, (b, a)))
    vm.invoke_stateful("main")
    found = vm.get_outputs("main")
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(found[1][0].numpy(), b.numpy())


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda vm: vm["main"](1), r"'main' has 2 parameters \(x, y\), got 1 arguments"),
        (lambda vm: vm.invoke_stateful("main"), "call set_input first"),
        (lambda vm: vm.get_outputs("main"), "call invoke_stateful first"),
        (lambda vm: vm.set_input("other", 1), "no function 'other'; it has 'main'"),
        (lambda vm: vm.set_input("main", 1, z=2), r"has the parameters \['x', 'y'\]"),
        (lambda vm: vm.profile("main"), "profile=True"),
    ],
)
def test_wrong_uses_are_told(run: Any, message: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=message):
        run(machine_of(add_program()))


def test_closures_are_called_later() -> None:
    ib = relax.ExecBuilder()
    with ib.function("lifted", num_inputs=3):
        ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(1)], dst=ib.r(3))
        ib.emit_call("test.vm.mul", args=[ib.r(3), ib.r(2)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))
    with ib.function("make", num_inputs=1):
        ib.emit_call("vm.builtin.make_closure", args=[ib.f("lifted"), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("both", num_inputs=2):
        ib.emit_call("make", args=[ib.r(0)], dst=ib.r(2))
        args = [ib.vm_state(), ib.r(2), ib.r(1), ib.r(1)]
        ib.emit_call("vm.builtin.invoke_closure", args=args, dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    vm = machine_of(ib)
    a, b = pair()
    wanted = (a.numpy() + b.numpy()) * b.numpy()
    np.testing.assert_array_equal(vm.invoke_closure(vm["make"](a), b, b).numpy(), wanted)
    np.testing.assert_array_equal(vm["both"](a, b).numpy(), wanted)
    with pytest.raises(ValueError, match="another executable"):
        machine_of(add_program()).invoke_closure(vm["make"](a), b, b)


def test_an_instrument_sees_calls_and_leaves_them_out() -> None:
    vm = machine_of(add_program())
    seen = []

    def instrument(func: Any, name: str, before_run: bool, ret_value: Any, *args: Any) -> Any:
        seen.append((name, before_run, ret_value is None, len(args)))
        return relax.VMInstrumentReturnKind.SKIP_RUN if len(seen) > 2 else None

    vm.set_instrument(instrument)
    assert vm["main"](*pair()) is not None
    assert vm["main"](*pair()) is None
    vm.set_instrument(None)
    assert vm["main"](*pair()) is not None
    assert seen == [("test.vm.add", before, before, 2) for before in (True, False, True)]


def test_memory_comes_from_storage() -> None:
    ib = relax.ExecBuilder()
    float32 = tvm.DataType("float32")
    with ib.function("main", num_inputs=0):
        args = [ib.vm_state(), (24,), ib.imm(0), float32, "global"]
        ib.emit_call("vm.builtin.alloc_storage", args=args, dst=ib.r(0))
        args = [ib.r(0), ib.imm(0), (4, 6), float32]
        ib.emit_call("vm.builtin.alloc_tensor", args=args, dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    for memory_cfg in ("pooled", "naive", {tvm.cpu(): "naive"}):
        result = machine_of(ib, memory_cfg=memory_cfg)["main"]()
        assert result.shape == (4, 6)
        assert result.dtype == "float32"


def test_a_tensor_fits_into_its_storage() -> None:
    ib = relax.ExecBuilder()
    uint8 = tvm.DataType("uint8")
    with ib.function("main", num_inputs=1):
        args = [ib.vm_state(), (24,), ib.imm(0), uint8, "global"]
        ib.emit_call("vm.builtin.alloc_storage", args=args, dst=ib.r(1))
        ib.emit_call("vm.builtin.alloc_tensor", args=[ib.r(1), ib.r(0), (24,), uint8], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    main = machine_of(ib)["main"]
    assert main(0).shape == (24,)
    for offset in (1000, -1):
        with pytest.raises(ValueError, match="does not fit into a storage"):
            main(offset)


def test_executables_survive_files(tmp_path: Path) -> None:
    a, b = pair()
    executable = add_program().get()
    library = tmp_path / "program.so"
    executable.export_library(library)
    vm = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](a, b).numpy(), [4, 7])


def test_texts_and_the_program_that_builds_it() -> None:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        args = [ib.r(0), ib.imm(-3), (2, 3), "text", tvm.DataType("int8"), ib.f("main")]
        ib.emit_call("test.vm.move", args=args, dst=ib.r(7))
        ib.emit_if(ib.r(7), 2)
        ib.emit_goto(1)
        ib.emit_ret(ib.r(7))
    executable = ib.get()
    again: dict[str, Any] = {"relax": relax, "tvm": tvm}
    exec(executable.as_python(), again)
    assert again["ib"].get().as_text() == executable.as_text()
    assert "in: %0, i-3, c[0], c[1], c[2], f[main] dst: %1" in executable.as_text()
    assert 'Constant pool (# 3): [shape[2, 3], "text", int8]' in executable.stats()


@pytest.mark.parametrize("reads", [lambda ib: ib.r(2), lambda ib: ib.r(1)])
def test_registers_are_written_before_they_are_read(reads: Any) -> None:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("test.vm.move", args=[reads(ib)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    with pytest.raises(tvm.TVMError, match="before it is written"):
        ib.get()


def test_equal_constants_are_one() -> None:
    ib = relax.ExecBuilder()
    values: list[Any] = ["text", ShapeTuple([1, 2]), tvm.nd.array(np.arange(3)), 2, 2.0, True]
    places = [ib.convert_constant(value) for value in values]
    assert len({*places}) == len(values)
    assert ib.convert_constant(tvm.nd.array(np.arange(3))) == places[2]


def test_a_missing_function_is_named() -> None:
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=0):
        ib.emit_call("test.vm.no_such_function", dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    with pytest.raises(ValueError, match=r"no function 'test\.vm\.no_such_function'"):
        machine_of(ib)


def test_threads_do_not_mix_their_inputs() -> None:
    vm = machine_of(identity_program())
    vm.set_input("main", tvm.nd.array(np.zeros(2)))
    other = threading.Thread(target=vm.set_input, args=("main", tvm.nd.array(np.ones(2))))
    other.start()
    other.join()
    with pytest.raises(RuntimeError, match="another thread"):
        vm.invoke_stateful("main")


def test_a_profile_lists_calls() -> None:
    vm = machine_of(add_program(), profile=True)
    report = vm.profile("main", *pair())
    assert [call["Name"] for call in report.calls] == ["test.vm.add"]


def test_measurements_call_saved_functions() -> None:
    vm = machine_of(add_program())
    vm.save_function("main", "measured", *pair(), include_return=False)
    assert vm["measured"]() is None
    assert vm.time_evaluator("measured", tvm.cpu(), number=2)().mean > 0


def test_code_that_is_source_is_compiled_for_this_process() -> None:
    @I.ir_module
    class Double:
        @R.function
        def main(x: R.Tensor((2,), "float64")) -> R.Tensor((2,), "float64"):
            return R.add(x, x)

    executable = relax.build(Double, "c")
    assert [module.type_key for module in executable.mod.imported_modules] == ["c"]
    compiled = executable.jit()
    assert compiled is not executable.mod
    vm = relax.VirtualMachine(compiled, tvm.cpu())
    np.testing.assert_array_equal(vm["main"](pair()[0]).numpy(), [2.0, 4.0])


def test_the_machine_of_runtime_runs_executables_of_relax(tmp_path: Path) -> None:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.add(x, x)

    executable = relax.build(tvm.IRModule({"main": main}), "llvm")
    executable.export_library(str(tmp_path / "sum.so"))
    loaded = tvm.runtime.load_module(str(tmp_path / "sum.so"))
    x = tvm.nd.array(np.arange(3, dtype="float32"))
    for program in (executable, executable.mod, loaded):
        machine = tvm.runtime.vm.VirtualMachine(program, tvm.cpu())
        assert isinstance(machine, relax.VirtualMachine)
        np.testing.assert_array_equal(machine["main"](x).numpy(), x.numpy() * 2)
    profiled = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu(), profile=True)
    assert profiled.profile("main", x).calls
