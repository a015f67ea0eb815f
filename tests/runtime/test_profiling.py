"""Reports: table, CSV, JSON; collectors."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tvm
import tvm.runtime.ndarray as nd
from tests.contrib.test_graph_executor import graph
from tvm.contrib.debugger import debug_executor
from tvm.runtime import Device, Module, profiling
from tvm.runtime.profiling import Count, Duration, Metric, Percent, Ratio, Report


def call(name: str, microseconds: float, **more: Metric) -> dict[str, Metric]:
    return {
        "Name": name,
        "Duration (us)": Duration(microseconds),
        "Percent": Percent(microseconds / 100),
        "Device": "cpu0",
        "Count": Count(1),
        **more,
    }


@pytest.fixture
def report() -> Report:
    calls = [
        call("add", 1000, Speed=Ratio(2.0)),
        call("mul", 6000.5, Speed=Ratio(8.0)),
        call("add", 3000, Speed=Ratio(6.0)),
    ]
    devices = {"cpu0": {"Duration (us)": Duration(10000.0)}}
    return Report(calls, devices, {"Executor": "Graph", "Number of threads": Count(2)})


def test_json_comes_back(report: Report) -> None:
    text = report.json()
    first = json.loads(text)["calls"][0]
    assert first["Name"] == {"string": "add"} and first["Duration (us)"] == {"microseconds": 1000}
    assert first["Count"] == {"count": 1} and first["Speed"] == {"ratio": 2.0}
    again = Report.from_json(text)
    assert again.calls == report.calls and again.device_metrics == report.device_metrics
    assert again.configuration == report.configuration and again.json() == text


def test_csv_has_one_row_a_call(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(report.csv())))
    assert [row["Name"] for row in rows] == ["add", "mul", "add"]
    assert float(rows[1]["Duration (us)"]) == 6000.5


def test_table_joins_sorts_and_sums(report: Report) -> None:
    lines = report.table().splitlines()
    assert lines[0].split()[:2] == ["Name", "Duration"]
    assert lines[2].split() == ["mul", "6,000.50", "60.01", "cpu0", "1", "8.00"]
    assert lines[3].split() == ["add", "4,000.00", "40.00", "cpu0", "2", "5.00"]
    assert lines[5].split()[:2] == ["Sum", "10,000.50"]
    assert lines[6].split() == ["Total", "10,000.00", "cpu0"]
    assert "Executor: Graph" in lines and "Number of threads: 2" in lines
    assert str(report) == report.table(wide=True)
    plain = report.table(sort=False, aggregate=False, col_sums=False).splitlines()
    assert [line.split()[0] for line in plain[2:5]] == ["add", "mul", "add"]
    assert not any(line.startswith("Sum") for line in plain)


class Counter(profiling.MetricCollector):
    def __init__(self) -> None:
        self.devices: list[Device] = []

    def init(self, devs: Any) -> None:
        self.devices = [each.device for each in devs]

    def start(self, dev: Device) -> str:
        return "started"

    def stop(self, started: Any) -> Mapping[str, Metric]:
        assert started == "started"
        return {"Cycles": Count(5)}


def test_collectors_measure_a_function(library: Module) -> None:
    counter, out = Counter(), nd.empty((3,))
    profile = profiling.profile_function(library, "cpu", [counter], "add", warmup_iters=2)
    ones = nd.array(np.ones(3, "float32"))
    assert profile(ones, ones, out) == {"Cycles": Count(5)}
    assert out.numpy().tolist() == [2, 2, 2] and counter.devices == [Device(1, 0)]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"calls": [1], "device_metrics": {}, "configuration": {}}',
             '{"calls": [{"a": {"pounds": 1}}], "device_metrics": {}, "configuration": {}}']
)  # fmt: skip
def test_json_of_no_report_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"from_json needs what Report\.json wrote"):
        Report.from_json(text)


def test_the_kernel_counts_events(library: Module) -> None:
    collector = profiling.PerfEventCollector(["task-clock", "page-faults"])
    size = 1 << 20
    ones, out = nd.array(np.ones(size, "float32")), nd.empty((size,))
    profile = profiling.profile_function(library, "cpu", [collector], "add", warmup_iters=0)
    found = profile(ones, ones, out)
    assert list(found) == ["task-clock", "page-faults"]
    assert isinstance(found["task-clock"], Duration) and found["task-clock"].value > 10
    assert isinstance(found["page-faults"], Count)  # none, where the memory was used before


def test_events_that_no_machine_counts_are_named() -> None:
    with pytest.raises(ValueError, match=r"no perf event 'cicles'; known are cycles, instructions"):
        profiling.PerfEventCollector(["cicles"])
    with pytest.raises(ValueError, match="needs the name of an event"):
        profiling.PerfEventCollector([])


def test_events_by_their_names_in_papi() -> None:
    cpu = profiling.DeviceWrapper(Device(1, 0))
    collector = profiling.PAPIMetricCollector({cpu: ["perf::TASK-CLOCK", "perf::PAGE-FAULTS"]})
    assert collector.events == ("task-clock", "page-faults")
    with pytest.raises(ValueError, match=r"PAPI_TOT_CYC.*got 'PAPI_FLOPS'"):
        profiling.PAPIMetricCollector({cpu: ["PAPI_FLOPS"]})
    with pytest.raises(ValueError, match=r"counts on cpu, got cuda"):
        profiling.PAPIMetricCollector({Device(2, 0): ["PAPI_TOT_CYC"]})


# what an ordinary user may count, with a limit on files
CHILD = """
import os, resource, threading
import tvm
from tvm.runtime import profiling

