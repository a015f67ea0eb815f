"""Connecting models to a pipeline, and compiling them.

config = PipelineConfig()
config["input"]["data"].connect(config[first]["input"]["x"])
config[first]["output"][0].connect(config[second]["input"]["y"])
config[second]["output"][0].connect(config["output"]["0"])
factory = build(config)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvm import relay
from tvm.contrib.pipeline_executor import PipelineExecutorFactoryModule, PipelineLayout, StageConfig
from tvm.ir.module import IRModule
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.ty import flat_types
from tvm.runtime.device import cpu


def pipeline_executor_build_enabled() -> bool:
    """Whether pipelines can be built."""
    return True


@dataclass(eq=False)
class Binding:
    """One end of a connection: an input, an output, or a group of parameters."""

    owner: ModuleWrapper | PipelineConfig
    kind: str  # input, output, param, param_group
    name: str | int
    targets: list[Binding] = field(default_factory=list)
    source: Binding | None = None

    @property
    def is_global(self) -> bool:
        """Whether it belongs to the pipeline rather than to a model."""
        return isinstance(self.owner, PipelineConfig)

    def connect(self, binding: Binding) -> None:
        """Let what comes out here go in there."""
        if not isinstance(binding, Binding):
            raise RuntimeError(f"a connection needs another end, got {type(binding).__name__}")
        route = (self._end(), binding._end())
        if route not in _ROUTES:
            raise RuntimeError(
                f"{self} cannot be connected to {binding}: a pipeline connects "
                + ", ".join([f"{a} to {b}" for a, b in _ROUTES])
            )
        if self.owner is binding.owner:
            raise RuntimeError("The connection is circular: a model cannot feed itself")
        if binding.source is not None:
            raise RuntimeError(f"{binding} is connected already, to {binding.source}")
        binding.source = self
        self.targets.append(binding)
        if isinstance(self.owner, ModuleWrapper) and not binding.is_global:
            self.owner.config.dag_topology_sort()

    def _end(self) -> str:
        return f"{'pipeline' if self.is_global else 'model'} {self.kind}"

    def __str__(self) -> str:
        return f"{self._end()} {self.name!r}"


_ROUTES = (
    ("pipeline input", "model input"),
    ("model output", "model input"),
    ("model output", "pipeline output"),
    ("pipeline param_group", "model param"),
)


class BindingList:
    """The ends of one kind, by name or number; made when they are asked for."""

    def __init__(self, owner: ModuleWrapper | PipelineConfig, kind: str) -> None:
        self.owner = owner
        self.kind = kind
        self.bindings: dict[str | int, Binding] = {}

    def __getitem__(self, key: str | int) -> Binding:
        if self.kind == "output":
            key = int(key)
        if key not in self.bindings:
            if isinstance(self.owner, ModuleWrapper):
                self.owner.check_end(self.kind, key)
            self.bindings[key] = Binding(self.owner, self.kind, key)
        return self.bindings[key]


class ModuleWrapper:
    """A model of the pipeline, how it is compiled, and its ends."""

    def __init__(self, config: PipelineConfig, mod: IRModule) -> None:
        self.config = config
        self.mod = mod
        self.idx = -1
        self.name = "default"
        self.target: Any = "llvm"
        self.target_host: Any = None
        self.dev: Any = cpu(0)
        self.params: Any = None
        self.build_func: Callable[..., Any] | None = None
        self.fcompile: Callable[..., Any] | None = None  # makes the library of its modules
        self.cpu_affinity = ""
        self._ends = {
            "input": BindingList(self, "input"),
            "output": BindingList(self, "output"),
            "param": Binding(self, "param", "param"),
        }

    def __getitem__(self, key: str) -> Any:
        if key not in self._ends:
            raise RuntimeError(f"{key!r} not found: a model has input, output and param")
        return self._ends[key]

    def check_end(self, kind: str, key: str | int) -> None:
        """Reject an input or an output that the model does not have."""
        func = infer_types(self.mod)["main"]
        if kind == "output":
            names: list[Any] = list(range(len(flat_types(func.ret_type))))
        else:
            names = [param.name_hint for param in func.params]
        if key not in names:
            raise RuntimeError(f"the model has no {kind} {key!r}, it has {names}")

    @property
    def outputs(self) -> dict[int, Binding]:
        """The outputs that are connected, by number."""
        return {int(k): v for k, v in sorted(self["output"].bindings.items()) if v.targets}

    def successors(self) -> list[ModuleWrapper]:
        """The models that take this one's outputs."""
        targets = [t.owner for binding in self.outputs.values() for t in binding.targets]
        return [t for t in targets if isinstance(t, ModuleWrapper)]


