"""The base of graph tuners.

tuner = DPTuner(mod["main"], {"data": (1, 3, 224, 224)}, "all.log", [relay.op.get("nn.conv2d")], target)
tuner.benchmark_layout_transform(min_exec_num=2000)
tuner.run()
tuner.write_opt_sch2record_file("graph.log")

with autotvm.apply_graph_best("graph.log"):
    lib = relay.build(mod, target, params=params)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm.autotvm.graph_tuner.network import ChoiceNetwork
from tvm.autotvm.graph_tuner.traverse import Shape, TunedGraph, Way, bind_inputs, read_graph
from tvm.autotvm.measure.interface import MeasureInput, MeasureResult
from tvm.autotvm.measure.measure import create_measure_batch, measure_option
from tvm.autotvm.measure.measure_methods import LocalBuilder, LocalRunner, RPCRunner
from tvm.autotvm.record import encode
from tvm.autotvm.task.dispatcher import ApplyHistoryBest, records_of
from tvm.autotvm.task.task import create, get_config, template
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.support.files import write_text
from tvm.target import Target
from tvm.te.declare import placeholder
from tvm.topi.cpu.injective import schedule_injective as x86_schedule
from tvm.topi.generic.schedules import schedule_injective as plain_schedule
from tvm.topi.layout import layout_transform as transformed

PLAIN = "NCHW"
Record = tuple[MeasureInput, MeasureResult]
Layouts = tuple[str, str]


@template("layout_transform")
def layout_transform(*args: Any) -> Any:
    """The template of a transform, which has no knobs.

    Parameters
    ----------
    args :
        The tensor, its layout and the wanted one.
    """
    get_config().add_flop(-1)  # nothing is computed, and its speed is not in operations a second
    out = transformed(*args)
    target = Target.current()
    on_cpu = target is None or "cpu" in target.keys
    schedule = x86_schedule if on_cpu else plain_schedule
    return schedule([out]), [args[0], out]


def _layouts_of_blocks(workload: Sequence[Any], config: Any) -> Layouts:
    """The layouts of data and output in blocks of channels."""
    layout, out_layout = workload[6:8]
    if layout != PLAIN:
        return layout, out_layout
    inner, outer = config["tile_ic"], config["tile_oc"]
    return f"{PLAIN}{inner.size[-1]}c", f"{PLAIN}{outer.size[-1]}c"


def _layouts_of_channels(workload: Sequence[Any], config: Any) -> Layouts:
    """The layouts of depthwise data and output: both have the block of channels."""
    layout, out_layout = workload[6:8]
    if layout != PLAIN:
        return layout, out_layout
    block = f"{PLAIN}{config['tile_oc'].size[-1]}c"
    return block, block


_LAYOUTS: Mapping[str, Callable[[Sequence[Any], Any], Layouts]] = {
    "conv2d_NCHWc.x86": _layouts_of_blocks,
    "conv2d_NCHWc_int8.x86": _layouts_of_blocks,
    "depthwise_conv2d_NCHWc.x86": _layouts_of_channels,
}


def get_infer_layout(task_name: str) -> Callable[[Sequence[Any], Any], Layouts]:
    """The function that tells the layouts of a task's data and output: ``f(workload, config)``.

    Parameters
    ----------
    task_name : str
        The task.
    """
    if task_name not in _LAYOUTS:
        raise ValueError(f"Cannot find infer layout for task {task_name}: {', '.join(_LAYOUTS)}")
    return _LAYOUTS[task_name]


class BaseGraphTuner:
    """Chooses a record for each operator of a graph, so that kernels and transforms are fastest together.

    Parameters
    ----------
    graph : relay.Function or IRModule
        The program.
    input_shapes : dict of str to tuple of int
        The shapes of its inputs.
    records : str or list of (MeasureInput, MeasureResult)
        What was measured.
    target_ops : list of tvm.ir.Op
        The operators to choose for.
    target : str or tvm.target.Target
        The target.
    max_sch_num : int
        How many of the fastest records of an operator are considered.
    dtype : str
        The type of the inputs.
    verbose : bool
        Whether to log to the console.
    log_file : str or None
        Where to log.
    log_level : int
        What to log.
    name : str
        The logger's name.
    """

    def __init__(
        self,
        graph: Any,
        input_shapes: Mapping[str, Shape],
        records: Any,
        target_ops: Iterable[Any],
        target: Any,
        max_sch_num: int = 20,
        dtype: str = "float32",
        verbose: bool = True,
        log_file: str | None = "graph_tuner.log",
        log_level: int = logging.DEBUG,
        name: str = "graph_tuner",
    ) -> None:
        self._target = Target(target)
        self._dtype = dtype
        self._max_sch_num = max_sch_num
        self._logger = _logger(name, log_level, log_file, verbose)
        func = graph["main"] if isinstance(graph, IRModule) else graph
        bound = bind_inputs(func, input_shapes, dtype)
        self._graph: TunedGraph = read_graph(bound, target_ops, self._target)
        self._candidates = self._candidates_of(records_of(records))
        self._seconds: dict[tuple[Shape, str, str], float] = {}
        self._chosen: dict[int, int] = {}

    def _candidates_of(self, records: Sequence[Record]) -> list[list[Record]]:
        """For each operator its fastest records; those of the same layouts only once."""
        by_workload: dict[Any, list[Record]] = {}
        for record in records:
            if record[1].error_no == 0:
                by_workload.setdefault(record[0].task.workload, []).append(record)
        candidates = []
        for workload in self._graph.workloads:
            of_layouts: dict[Layouts, Record] = {}
            for record in sorted(by_workload.get(workload, ()), key=_cost):
                of_layouts.setdefault(_layouts(record), record)
            if not of_layouts:
                raise TVMError(
                    f"the graph tuner needs records of every operator, there is none of {workload}",
                    hint="tune its task: autotvm.task.extract_from_program(...)",
                )
            candidates.append(list(of_layouts.values())[: self._max_sch_num])
        return candidates

    @property
    def layout_transform_perf_records(self) -> dict[tuple[Shape, str, str], float]:
        """The seconds of each transform: by shape, layout and wanted layout."""
        return self._seconds

    @property
    def _layout_transform_perf_records(self) -> dict[Any, Record]:
        """The same as records by workload, as logs have them."""
        found: dict[Any, Record] = {}
        for (shape, source, target), seconds in self._seconds.items():
            data = placeholder(_blocked(shape, source), self._dtype, "data")
            task = create("layout_transform", (data, source, target), self._target)
            inp = MeasureInput(self._target, task, None)
            found[task.workload] = (inp, MeasureResult((seconds,), 0, seconds, 0.0))
        return found

    def _wanted_transforms(self) -> list[tuple[Shape, str, str]]:
        wanted: dict[tuple[Shape, str, str], None] = {}
        for way in self._graph.ways:
            for source in self._layouts_at(way.source, 1):
                for target in self._layouts_at(way.target, 1 if way.joins else 0):
                    if source != target:
                        wanted[(way.shape, source, target)] = None
        return list(wanted)

    def _layouts_at(self, operator: int | None, side: int) -> list[str]:
        """The layouts that an operator's candidates take (0) or give (1)."""
        if operator is None:
            return [PLAIN]
        return [_layouts(record)[side] for record in self._candidates[operator]]

    def benchmark_layout_transform(
        self,
        min_exec_num: int = 100,
        timeout: float = 10,
        use_rpc: bool = False,
        device_key: str | None = None,
        host: str = "127.0.0.1",
        port: int = 9190,
        n_parallel: int = 1,
        build_func: Any = "default",
        layout_records: Any = None,
        target_host: Any = None,
        infer_layout: bool = False,
        runner: Any = None,
    ) -> None:
        """Measure the transforms between the layouts of the candidates.

        Parameters
        ----------
        min_exec_num : int
            How often each is run.
        timeout : float
            Seconds for one of them.
        use_rpc : bool
            Whether to measure on another machine.
        device_key, host, port :
            Of that machine.
        n_parallel : int
            How many are built at a time.
        build_func : str or function
            Of the builder.
        layout_records : str or list of (MeasureInput, MeasureResult), optional
            Records of transforms, which are not measured again.
        target_host : str or tvm.target.Target, optional
            The host.
        infer_layout : bool
            Whether to take all transforms in proportion to their elements: from `layout_records`, or from
            one that is measured.
        runner : Runner, optional
            What measures.
        """
        if use_rpc:
            if device_key is None:
                raise RuntimeError(
                    "benchmark_layout_transform(use_rpc=True) needs the device_key of the tracker"
                )
            runner = RPCRunner(device_key, host, port, number=min_exec_num, timeout=timeout)
        runner = runner or LocalRunner(
            number=min_exec_num, repeat=1, timeout=timeout, cooldown_interval=0
        )
        builder = LocalBuilder(n_parallel=n_parallel, build_func=build_func, timeout=timeout)
        measured = records_of(layout_records)
        known, known_speed = ApplyHistoryBest(measured), _seconds_per_element(measured)
        wanted = self._wanted_transforms()
        self._logger.info("Start to benchmark layout transformation: %d kinds", len(wanted))
        for transform in wanted:
            if infer_layout and (known_speed or self._seconds):
                self._seconds[transform] = known_speed * float(np.prod(transform[0])) or (
                    self._in_proportion(transform)
                )
            else:
                option = measure_option(builder, runner)
                self._seconds[transform] = self._measured(transform, known, option, target_host)
            self._logger.debug("%s: %.3g s", transform, self._seconds[transform])

    def _in_proportion(self, transform: tuple[Shape, str, str]) -> float:
        (shape, _, _), seconds = next(iter(self._seconds.items()))
        return seconds * float(np.prod(transform[0])) / float(np.prod(shape))

    def _measured(
        self,
        transform: tuple[Shape, str, str],
        known: ApplyHistoryBest,
        option: Mapping[str, Any],
        target_host: Any,
    ) -> float:
        shape, source, target = transform
        data = placeholder(_blocked(shape, source), self._dtype, "data")
        args = (data, source, target)
        task = create("layout_transform", args, self._target, target_host)
        for key in self._target.keys:
            if (key, task.workload) in known.best_by_targetkey:
                return _cost(known.best_by_targetkey[(key, task.workload)])
        inp = MeasureInput(self._target, task, task.config_space.get(0))
        (result,) = create_measure_batch(task, option)([inp])
        if result.error_no != 0:
            raise TVMError(f"the transform {transform} cannot be measured: {result.costs[-1]}")
        return _cost((inp, result))

    def _network(self) -> ChoiceNetwork:
        network = ChoiceNetwork()
        for number, records in enumerate(self._candidates):
            network.add_variable(number, [_cost(record) for record in records])
        for way in self._graph.ways:
            costs = self._costs_of(way)
            if way.source is None:
                network.add_costs(way.target or 0, costs[0])
            elif way.target is None:
                network.add_costs(way.source, costs[:, 0])
            else:
                network.add_pair(way.source, way.target, costs)
        return network

    def _costs_of(self, way: Way) -> np.ndarray[Any, Any]:
        """The seconds of the transform for each pair of layouts at the two ends."""
        sources = self._layouts_at(way.source, 1)
        targets = self._layouts_at(way.target, 1 if way.joins else 0)
        return np.array([[self._seconds_of(way.shape, s, t) for t in targets] for s in sources])

    def _seconds_of(self, shape: Shape, source: str, target: str) -> float:
        if source == target:
            return 0.0
        if (shape, source, target) not in self._seconds:
            raise TVMError(
                f"the transform of {shape} from {source} to {target} was not measured",
                hint="call benchmark_layout_transform() before run()",
            )
        return self._seconds[(shape, source, target)]

    def get_optimal_records(self) -> list[Record]:
        """The chosen record of each operator, in the order of the graph."""
        if not self._chosen and self._candidates:
            raise TVMError("there are no optimal records before run()")
        return [records[self._chosen[i]] for i, records in enumerate(self._candidates)]

    def write_opt_sch2record_file(self, record_file: str = "graph_opt_schedule.log") -> None:
        """Write the chosen records, for :class:`tvm.autotvm.task.ApplyGraphBest`.

        Parameters
        ----------
        record_file : str
            Its name.
        """
        lines = [f"{encode(*record)}\n" for record in self.get_optimal_records()]
        write_text(record_file, "".join(lines))
        self._logger.info("Writing optimal schedules to %s successfully.", record_file)

    def run(self, **kwargs: Any) -> None:
        """Choose the records."""
        raise NotImplementedError()

    def _choose(self, solve: Callable[[ChoiceNetwork], dict[int, int]]) -> None:
        network = self._network()
        self._chosen = solve(network)
        self._logger.info(
            "Finished: %d operators, %.3g s in all, %.3g s with the fastest kernel of each",
            len(self._chosen),
            network.cost(self._chosen),
            network.cost(dict.fromkeys(self._chosen, 0)),
        )