# each thread takes a file: there are two at least
threading.Thread(target=threading.Event().wait, daemon=True).start()
counter = profiling.PerfEventCollector(["task-clock", "page-faults"])
started = counter.start(tvm.cpu())
memory = bytearray(8 << 20)
found = counter.stop(started)
assert found["task-clock"].value > 0 and found["page-faults"].value > 1000, found
free = os.dup(0)
os.close(free)
for more in (1, 0):  # one for the list of threads, or none
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + more, free + 1))
    try:
        profiling.PerfEventCollector(["task-clock"])
    except tvm.TVMError as error:
        print(error)
"""

# a filter of system calls rejects what capabilities and sysctl may permit
DENIED_CHILD = """
import ctypes, errno, platform, struct
import tvm
from tvm.runtime import profiling

number = {"x86_64": 298, "aarch64": 241}[platform.machine()]  # of perf_event_open
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x50000 | errno.EACCES), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join([struct.pack("HBBI", *step) for step in steps]))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
prctl, no_new_privileges, seccomp, by_filter = ctypes.CDLL(None).prctl, 38, 22, 2
assert prctl(no_new_privileges, 1, 0, 0, 0) == 0
assert prctl(seccomp, by_filter, program, 0, 0) == 0
for event in ("context-switches", "task-clock"):
    try:
        profiling.PerfEventCollector([event])
    except tvm.TVMError as error:
        print(error)
"""


def lines_of(child: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", child], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_files_that_run_out_are_told() -> None:
    assert lines_of(CHILD) == [
        "cannot count 'task-clock': Too many open files",
        "perf events need the threads in /proc/self/task: Too many open files",
    ]


def test_what_the_kernel_rejects_is_told() -> None:
    for found, event, most in zip(
        lines_of(DENIED_CHILD), ("context-switches", "task-clock"), (1, 2), strict=True
    ):
        assert re.fullmatch(
            f"the kernel does not permit to count '{event}': "
            rf"kernel.perf_event_paranoid is -?\d, at most {most} is needed",
            found,
        )


def test_counters_that_a_machine_lacks_are_named() -> None:
    try:
        found = profiling.PerfEventCollector(["instructions"])
    except tvm.TVMError as error:
        assert "'instructions'" in str(error)
    else:
        started = found.start(Device(1, 0))
        assert started is not None and found.stop(started)["instructions"].value > 0
    assert profiling.PerfEventCollector(["task-clock"]).start(Device(2, 0)) is None


def test_events_are_counted_around_each_operator(library: Module) -> None:
    module = debug_executor.create(graph(), library, tvm.cpu())
    report = module.profile([profiling.PerfEventCollector(["task-clock", "page-faults"])])
    assert len(report.calls) == 2
    for call in report.calls:
        assert call["task-clock"].value > 0 and call["page-faults"].value >= 0
    header = report.table().splitlines()[0]
    assert "task-clock" in header and "page-faults" in header
    module.exit()


def _long_report() -> Report:
    def call(node: str, shapes: str) -> Mapping[str, Metric]:
        return {
            "Name": "tvmgen_default_fused_nn_contrib_conv2d_NCHWc_add_multiply_add_nn_relu",
            "Duration (us)": Duration(2.0),
            "Device": "cpu0",
            "Count": Count(1),
            "Argument Shapes": shapes,
            "Hash": "0123456789abcdef",
            "Model Nodes": node,
        }

    calls = [call("größe " * 20, "float32[1, 64, 56, 56]" * 5), call("b", "float32[2]")]
    return Report(calls, {}, {})


def test_lines_of_a_table_fit_unless_they_may_be_wide() -> None:
    report = _long_report()
    lines = report.table().splitlines()
    assert max(map(len, lines)) <= 120 and "Hash" not in lines[0]
    assert "..." in lines[2] and "_add_multiply_add_nn_relu" in lines[2] and "größe" in lines[2]
    assert str(report) == report.table(wide=True)
    wide = report.table(wide=True)
    assert "0123456789abcdef" in wide and "größe " * 20 in wide and "..." not in wide


def test_calls_of_one_kernel_are_joined_whichever_nodes_they_compute() -> None:
    name = {"Name": "f", "Duration (us)": Duration(1.0), "Count": Count(1)}
    report = Report([{**name, "Model Nodes": "a"}, {**name, "Model Nodes": "b, c"}], {}, {})
    row = report.table().splitlines()[2]
    assert row.split() == ["f", "2.00", "2", "a,", "b,", "c"]
