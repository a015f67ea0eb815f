"""The virtual machine with a clock around each kernel."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.module import Module, num_threads
from tvm.runtime.profiling import (
    Count,
    DeviceWrapper,
    Duration,
    Metric,
    MetricCollector,
    Percent,
    Report,
    device_name,
)
from tvm.runtime.vm import Executable, VirtualMachine


def enabled() -> bool:
    """Whether the runtime has the profiling machine."""
    return get_global_func("runtime._VirtualMachineDebug", allow_missing=True) is not None


class VirtualMachineProfiler(VirtualMachine):
    """A virtual machine that tells where its time goes.

    Parameters
    ----------
    exe, device, memory_cfg :
        As of :class:`tvm.runtime.vm.VirtualMachine`.
    """

    _create = "runtime._VirtualMachineDebug"

    def __init__(
        self,
        exe: Executable | Module,
        device: Device | Sequence[Device],
        memory_cfg: str | Mapping[Device, str] | None = None,
    ) -> None:
        super().__init__(exe, device, memory_cfg)
        self._device = device if isinstance(device, Device) else device[0]

    def _calls(self) -> list[tuple[str, float, list[str], list[int], str, str]]:
        return [tuple(call) for call in json.loads(self.module["get_calls"]())]

    def get_stat(self, sort_by_time: bool = True) -> str:
        """The kernels of all runs so far: calls, times, names.

        Parameters
        ----------
        sort_by_time : bool
            Begin with the kernel that took longest; otherwise with the one called first.
        """
        times: dict[str, list[float]] = {}
        for name, seconds, *_ in self._calls():
            times.setdefault(name, []).append(seconds * 1e6)
        rows = list(times.items())
        if sort_by_time:
            rows.sort(key=lambda row: -sum(row[1]))
        lines = [f"{'#OpName':50s} {'#InvokeCount':>14s} {'#Duration(us): Sum/Mean/Min/Max'}"]
        for name, taken in rows:
            mean = sum(taken) / len(taken)
            spread = f"{sum(taken):.1f}/{mean:.1f}/{min(taken):.1f}/{max(taken):.1f}"
            lines.append(f"{name:50s} {len(taken):14d} {spread}")
        return "\n".join(lines) + "\n"

    def profile(
        self,
        *args: Any,
        func_name: str = "main",
        collectors: Sequence[MetricCollector] | None = None,
        **kwargs: Any,
    ) -> Report:
        """Run a function once to warm up and once measured; the times of its kernels.

        Parameters
        ----------
        args, kwargs : values
            The inputs; without any, those of :meth:`set_input`.
        func_name : str
            The function.
        collectors : list of MetricCollector, optional
            What else to measure around each kernel.
        """
        self.invoke(func_name, *args, **kwargs)
        self.module["reset"]()
        observers = _Observers(collectors or [], self._device)
        self.module["observe"](*(observers.functions() if collectors else (None, None)))
        start = time.perf_counter()
        try:
            self._invoke(func_name)
        finally:
            self.module["observe"](None, None)
        total = time.perf_counter() - start
        place = device_name(self._device)
        calls = [
            {
                **_describe(name, seconds, shapes, total, device_name(Device(*where))),
                **({"Model Nodes": nodes} if nodes else {}),
                **({"Hash": digest} if digest else {}),
                **observers.found(i),
            }
            for i, (name, seconds, shapes, where, nodes, digest) in enumerate(self._calls())
        ]
        whole: dict[str, Metric] = {
            "Duration (us)": Duration(total * 1e6),
            "Percent": Percent(100.0),
            "Count": Count(1),
        }
        configuration: dict[str, Metric] = {
            "Number of threads": Count(num_threads()),
            "Executor": "VM",
        }
        return Report(calls, {place: whole}, configuration)


class _Observers:
    """Collectors around the kernels of one run."""

    def __init__(self, collectors: Sequence[MetricCollector], device: Device) -> None:
        self.collectors = collectors
        self.device = device
        self.started: list[tuple[MetricCollector, Any]] = []
        self.metrics: list[dict[str, Metric]] = []
        for collector in collectors:
            collector.init([DeviceWrapper(device)])

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        return self._before, self._after

    def _before(self) -> None:
        self.started = [(c, c.start(self.device)) for c in self.collectors]

    def _after(self) -> None:
        found: dict[str, Metric] = {}
        for collector, state in reversed(self.started):
            if state is not None:
                found.update(collector.stop(state))
        self.metrics.append(found)

    def found(self, call: int) -> dict[str, Metric]:
        return self.metrics[call] if self.metrics else {}


def _describe(
    name: str, seconds: float, shapes: Sequence[str], total: float, place: str
) -> dict[str, Metric]:
    return {
        "Name": name,
        "Duration (us)": Duration(seconds * 1e6),
        "Percent": Percent(100 * seconds / total if total else 0.0),
        "Device": place,
        "Count": Count(1),
        "Argument Shapes": ", ".join(shapes),
    }
