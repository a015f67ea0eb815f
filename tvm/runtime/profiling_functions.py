"""Reports and metrics as global functions ``runtime.profiling.*``, under their classic names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm._ffi.registry import register_func
from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.module import Module
from tvm.runtime.packed_func import convert_to_tvm_func
from tvm.runtime.params import load_param_dict_from_file
from tvm.runtime.profiling import (
    Count,
    DeviceWrapper,
    Duration,
    MetricCollector,
    Percent,
    Ratio,
    Report,
    profile_function,
)


def _profile_function(
    mod: Module,
    func_name: str,
    device_type: int,
    device_id: int,
    warmup_iters: int,
    collectors: Sequence[MetricCollector],
) -> Callable[..., Any]:
    device = Device(device_type, device_id)
    return profile_function(mod, device, collectors, func_name, warmup_iters)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "profiling.AsTable": lambda report, *options: report.table(*map(bool, options)),
    "profiling.AsCSV": lambda report: report.csv(),
    "profiling.AsJSON": lambda report: report.json(),
    "profiling.FromJSON": Report.from_json,
    "profiling.Report": Report,
    "profiling.Count": Count,
    "profiling.Duration": Duration,
    "profiling.Percent": Percent,
    "profiling.Ratio": Ratio,
    "profiling.DeviceWrapper": DeviceWrapper,
    "profiling.ProfileFunction": _profile_function,
    "LoadParamsFromFile": load_param_dict_from_file,
    "ModuleGetFunction": lambda module, name, query_imports: (
        module.get_function(name, query_imports)
        if module.implements_function(name, query_imports)
        else None
    ),
}

for _name, _function in FUNCTIONS.items():
    # a type is not called when it crosses, so it needs a function around it
    register_func(f"runtime.{_name}", convert_to_tvm_func(_function), override=True)
