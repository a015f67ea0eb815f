"""Kernels without records beside those that a search finds: `python -m benchmarks.tuning --trials 60 dense_512`.

Both are measured in one process, alternating; the ratio is untuned over tuned. What the search spends
outside of building and measuring is printed too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tvm
from tvm import auto_scheduler, relay
from tvm.contrib import graph_executor


def dense(size: int) -> relay.Function:
    """A square dense layer."""
    a, b = [relay.var(name, shape=(size, size)) for name in "ab"]
    return relay.Function([a, b], relay.nn.dense(a, b))


def conv2d_nhwc(extent: int, channels: int, filters: int, kernel: int) -> relay.Function:
    """A convolution of images with channels last."""
    data = relay.var("data", shape=(1, extent, extent, channels))
    weight = relay.var("weight", shape=(kernel, kernel, channels, filters))
    call = relay.nn.conv2d(
        data, weight, padding=kernel // 2, channels=filters, kernel_size=(kernel, kernel),
        data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    return relay.Function([data, weight], call)


def depthwise(extent: int, channels: int) -> relay.Function:
    """A depthwise convolution with channels first."""
    data = relay.var("data", shape=(1, channels, extent, extent))
    weight = relay.var("weight", shape=(channels, 1, 3, 3))
    call = relay.nn.conv2d(
        data, weight, padding=1, channels=channels, groups=channels, kernel_size=(3, 3)
    )
    return relay.Function([data, weight], call)


def softmax(rows: int, columns: int) -> relay.Function:
    """Softmax of rows."""
    data = relay.var("data", shape=(rows, columns))
    return relay.Function([data], relay.nn.softmax(data))


WORKLOADS: dict[str, Callable[[], relay.Function]] = {
    "dense_512": lambda: dense(512),
    "dense_1024": lambda: dense(1024),
    "conv2d_56": lambda: conv2d_nhwc(56, 64, 64, 3),
    "conv2d_14": lambda: conv2d_nhwc(14, 256, 256, 3),
    "depthwise_56": lambda: depthwise(56, 144),
    "softmax": lambda: softmax(512, 4096),
}


def compare(name: str, trials: int, target: str) -> float:
    """Search, build both and print their times; untuned over tuned."""
    mod = tvm.IRModule.from_expr(WORKLOADS[name]())
    mod = relay.transform.InferType()(mod)
    rng = np.random.default_rng(0)
    values = {
        var.name_hint: rng.uniform(size=[int(d) for d in var.checked_type.shape]).astype("float32")
        for var in mod["main"].params
    }
    params = {name: values[name] for name in values if name in ("b", "weight")}
    tasks, weights = auto_scheduler.extract_tasks(
        mod["main"], params, target, include_simple_tasks=True
    )
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder) / "log.json")
        clock = _Clock()
        started = time.perf_counter()
        auto_scheduler.TaskScheduler(tasks, weights).tune(
            auto_scheduler.TuningOptions(
                num_measure_trials=trials, num_measures_per_round=min(trials, 64), verbose=1,
                builder=clock.around(auto_scheduler.LocalBuilder(timeout=60)),
                runner=clock.around(auto_scheduler.LocalRunner(timeout=60, min_repeat_ms=20)),
                measure_callbacks=[auto_scheduler.RecordToFile(log)],
            )
        )  # fmt: skip
        seconds = time.perf_counter() - started
        best = {"untuned": _run(mod, values, params, target, None)}
        best["tuned"] = _run(mod, values, params, target, log)
    difference = np.abs(best["untuned"][1] - best["tuned"][1]).max()
    times = dict.fromkeys(best, float("inf"))
    for _ in range(20):
        for key, (run, _) in best.items():
            times[key] = min(times[key], run())
    ratio = times["untuned"] / times["tuned"]
    share = (seconds - clock.seconds) / seconds
    print(
        f"{name}: untuned {times['untuned'] * 1e3:.3f} ms, tuned {times['tuned'] * 1e3:.3f} ms, "
        f"ratio {ratio:.2f}; {seconds:.0f} s, of which the search {share:.0%}; "
        f"largest difference {difference:.1e}",
        flush=True,
    )
    return ratio


class _Clock:
    """Counts the seconds of builders and runners."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, measurer: Any) -> Any:
        """The builder or runner, with its time counted."""
        for method in ("build", "run"):
            if (inner := getattr(measurer, method, None)) is not None:
                setattr(measurer, method, self._timed(inner))
        return measurer

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args)
            finally:
                self.seconds += time.perf_counter() - started

        return timed


def _run(
    mod: Any, values: dict[str, Any], params: dict[str, Any], target: str, log: str | None
) -> tuple[Callable[[], float], np.ndarray]:
    """What measures the model once, and its output."""
    config = {"relay.backend.use_auto_scheduler": log is not None}
    with (
        auto_scheduler.ApplyHistoryBest(log),
        tvm.transform.PassContext(opt_level=3, config=config),
    ):
        lib = relay.build(mod, target, params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.set_input(**{name: values[name] for name in values if name not in params})
    module.run()
    evaluator = module.module.time_evaluator("run", tvm.cpu(), number=3, repeat=3)
    return lambda: min(evaluator().results), module.get_output(0).numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--target", default="llvm -mcpu=native")
    args = parser.parse_args()
    ratios = [compare(name, args.trials, args.target) for name in args.names]
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}")


if __name__ == "__main__":
    main()