def _seconds_per_element(records: Sequence[Record]) -> float:
    """Of transforms that were measured; 0 if there are none."""
    elements = sum([float(np.prod(inp.task.workload[1][1])) for inp, _ in records])
    return sum([_cost(record) for record in records]) / elements if records else 0.0


def _layouts(record: Record) -> Layouts:
    workload = record[0].task.workload
    if workload[0] not in _LAYOUTS:
        return PLAIN, PLAIN
    return get_infer_layout(workload[0])(workload, record[0].config)


def _cost(record: Record) -> float:
    return float(np.mean(record[1].costs))


def _blocked(shape: Shape, layout: str) -> Shape:
    """The shape of data in a layout of blocks of channels."""
    block = layout[len(PLAIN) : -1]
    if not block:
        return shape
    batch, channels, *rest = shape
    return (batch, channels // int(block), *rest, int(block))


def _logger(name: str, level: int, log_file: str | None, verbose: bool) -> logging.Logger:
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if log_file is not None and not any(
        isinstance(h, logging.FileHandler) and Path(h.baseFilename) == Path(log_file).resolve()
        for h in logger.handlers
    ):
        logger.addHandler(logging.FileHandler(log_file))
    if verbose and not any(type(h) is logging.StreamHandler for h in logger.handlers):
        logger.addHandler(logging.StreamHandler())
    return logger