class PipelineConfig:
    """Models and their connections."""

    def __init__(self) -> None:
        self.mod_wrapper: dict[int, ModuleWrapper] = {}  # by identity of the module
        self.input_bindings = BindingList(self, "input")
        self.output_bindings = BindingList(self, "output")
        self.param_group_bindings = BindingList(self, "param_group")

    def __getitem__(self, key: str | IRModule) -> Any:
        if isinstance(key, IRModule):
            return self.mod_wrapper.setdefault(id(key), ModuleWrapper(self, key))
        ends = {
            "input": self.input_bindings,
            "output": self.output_bindings,
            "param_group": self.param_group_bindings,
        }
        if key not in ends:
            raise RuntimeError(f"{key!r} not found: a pipeline has {', '.join(ends)} and models")
        return ends[key]

    def get_mod_idx(self, mod: IRModule) -> int:
        """The number of a model in the order of the pipeline."""
        self.dag_topology_sort()
        return int(self[mod].idx)

    def dag_topology_sort(self) -> list[ModuleWrapper]:
        """Number the models, each behind those whose outputs it takes."""
        waiting = {
            id(wrapper): sum(
                [other.successors().count(wrapper) for other in self.mod_wrapper.values()]
            )
            for wrapper in self.mod_wrapper.values()
        }
        order: list[ModuleWrapper] = []
        ready = [w for w in self.mod_wrapper.values() if not waiting[id(w)]]
        while ready:
            wrapper = ready.pop(0)
            wrapper.idx = len(order)
            order.append(wrapper)
            for follower in wrapper.successors():
                waiting[id(follower)] -= 1
                if not waiting[id(follower)]:
                    ready.append(follower)
        if len(order) < len(self.mod_wrapper):
            raise RuntimeError("The connection is circular: no model can be the first")
        return order

    def get_config(self) -> dict[str, Any]:
        """The models by number with their connections, and where inputs and parameters go."""
        layout = self.layout()
        return {
            "module_connection": {
                wrapper.mod: {
                    "pipeline": {
                        "mod_idx": wrapper.idx,
                        "cpu_affinity": wrapper.cpu_affinity,
                        "output": [_output_config(b) for b in wrapper.outputs.values()],
                    },
                    "mod_name": wrapper.name,
                    "target": wrapper.target,
                    "target_host": wrapper.target_host,
                    "dev": wrapper.dev,
                    "params": wrapper.params,
                    "build": wrapper.build_func,
                    "fcompile": wrapper.fcompile,
                }
                for wrapper in self.dag_topology_sort()
            },
            "input_connection": [
                {"global_interface_name": n, "mod_idx": i, "module_interface_name": key}
                for n, (i, key) in layout.inputs.items()
            ],
            "param_connection": [
                {"global_interface_name": n, "mod_idx": i, "module_interface_name": "param"}
                for n, i in layout.param_groups.items()
            ],
        }

    def layout(self) -> PipelineLayout:
        """The connections by number.

        Raises
        ------
        RuntimeError
            If an output number of the pipeline is missing, or an input goes nowhere.
        """
        stages = [
            StageConfig(
                wrapper.name,
                wrapper.dev,
                {
                    i: tuple(
                        [
                            (t.owner.idx, str(t.name))
                            for t in b.targets
                            if isinstance(t.owner, ModuleWrapper)
                        ]
                    )
                    for i, b in wrapper.outputs.items()
                },
                {
                    i: int(t.name)
                    for i, b in wrapper.outputs.items()
                    for t in b.targets
                    if t.is_global
                },
                wrapper.cpu_affinity,
            )
            for wrapper in self.dag_topology_sort()
        ]
        numbers = sorted([place for stage in stages for place in stage.global_outputs.values()])
        if not numbers or numbers != list(range(len(numbers))):
            raise RuntimeError(f"a pipeline's outputs are numbered from 0 on, got {numbers}")
        inputs = {str(n): _only_target(b) for n, b in self.input_bindings.bindings.items()}
        groups = {str(n): _only_target(b)[0] for n, b in self.param_group_bindings.bindings.items()}
        return PipelineLayout(tuple(stages), inputs, groups)

    def __str__(self) -> str:
        layout = self.layout()
        lines = ["Params"]
        lines += [f"  |{name}: mod{i}:param" for name, i in layout.param_groups.items()]
        lines += ["", "Inputs"]
        lines += [f"  |{name}: mod{i}:{key}" for name, (i, key) in layout.inputs.items()]
        lines += ["", "output"]
        places = {
            place: f"  |output({place}) : mod{number}.output({output})"
            for number, stage in enumerate(layout.stages)
            for output, place in stage.global_outputs.items()
        }
        lines += [places[place] for place in sorted(places)]
        lines += ["", "connections"]
        lines += [
            f"  |mod{number}.output({output})-> mod{to}.{name}"
            for number, stage in enumerate(layout.stages)
            for output, where in stage.outputs.items()
            for to, name in where
        ]
        return "\n".join(lines) + "\n"


def _only_target(binding: Binding) -> tuple[int, str]:
    if len(binding.targets) != 1:
        raise RuntimeError(f"{binding} must be connected to one model, got {len(binding.targets)}")
    target = binding.targets[0]
    assert isinstance(target.owner, ModuleWrapper)
    return target.owner.idx, str(target.name)


def _output_config(binding: Binding) -> dict[str, Any]:
    dependencies = [
        {"mod_idx": t.owner.idx, "input_name": t.name}
        if isinstance(t.owner, ModuleWrapper)
        else {"global_output_index": int(t.name)}
        for t in binding.targets
    ]
    return {"output_idx": binding.name, "dependencies": dependencies}


def build(pipe_configs: PipelineConfig) -> PipelineExecutorFactoryModule:
    """Compile the models of a pipeline."""
    layout = pipe_configs.layout()
    libraries = []
    wrappers = pipe_configs.dag_topology_sort()
    for wrapper in wrappers:
        compile_ = wrapper.build_func or relay.build
        libraries.append(
            compile_(
                wrapper.mod,
                wrapper.target,
                target_host=wrapper.target_host,
                params=wrapper.params,
                mod_name=wrapper.name,
            )
        )
    compilers = [wrapper.fcompile for wrapper in wrappers]
    return PipelineExecutorFactoryModule(libraries, layout, compilers)


def export_library(factory: PipelineExecutorFactoryModule, directory_path: str | Path) -> str:
    """Write a pipeline to a folder; the name that `PipelineModule.load_library` takes."""
    return factory.export_library(directory_path)
