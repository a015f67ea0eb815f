"""Global functions of profiling, and events that tests record."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tvm
from tvm import te
from tvm.runtime import profiling


def call(name: str, *args: object) -> object:
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
    assert dict(measure(array, array)) == {}  # type: ignore[operator]
    assert call("runtime.ModuleGetFunction", module, "f", False) is not None
    assert call("runtime.ModuleGetFunction", module, "g", True) is None


def test_parameters_are_read_by_a_global_function(tmp_path: Path) -> None:
    weight = tvm.nd.array(np.arange(3, dtype="float32"))
    tvm.runtime.save_param_dict_to_file({"w": weight}, str(tmp_path / "params"))
    loaded = call("runtime.LoadParamsFromFile", str(tmp_path / "params"))
    np.testing.assert_array_equal(loaded["w"].numpy(), weight.numpy())  # type: ignore[index]


def test_events_are_recorded() -> None:
    call("testing.reset_events")
    call("testing.record_event", "first")
    call("testing.record_event")("second")  # type: ignore[operator]
    assert list(call("testing.dump_events")) == ["first", "second"]  # type: ignore[call-overload]
    call("testing.reset_events")
    assert list(call("testing.dump_events")) == []  # type: ignore[call-overload]


def test_custom_types_are_asked_for_by_global_functions() -> None:
    tvm.target.datatype.register("eventtype", 201)
    assert call("runtime._datatype_get_type_code", "eventtype") == 201
    assert call("runtime._datatype_get_type_name", 201) == "eventtype"
    assert call("runtime._datatype_get_type_registered", 201)
