"""Where the time of a run goes: reports by call, as a table, CSV or JSON."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm._ffi.native_object import get_attribute
from tvm._ffi.registry import get_global_func, register_object
from tvm._ffi.runtime_ctypes import RPC_SESS_MASK, Device
from tvm.runtime.device import device as find_device
from tvm.runtime.module import Module
from tvm.runtime.object import Object
from tvm.support.notebook import table


def _function(name: str) -> Callable[..., Any]:
    return get_global_func(f"runtime.profiling.{name}")


class _Quantity(Object):
    """A number; its attribute is named after what it counts."""

    _type: type[Any]
    _attribute: str
    _format = ",.2f"

    def __init__(self, number: float) -> None:
        made = _function(type(self).__name__)
        self.__init_handle_by_constructor__(made, self._type(number))

    @property
    def value(self) -> Any:
        """The number."""
        return get_attribute(self, self._attribute)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self), self.value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def __str__(self) -> str:
        return format(self.value, self._format)


@register_object("runtime.profiling.Count")
class Count(_Quantity):
    """How many: ``value``."""

    _type, _attribute, _format = int, "value", ","

    def __init__(self, count: int) -> None:
        super().__init__(count)


@register_object("runtime.profiling.Duration")
class Duration(_Quantity):
    """Time: ``microseconds``."""

    _type, _attribute = float, "microseconds"

    def __init__(self, duration: float) -> None:
        super().__init__(duration)


@register_object("runtime.profiling.Percent")
class Percent(_Quantity):
    """A part of 100: ``percent``."""

    _type, _attribute, _format = float, "percent", ".2f"

    def __init__(self, percent: float) -> None:
        super().__init__(percent)


@register_object("runtime.profiling.Ratio")
class Ratio(_Quantity):
    """One number by another: ``ratio``."""

    _type, _attribute = float, "ratio"

    def __init__(self, ratio: float) -> None:
        super().__init__(ratio)


Quantity = Count | Duration | Percent | Ratio
Metric = Quantity | str


@register_object("runtime.profiling.Report")
class Report(Object):
    """The metrics of each call of a run.

    Parameters
    ----------
    calls : sequence of mappings
        The metrics of each call, by name.
    device_metrics : mapping
        The metrics of each device over the whole run.
    configuration : mapping
        What the run depends on, such as the number of threads.
    """

    calls: Sequence[Mapping[str, Metric]]
    device_metrics: Mapping[str, Mapping[str, Metric]]
    configuration: Mapping[str, Metric]

    def __init__(
        self,
        calls: Sequence[Mapping[str, Metric]],
        device_metrics: Mapping[str, Mapping[str, Metric]],
        configuration: Mapping[str, Metric],
    ) -> None:
        self.__init_handle_by_constructor__(
            _function("Report"), calls, device_metrics, configuration
        )

    def csv(self) -> str:
        """The calls as comma-separated values."""
        return str(_function("AsCSV")(self))

    def table(
        self,
        sort: bool = True,
        aggregate: bool = True,
        col_sums: bool = True,
        wide: bool = False,
    ) -> str:
        """The calls for human readers.

        Parameters
        ----------
        sort : bool
            Begin with the calls that took longest.
        aggregate : bool
            Join the calls of one operator with the same arguments.
        col_sums : bool
            Add the sum of all calls, and the totals of the devices.
        wide : bool
            Show every column in full. Otherwise lines have at most 120 columns: hashes are left
            out, and long names, shapes and lists of the model's nodes are cut.
        """
        return str(_function("AsTable")(self, sort, aggregate, col_sums, wide))

    def json(self) -> str:
        """Everything as JSON, which :meth:`from_json` reads."""
        return str(_function("AsJSON")(self))

    @classmethod
    def from_json(cls, s: str) -> Report:
        """The report that :meth:`json` wrote."""
        found: Report = _function("FromJSON")(s)
        return found

    def __str__(self) -> str:
        return self.table(wide=True)

    def _repr_html_(self) -> str:
        calls = sorted(self.calls, key=lambda call: -_microseconds(call))
        columns = list(dict.fromkeys([name for call in calls for name in call]))
        return table(columns, [[_shown(call.get(name)) for name in columns] for call in calls])

    def __repr__(self) -> str:
        return f"Report({len(self.calls)} calls on {', '.join(self.device_metrics) or 'no device'})"


def _microseconds(call: Mapping[str, Metric]) -> float:
    """What a call took, 0 if that was not measured."""
    found = call.get("Duration (us)")
    return float(found.value) if isinstance(found, Duration) else 0.0


def _shown(metric: Metric | None) -> object:
    """A metric as a cell of a table."""
    if metric is None:
        return ""
    return round(metric.value, 2) if isinstance(metric, _Quantity) else metric


@register_object("runtime.profiling.DeviceWrapper")
class DeviceWrapper(Object):
    """A device, for collectors."""

    def __init__(self, dev: Device) -> None:
        self.__init_handle_by_constructor__(_function("DeviceWrapper"), dev)

    @property
    def device(self) -> Device:
        """The device."""
        found: Device = _function("DeviceOf")(self)
        return found


class _Started(Object):
    """What a collector's start has returned."""

    def __init__(self, state: Any) -> None:
        self.state = state


