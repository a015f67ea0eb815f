"""Several models as stages of a pipeline, each in a thread of its own.

    factory = pipeline_executor_build.build(config)
    pipeline = PipelineModule(factory)
    pipeline.set_input("data", image)
    pipeline.run()                    # returns at once: the next run may start
    outputs = pipeline.get_output()

While one stage works on a run, the stages before it work on the next ones.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tvm.runtime.ndarray as nd
from tvm.contrib.graph_executor import GraphModule
from tvm.error import RuntimeValueError, TVMError, suggest
from tvm.relay.backend.executor_factory import ExecutorFactoryModule
from tvm.runtime.device import cpu, device
from tvm.runtime.module import Module, load_module
from tvm.runtime.ndarray import NDArray
from tvm.support.files import write_text

CONFIG_FILE = "config"


def pipeline_executor_enabled() -> bool:
    """Whether pipelines can be run."""
    return True


@dataclass(frozen=True)
class StageConfig:
    """One model of a pipeline, and where its outputs go."""

    name: str  # under which its library has the model
    dev: Any
    outputs: Mapping[int, tuple[tuple[int, str], ...]]  # to inputs of other stages
    global_outputs: Mapping[int, int]  # by output: the pipeline's output
    cpu_affinity: str = ""


@dataclass(frozen=True)
class PipelineLayout:
    """All stages in an order in which they can run, and what comes from outside."""

    stages: tuple[StageConfig, ...]
    inputs: Mapping[str, tuple[int, str]]
    param_groups: Mapping[str, int]

    @property
    def num_outputs(self) -> int:
        return sum([len(stage.global_outputs) for stage in self.stages])

    def as_json(self) -> dict[str, Any]:
        """The layout as plain values."""
        return {
            "stages": [
                {
                    "name": stage.name,
                    "device": [stage.dev.device_type, stage.dev.device_id],
                    "outputs": [
                        [i, [list(to) for to in where]] for i, where in stage.outputs.items()
                    ],
                    "global_outputs": [list(item) for item in stage.global_outputs.items()],
                    "cpu_affinity": stage.cpu_affinity,
                }
                for stage in self.stages
            ],
            "inputs": {name: list(to) for name, to in self.inputs.items()},
            "param_groups": dict(self.param_groups),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> PipelineLayout:
        """What `as_json` gave."""
        stages = [
            StageConfig(
                item["name"],
                device(*item["device"]),
                {i: tuple([(mod, name) for mod, name in where]) for i, where in item["outputs"]},
                dict(item["global_outputs"]),
                item["cpu_affinity"],
            )
            for item in data["stages"]
        ]
        inputs = {name: (mod, key) for name, (mod, key) in data["inputs"].items()}
        return PipelineLayout(tuple(stages), inputs, data["param_groups"])


@dataclass
class _Job:
    """One run of the pipeline."""

    number: int
    inputs: list[dict[str, NDArray]]  # by stage
    waiting: list[int]  # values that each stage still waits for
    left: int  # stages that are not done
    outputs: list[NDArray | None]
    error: BaseException | None = None


@dataclass
class _State:
    """What the threads of a pipeline share."""

    layout: PipelineLayout
    modules: list[GraphModule]
    queues: list[queue.SimpleQueue[_Job | None]]
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: dict[int, _Job] = field(default_factory=dict)
    finished: int = 0


def _run_stage(state: _State, index: int) -> None:
    """Work on the runs that arrive at a stage, until there are no more."""
    stage, module = state.layout.stages[index], state.modules[index]
    if stage.cpu_affinity:
        os.sched_setaffinity(0, {int(cpu) for cpu in stage.cpu_affinity.split(",")})
    while (job := state.queues[index].get()) is not None:
        outputs: dict[int, NDArray] = {}
        if job.error is None:
            try:
                outputs = _computed(stage, module, job.inputs[index])
            except Exception as error:
                job.error = error
        _hand_on(state, index, job, outputs)


def _computed(
    stage: StageConfig, module: GraphModule, inputs: Mapping[str, NDArray]
) -> dict[int, NDArray]:
    for name, value in inputs.items():
        module.set_input(name, value)
    module.run()
    wanted = {*stage.outputs, *stage.global_outputs}
    # the next run overwrites the executor's own arrays
    return {i: module.get_output(i).copyto(cpu()) for i in wanted}


def _hand_on(state: _State, index: int, job: _Job, outputs: Mapping[int, NDArray]) -> None:
    """Give a stage's outputs to those who wait for them."""
    stage = state.layout.stages[index]
    ready = []
    with state.lock:
        for number, places in stage.outputs.items():
            for to, name in places:
                if number in outputs:
                    job.inputs[to][name] = outputs[number]
                job.waiting[to] -= 1
                if job.waiting[to] == 0:
                    ready.append(to)
        for number, place in stage.global_outputs.items():
            job.outputs[place] = outputs.get(number)
        job.left -= 1
        if job.left == 0:
            state.done[job.number] = job
            state.finished += 1
    for to in ready:
        state.queues[to].put(job)


