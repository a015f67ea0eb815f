"""Where the time of a run goes: reports by call, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.device import device as find_device
from tvm.runtime.module import Module
from tvm.runtime.object import Object


@dataclass(frozen=True)
class Count(Object):
    """How many."""

    count: int

    @property
    def value(self) -> int:
        """The number."""
        return self.count

    def __str__(self) -> str:
        return f"{self.count:,}"


@dataclass(frozen=True)
class Duration(Object):
    """Microseconds."""

    duration: float

    @property
    def value(self) -> float:
        """The number."""
        return self.duration

    def __str__(self) -> str:
        return f"{self.duration:,.2f}"


@dataclass(frozen=True)
class Percent(Object):
    """A part of 100."""

    percent: float

    @property
    def value(self) -> float:
        """The number."""
        return self.percent

    def __str__(self) -> str:
        return f"{self.percent:.2f}"


@dataclass(frozen=True)
class Ratio(Object):
    """One number by another."""

    ratio: float

    @property
    def value(self) -> float:
        """The number."""
        return self.ratio

    def __str__(self) -> str:
        return f"{self.ratio:,.2f}"


Quantity = Count | Duration | Percent | Ratio
Metric = Quantity | str
_JSON_NAMES: dict[str, type[Any]] = {
    "count": Count,
    "microseconds": Duration,
    "percent": Percent,
    "ratio": Ratio,
    "string": str,
}
_FIRST_COLUMNS = ("Name", "Duration (us)", "Percent", "Device", "Count", "Argument Shapes")
_TEXT_COLUMNS = ("Name", "Device", "Argument Shapes", "Hash")


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

    def __init__(
        self,
        calls: Sequence[Mapping[str, Metric]],
        device_metrics: Mapping[str, Mapping[str, Metric]],
        configuration: Mapping[str, Metric],
    ) -> None:
        self.calls = [dict(call) for call in calls]
        self.device_metrics = {name: dict(value) for name, value in device_metrics.items()}
        self.configuration = dict(configuration)

    def csv(self) -> str:
        """The calls as comma-separated values."""
        text = io.StringIO()
        columns = _columns(self.calls)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(
            [_plain(call.get(column, "")) for column in columns] for call in self.calls
        )
        return text.getvalue()

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """The calls for human readers.

        Parameters
        ----------
        sort : bool
            Begin with the calls that took longest.
        aggregate : bool
            Join the calls of one operator with the same arguments.
        col_sums : bool
            Add the sum of all calls, and the totals of the devices.
        """
        calls = _aggregate(self.calls) if aggregate else self.calls
        if sort:
            calls = sorted(calls, key=lambda call: -_number(call.get("Duration (us)")))
        columns = _columns(calls)
        rows = [[str(call.get(column, "")) for column in columns] for call in calls]
        sums: list[list[str]] = []
        if col_sums:
            sums = [_row("Sum", _join(calls), columns)]
            sums += [
                _row("Total", {"Device": name, **metrics}, columns)
                for name, metrics in self.device_metrics.items()
            ]
        settings = "".join(f"{name}: {value}\n" for name, value in self.configuration.items())
        return _layout(columns, rows, sums) + f"\nConfiguration\n-------------\n{settings}"

    def json(self) -> str:
        """Everything as JSON, which :meth:`from_json` reads."""
        return json.dumps(
            {
                "calls": [_to_json(call) for call in self.calls],
                "device_metrics": {n: _to_json(m) for n, m in self.device_metrics.items()},
                "configuration": _to_json(self.configuration),
            }
        )

    @classmethod
    def from_json(cls, s: str) -> Report:
        """The report that :meth:`json` wrote."""
        try:
            content = json.loads(s)
            return cls(
                [_from_json(call) for call in content["calls"]],
                {name: _from_json(m) for name, m in content["device_metrics"].items()},
                _from_json(content["configuration"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"from_json needs what Report.json wrote: {error!r}") from None

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"Report({len(self.calls)} calls on {', '.join(self.device_metrics) or 'no device'})"


def _to_json(metrics: Mapping[str, Metric]) -> dict[str, dict[str, Any]]:
    kinds = {kind: name for name, kind in _JSON_NAMES.items()}
    return {name: {kinds[type(value)]: _plain(value)} for name, value in metrics.items()}


def _from_json(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Metric]:
    return {
        name: _JSON_NAMES[kind](value)
        for name, entry in metrics.items()
        for kind, value in entry.items()
    }


def _plain(value: Metric) -> Any:
    return value if isinstance(value, str) else value.value


def _number(value: Metric | None) -> float:
    return 0.0 if value is None or isinstance(value, str) else float(value.value)


def _columns(calls: Iterable[Mapping[str, Metric]]) -> list[str]:
    names = dict.fromkeys(name for call in calls for name in call)
    first = [name for name in _FIRST_COLUMNS if name in names]
    return [*first, *(name for name in names if name not in first)]


def _aggregate(calls: Sequence[Mapping[str, Metric]]) -> list[dict[str, Metric]]:
    groups: dict[tuple[Metric, ...], list[Mapping[str, Metric]]] = {}
    for call in calls:
        texts = tuple([value for value in call.values() if isinstance(value, str)])
        groups.setdefault(texts, []).append(call)
    return [_join(group) for group in groups.values()]


def _join(calls: Sequence[Mapping[str, Metric]]) -> dict[str, Metric]:
    """One entry for several: times, counts and parts add up, ratios are averaged by time."""
    joined: dict[str, Metric] = {}
    for name in _columns(calls):
        values = [call[name] for call in calls if name in call]
        first = values[0]
        if isinstance(first, str):
            joined[name] = first
        elif isinstance(first, Ratio):
            weights = [_number(call.get("Duration (us)")) or 1.0 for call in calls if name in call]
            total = sum(_number(v) * w for v, w in zip(values, weights, strict=True))
            joined[name] = Ratio(total / sum(weights))
        else:
            joined[name] = type(first)(sum(_plain(value) for value in values))
    return joined


def _row(title: str, metrics: Mapping[str, Metric], columns: Sequence[str]) -> list[str]:
    shown = {
        name: str(value)
        for name, value in metrics.items()
        if name == "Device" or not isinstance(value, str)
    }
    if title == "Sum":
        shown.pop("Device", None)
    return [title, *(shown.get(column, "") for column in columns[1:])]


def _layout(columns: list[str], rows: list[list[str]], sums: list[list[str]]) -> str:
    lines = [columns, *rows, *sums]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    # texts to the left, numbers to the right
    sides = ["<" if name in _TEXT_COLUMNS else ">" for name in columns]
    texts = [
        "  ".join(f"{cell:{side}{w}}" for cell, side, w in zip(line, sides, widths, strict=True))
        for line in lines
    ]
    texts = [text.rstrip() for text in texts]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    body = [texts[0], rule, *texts[1 : 1 + len(rows)]]
    return "\n".join([*body, rule, *texts[1 + len(rows) :]] if sums else body) + "\n"


class DeviceWrapper(Object):
    """A device, for collectors."""

    def __init__(self, dev: Device) -> None:
        self.device = dev


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
        return get_global_func("runtime.profiling.PerfEvents")(*self.events)  # type: ignore[no-any-return]

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
    metric_names : dict of DeviceWrapper to list of str, optional
        The names for each device; only processors have such counters.
    """

    def __init__(self, metric_names: Mapping[DeviceWrapper, Sequence[str]] | None = None) -> None:
        if metric_names is None:
            super().__init__()
            return
        for wrapper in metric_names:
            if wrapper.device.device_type != Device.kDLCPU:
                raise ValueError(f"PAPIMetricCollector counts on cpu, got {wrapper.device}")
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
    return f"{Device.DEVICE_TYPE_TO_NAME[dev.device_type]}{dev.device_id}"


def measured(
    collectors: Sequence[MetricCollector], dev: Device, call: Callable[[], object]
) -> dict[str, Metric]:
    """Run the call; what the collectors found."""
    started = [(collector, collector.start(dev)) for collector in collectors]
    call()
    metrics: dict[str, Metric] = {}
    for collector, state in reversed(started):
        if state is not None:
            metrics.update(collector.stop(state))
    return metrics


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
    func = mod[func_name or mod.entry_name]

    def profile(*args: Any) -> dict[str, Metric]:
        """Call it with these arguments."""
        for _ in range(warmup_iters):
            func(*args)
        for collector in collectors:
            collector.init([DeviceWrapper(where)])
        return measured(collectors, where, lambda: func(*args))

    return profile
