"""Global functions under their classic names: profiling, parameters, modules, printing, threads."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
import tvm.contrib.cc
from tvm import relay, te
from tvm.runtime import profiling


def call(name: str, *args: object) -> Any:
    return tvm.get_global_func(name)(*args)


def test_reports_are_read_and_shown_by_global_functions() -> None:
    metrics = {"Count": call("runtime.profiling.Count", 2), "Name": "add"}
    report = call("runtime.profiling.Report", [metrics], {}, {})
    assert isinstance(report, profiling.Report)
    again = call("runtime.profiling.FromJSON", call("runtime.profiling.AsJSON", report))
    assert call("runtime.profiling.AsCSV", again) == report.csv()
    assert call("runtime.profiling.AsTable", again, 1, 1, 0) == report.table(True, True, False)
    assert str(call("runtime.profiling.Percent", 50.0)) == "50.00"


def test_functions_are_profiled_by_a_global_function() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    module = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="f")
    array = tvm.nd.empty((4,))
    measure = call("runtime.profiling.ProfileFunction", module, "f", 1, 0, 1, [])
    assert dict(measure(array, array)) == {}
    assert call("runtime.ModuleGetFunction", module, "f", False) is not None
    assert call("runtime.ModuleGetFunction", module, "g", True) is None


def test_parameters_are_read_by_a_global_function(tmp_path: Path) -> None:
    weight = tvm.nd.array(np.arange(3, dtype="float32"))
    path = str(tmp_path / "params")
    tvm.runtime.save_param_dict_to_file({"w": weight}, path)
    loaded = call("runtime.LoadParamsFromFile", path)
    np.testing.assert_array_equal(loaded["w"].numpy(), weight.numpy())
    with pytest.raises(FileNotFoundError, match="nowhere"):
        call("runtime.LoadParamsFromFile", "nowhere")
    with pytest.raises(OSError, match="cannot write /nowhere/params"):
        call("runtime.SaveParamsToFile", {"w": weight}, "/nowhere/params")


@pytest.mark.parametrize(
    ("save", "load"),
    [("runtime.SaveParams", "runtime.LoadParams"),
     ("tvm.relay._save_param_dict", "tvm.relay._load_param_dict")],
)  # fmt: skip
def test_parameters_are_written_by_a_global_function(save: str, load: str, tmp_path: Path) -> None:
    params = {"b": tvm.nd.array(np.ones((2, 2), "int8")), "a": tvm.nd.array(np.float64(3))}
    blob = call(save, params)
    assert blob == tvm.runtime.save_param_dict(params)
    loaded = call(load, blob)
    assert list(loaded) == ["b", "a"] and loaded["a"].numpy() == 3
    call("runtime.SaveParamsToFile", params, str(tmp_path / "params"))
    assert (tmp_path / "params").read_bytes() == blob


def test_events_are_recorded() -> None:
    call("testing.reset_events")
    call("testing.record_event", "first")
    call("testing.record_event")("second")
    assert list(call("testing.dump_events")) == ["first", "second"]
    call("testing.reset_events")
    assert list(call("testing.dump_events")) == []


def test_custom_types_are_asked_for_by_global_functions() -> None:
    tvm.target.datatype.register("eventtype", 201)
    assert call("runtime._datatype_get_type_code", "eventtype") == 201
    assert call("runtime._datatype_get_type_name", 201) == "eventtype"
    assert call("runtime._datatype_get_type_registered", 201)


@pytest.fixture(scope="module")
def importing() -> tvm.runtime.Module:
    """Code that imports a module which is no code."""
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    module = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="f")
    module.import_module(call("tvm.graph_executor_factory.create", EMPTY_GRAPH, None, "default"))
    return module


EMPTY_GRAPH = (
    '{"nodes": [{"op": "null", "name": "x", "inputs": []}], "arg_nodes": [0], "heads": [[0, 0, 0]], '
    '"node_row_ptr": [0, 1], "attrs": {"dltype": ["list_str", ["float32"]], '
    '"storage_id": ["list_int", [0]], "shape": ["list_shape", [[1]]]}}'
)


def test_imported_modules_are_packed_in_each_form(
    importing: tvm.runtime.Module, tmp_path: Path
) -> None:
    bytes_of_imports = call("runtime.ModulePackImportsToNDArray", importing).numpy().tobytes()
    assert b"GraphExecutorFactory" in bytes_of_imports and b"_import_tree" in bytes_of_imports
    whole = len(bytes_of_imports).to_bytes(8, "little") + bytes_of_imports
    text = call("runtime.ModulePackImportsToC", importing, False, "")
    assert "__tvm_dev_mblob" in text and "TVMBackendRegisterSystemLibSymbol" not in text
    assert "TVMBackendRegisterSystemLibSymbol" in call(
        "runtime.ModulePackImportsToC", importing, 1, "p_"
    )
    name = call("runtime.ModuleImportsBlobName")
    module = call("runtime.ModulePackImportsToLLVM", importing, False, "", "")
    assert module.type_key == "llvm" and name in module.get_source("ll")
    module.save(str(tmp_path / "devc.o"))
    importing.save(str(tmp_path / "f.o"))
    assert whole in (tmp_path / "devc.o").read_bytes()
    tvm.contrib.cc.create_shared(
        str(tmp_path / "f.so"), [str(tmp_path / "f.o"), str(tmp_path / "devc.o")]
    )
    loaded = tvm.runtime.load_module(str(tmp_path / "f.so"))
    assert loaded.imported_modules[0].type_key == "GraphExecutorFactory"


def test_bytes_become_code_for_other_machines() -> None:
    module = call("codegen.codegen_blob", b"abc", True, "aarch64-linux-gnu", "mine_")
    text = module.get_source("ll")
    assert "mine___tvm_dev_mblob" in text and "aarch64" in text
    assert "TVMBackendRegisterSystemLibSymbol" in text and "llvm.global_ctors" in text


def test_objects_and_sources_become_modules(importing: tvm.runtime.Module, tmp_path: Path) -> None:
    importing.save(str(tmp_path / "f.o"))
    module = call("runtime.ModuleLoadStaticLibrary", str(tmp_path / "f.o"), ["f"])
    assert module.type_key == "static_library" and module.implements_function("f")
    source = call("runtime.SourceModuleCreate", "kernel void f() {}", "metal")
    assert (source.type_key, source.format) == ("source", "metal")
    assert source.get_source() == "kernel void f() {}"
    with pytest.raises(tvm.TVMError, match="holds metal text and no function 'f'"):
        source["f"]


def test_nodes_are_printed_by_global_functions() -> None:
    x = tvm.tir.Var("x", "int32")
    func = tvm.tir.PrimFunc([x], tvm.tir.Evaluate(x + 1)).with_attr("global_symbol", "f")
    config = call("node.PrinterConfig", {"tir_prefix": "Q", "name": "g"})
    assert isinstance(config, tvm.runtime.script_printer.PrinterConfig)
    assert call("node.TVMScriptPrinterScript", func, config) == func.script(
        tir_prefix="Q", name="g"
    )
    assert call("node.TVMScriptPrinterScript", func, None) == func.script()
    with pytest.raises(TypeError, match="no option 'tir_prefx'"):
        call("node.PrinterConfig", {"tir_prefx": "Q"})
    assert isinstance(func, tvm.runtime.script_printer.Scriptable)


def test_large_constants_are_made_of_two_halves() -> None:
    value = (1 << 63) + 5
    large = call("node.LargeUIntImm", "uint64", value & 0xFFFFFFFF, value >> 32, None)
    b = te.compute((1,), lambda _: large)
    out = tvm.nd.empty((1,), "uint64")
    tvm.build(te.create_schedule(b.op), [b], "llvm")(out)
    assert int(out.numpy()[0]) == value


def test_threads_are_bound_to_processors() -> None:
    def bind() -> None:
        call("tvm.runtime.threading.set_current_thread_affinity", [min(os.sched_getaffinity(0))])
        found.append(os.sched_getaffinity(0))

    found: list[set[int]] = []
    thread = threading.Thread(target=bind)
    thread.start()
    thread.join()
    assert found == [{min(os.sched_getaffinity(0))}]
    with pytest.raises(ValueError, match="CPU 4000"):
        call("tvm.runtime.threading.set_current_thread_affinity", [4000])


def test_timers_and_devices_are_objects() -> None:
    assert call("profiling.timer.cpu", tvm.cpu()) is not None
    assert call("profiling.start_timer", tvm.cpu()) is not None
    assert call("device_api.cpu").value


def test_executables_tell_their_functions() -> None:
    x = relay.var("x", shape=(2,))
    module = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    executable = relay.vm.compile(module, "llvm").mod
    names = [
        call("runtime.GetGlobalFields", executable, i)
        for i in range(call("runtime.GetNumOfGlobals", executable))
    ]
    assert names == ["main"]
    assert call("runtime.GetNumOfPrimitives", executable) == 1
    assert "relu" in call("runtime.GetPrimitiveFields", executable, 0)