class PipelineModule:
    """A pipeline that is ready to run.

    Parameters
    ----------
    module : PipelineExecutorFactoryModule
        What `pipeline_executor_build.build` returned.
    """

    def __init__(self, module: PipelineExecutorFactoryModule) -> None:
        if not isinstance(module, PipelineExecutorFactoryModule):
            raise TypeError(
                "PipelineModule needs what pipeline_executor_build.build returns, got "
                f"{type(module).__name__}"
            )
        self.layout = module.layout
        stages = len(self.layout.stages)
        self._state = _State(
            self.layout, module.create_executors(), [queue.SimpleQueue() for _ in range(stages)]
        )
        self._inputs: dict[str, NDArray] = {}
        self._started = 0
        self._taken = 0
        for index in range(stages):
            threading.Thread(target=_run_stage, args=(self._state, index), daemon=True).start()
        weakref.finalize(self, _stop, self._state.queues)

    def run(self) -> None:
        """Start a run with the inputs as they are now; it goes on while this returns."""
        missing = [name for name in self.layout.inputs if name not in self._inputs]
        if missing:
            raise ValueError(f"the pipeline's inputs are not set: {', '.join(missing)}")
        stages = self.layout.stages
        job = _Job(
            self._started,
            [{} for _ in stages],
            [0] * len(stages),
            len(stages),
            [None] * self.layout.num_outputs,
        )
        for stage in stages:
            for places in stage.outputs.values():
                for to, _ in places:
                    job.waiting[to] += 1
        for name, (index, key) in self.layout.inputs.items():
            job.inputs[index][key] = self._inputs[name]
        self._started += 1
        for index in [i for i, count in enumerate(job.waiting) if count == 0]:
            self._state.queues[index].put(job)

    def set_input(self, key: str, value: Any) -> None:
        """Set an input for the runs that start from now on."""
        self._position_of(key)
        self._inputs[key] = nd.array(value.numpy() if isinstance(value, NDArray) else value)

    def get_input(self, key: str) -> NDArray:
        """The value that an input has now."""
        self._position_of(key)
        if key not in self._inputs:
            raise ValueError(f"the pipeline's input {key!r} is not set")
        return self._inputs[key]

    def _position_of(self, key: str) -> tuple[int, str]:
        if key not in self.layout.inputs:
            raise ValueError(
                f"the pipeline has no input {key!r}; its inputs are "
                f"{', '.join(self.layout.inputs)}; {suggest(key, self.layout.inputs)}".rstrip("; ")
            )
        return self.layout.inputs[key]

    def set_params(self, params_group_name: str, params_data: Mapping[str, Any]) -> None:
        """Set the parameters of the model that a group of parameters belongs to."""
        index = self.get_params_group_pipeline_map(params_group_name)
        if not params_data:
            raise RuntimeValueError(f"set_params requires parameters, got {params_data!r}")
        self._state.modules[index].set_input(**params_data)

    def get_input_pipeline_map(self, name: str) -> list[str]:
        """The number of the model that an input goes to, and its name there, as texts."""
        index, input_name = self._position_of(name)
        return [str(index), input_name]

    def get_params_group_pipeline_map(self, name: str) -> int:
        """The number of the model that a group of parameters belongs to."""
        groups = self.layout.param_groups
        if name not in groups:
            raise RuntimeValueError(
                f"the pipeline has no group of parameters {name!r}: {list(groups)}"
            )
        return groups[name]

    def get_output(self, synchronize: bool = True, sleep_interval: float = 0.001) -> list[NDArray]:
        """The outputs of the oldest run whose outputs were not taken yet.

        Parameters
        ----------
        synchronize : bool
            Wait for it; else the list is empty if that run goes on.
        sleep_interval : float
            Seconds between looks.
        """
        if self._taken == self._started:
            return []
        while self._taken not in self._state.done:
            if not synchronize:
                return []
            time.sleep(sleep_interval)
        job = self._state.done.pop(self._taken)
        self._taken += 1
        if job.error is not None:
            raise job.error
        return [output for output in job.outputs if output is not None]

    @property
    def num_executing_pipeline(self) -> int:
        """How many runs have started."""
        return self._started

    @property
    def num_outputs(self) -> int:
        """How many outputs the pipeline has."""
        return self.layout.num_outputs

    @property
    def num_inputs(self) -> int:
        """How many inputs the pipeline has."""
        return len(self.layout.inputs)

    @staticmethod
    def load_library(config_file_name: str | Path) -> PipelineModule:
        """A pipeline that `export_library` wrote: the name that it returned."""
        path = Path(config_file_name)
        if not path.is_file():
            raise ValueError(f"cannot load a pipeline: file {path} does not exist")
        data = json.loads(path.read_text())
        libraries = [load_module(path.parent / name) for name in data["libraries"]]
        return PipelineModule(
            PipelineExecutorFactoryModule(libraries, PipelineLayout.from_json(data["layout"]))
        )