class MetricCollector(Object):
    """Measures something around each call; subclasses say what."""

    def init(self, devs: Sequence[DeviceWrapper]) -> None:
        """Called once, with the devices of the run."""

    def start(self, dev: Device) -> Any:
        """Called before a call; the result is given to :meth:`stop`, None means nothing to stop."""
        return None

    def stop(self, started: Any) -> Mapping[str, Metric]:
        """Called after it: the metrics by name."""
        return {}

    @property
    def _native(self) -> Any:
        def start(dev: Device) -> _Started | None:
            state = self.start(dev)
            return None if state is None else _Started(state)

        return _function("ForeignCollector")(
            self.init, start, lambda started: dict(self.stop(started.state))
        )


class PerfEventCollector(MetricCollector):
    """Counts events of the processor and of the kernel, in all threads of the process; on Linux.

    Parameters
    ----------
    events : list of str
        Names such as ``cycles``, ``instructions``, ``cache-misses``, ``task-clock``, ``page-faults``.
    """

    def __init__(self, events: Sequence[str] = ("cycles", "instructions", "cache-misses")) -> None:
        self.events = tuple(events)
        if not self.events:
            raise ValueError("PerfEventCollector needs the name of an event")
        self._open()  # says at once what this machine cannot count
        self._read: Callable[[], bytes] | None = None

    def _open(self) -> Callable[[], bytes]:
        found: Callable[[], bytes] = _function("PerfEvents")(*self.events)
        return found

    def init(self, devs: Sequence[DeviceWrapper]) -> None:
        """Begin to count, in the threads that there are now."""
        self._read = self._open()

    def start(self, dev: Device) -> tuple[int, ...] | None:
        """The counts before a call; None on devices that are no processors."""
        return self._counts() if dev.device_type == Device.kDLCPU else None

    def stop(self, started: tuple[int, ...]) -> Mapping[str, Metric]:
        """What the call has added."""
        differences = [after - n for n, after in zip(started, self._counts(), strict=True)]
        return {
            # the clock counts nanoseconds
            name: Duration(added / 1000) if name == "task-clock" else Count(added)
            for name, added in zip(self.events, differences, strict=True)
        }

    def _counts(self) -> tuple[int, ...]:
        if self._read is None:
            self._read = self._open()
        return struct.unpack(f"@{len(self.events)}q", self._read())


# what the PAPI library calls the events that are counted here
_PAPI_EVENTS = {
    "PAPI_TOT_CYC": "cycles",
    "PAPI_TOT_INS": "instructions",
    "PAPI_L1_DCM": "l1-dcache-load-misses",
    "PAPI_L3_TCA": "cache-references",
    "PAPI_L3_TCM": "cache-misses",
    "PAPI_TLB_DM": "dtlb-load-misses",
    "PAPI_BR_INS": "branches",
    "PAPI_BR_MSP": "branch-misses",
    "PAPI_STL_ICY": "stalled-cycles-frontend",
    "PAPI_RES_STL": "stalled-cycles-backend",
}


class PAPIMetricCollector(PerfEventCollector):
    """Counts what PAPI's names say, without that library: ``PAPI_TOT_CYC``, ``perf::CYCLES``.

    Parameters
    ----------
    metric_names : dict of Device to list of str, optional
        The names for each device; only processors have such counters.
    """

    def __init__(
        self, metric_names: Mapping[Device | DeviceWrapper, Sequence[str]] | None = None
    ) -> None:
        if metric_names is None:
            super().__init__()
            return
        for given in metric_names:
            dev = given.device if isinstance(given, DeviceWrapper) else given
            if dev.device_type != Device.kDLCPU:
                raise ValueError(f"PAPIMetricCollector counts on cpu, got {dev}")
        names = dict.fromkeys(name for each in metric_names.values() for name in each)
        super().__init__([_event_of_papi(name) for name in names])


def _event_of_papi(name: str) -> str:
    if name in _PAPI_EVENTS:
        return _PAPI_EVENTS[name]
    if name.startswith("PAPI_"):
        raise ValueError(f"PAPIMetricCollector counts {', '.join(_PAPI_EVENTS)}; got {name!r}")
    return name.removeprefix("perf::").lower().replace("_", "-")


def device_name(dev: Device) -> str:
    """The name of a device in reports: ``cpu0``."""
    return f"{Device.DEVICE_TYPE_TO_NAME[dev.device_type % RPC_SESS_MASK]}{dev.device_id}"


def profile_function(
    mod: Module,
    dev: Device | str,
    collectors: Sequence[MetricCollector],
    func_name: str | None = None,
    warmup_iters: int = 10,
) -> Callable[..., dict[str, Metric]]:
    """A function that calls a module's function and returns what collectors measured.

    Parameters
    ----------
    mod : Module
        The module.
    dev : Device
        Where it runs.
    collectors : list of MetricCollector
        What to measure.
    func_name : str, optional
        The function; the entry function by default.
    warmup_iters : int
        How often to call it first.
    """
    where = find_device(dev) if isinstance(dev, str) else dev
    found: Callable[..., dict[str, Metric]] = _function("ProfileFunction")(
        mod,
        func_name or mod.entry_name,
        where.device_type,
        where.device_id,
        warmup_iters,
        collectors,
    )
    return found