def _stop(queues: Sequence[queue.SimpleQueue[_Job | None]]) -> None:
    for each in queues:
        each.put(None)


class PipelineExecutorFactoryModule:
    """The compiled models of a pipeline, and how they are connected."""

    def __init__(
        self,
        pipeline_mods: Sequence[ExecutorFactoryModule | Module],
        layout: PipelineLayout,
        compilers: Sequence[Callable[..., Any] | None] = (),
    ) -> None:
        self.pipeline_mods = list(pipeline_mods)
        self.layout = layout
        # what makes the library of each model, where it is not the usual compiler
        self.compilers = list(compilers) or [None] * len(self.pipeline_mods)

    def get_pipeline_executor_module(self) -> PipelineModule:
        """A pipeline that is ready to run."""
        return PipelineModule(self)

    def create_executors(self) -> list[GraphModule]:
        """An executor for each model, in order."""
        return [
            GraphModule(lib[stage.name](stage.dev))
            for lib, stage in zip(self.pipeline_mods, self.layout.stages, strict=True)
        ]

    def export_library(self, directory_path: str | Path) -> str:
        """Write the models as libraries, and how they are connected; the name to load them by."""
        folder = Path(directory_path)
        if not folder.is_dir():
            raise RuntimeError(f"the directory {folder} does not exist")
        names = []
        pairs = zip(self.pipeline_mods, self.compilers, strict=True)
        for number, (lib, compiler) in enumerate(pairs):
            if not isinstance(lib, ExecutorFactoryModule):
                raise TVMError("a pipeline that was loaded cannot be written again")
            names.append(f"lib{number}.so")
            lib.export_library(str(folder / names[-1]), compiler)
        config = folder / CONFIG_FILE
        layout = {"libraries": names, "layout": self.layout.as_json()}
        write_text(config, json.dumps(layout, indent=2))
        return str(config)
