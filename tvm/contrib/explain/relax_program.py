"""A model of relax, compiled for the virtual machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.driver.build_module import lower
from tvm.error import OpNotImplemented
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import Sequential
from tvm.relax.expr import Call, Function, Var
from tvm.relax.pipeline import instruction_passes, kernel_passes, memory_passes
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.transform import RewriteDataflowReshape
from tvm.relax.transform.annotate_tir_op_pattern import prim_func_pattern
from tvm.relax.vm_build import bound, build
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.op.registry import OpPattern
from tvm.relay.program import Params
from tvm.relay.progress import Progress
from tvm.runtime.ndarray import array
from tvm.runtime.relax_vm import Executable, VirtualMachine
from tvm.target import Target
from tvm.tir import PrimFunc
from tvm.topi.choice import ranked

from .graphs import link, numbers_of
from .measure import random_arrays
from .program import KernelSource, Program
from .record import Graph, Memory, Node, Weight
from .relax_graphs import (
    CallGraph,
    call_graph,
    callee_name,
    check_is_straight,
    imported_graph,
    is_view,
    marked,
    op_name,
    tensors_of,
)
from .relax_memory import planned_memory
from .relay_program import source_of


@dataclass(frozen=True)
class RelaxProgram(Program):
    """The calls of kernels that a function became, its memory, and the executable."""

    target: Target
    kernels: Sequence[KernelSource]
    imported: Graph
    built: Graph
    traffic: Mapping[int, int]
    calls: CallGraph
    planned: Function  # its tensors in storages
    executable: Executable

    def call_seconds(self, dev: Device, inputs: Mapping[str, Any], repeat: int) -> dict[int, float]:
        machine = VirtualMachine(self.executable, dev, profile=True)
        names = {i: callee_name(call) for i, call in self.calls.calls.items() if callee_name(call)}
        expected = {i: name for i, name in names.items() if not name.startswith("vm.builtin.")}
        arrays = [array(value, dev) for value in self._inputs(inputs)]
        runs: list[list[float]] = []
        for _ in range(repeat):
            seen = [
                c
                for c in machine.profile("main", *arrays).calls
                if c["Name"] in set(expected.values())
            ]
            assert [c["Name"] for c in seen] == list(expected.values())
            runs.append([c["Duration (us)"].value / 1e6 for c in seen])  # type: ignore[union-attr]
        return dict(zip(expected, np.min(runs, axis=0).tolist(), strict=True))

    def _inputs(self, given: Mapping[str, Any]) -> list[Any]:
        inputs = {n.name: n.outputs[0] for n in self.built.nodes if n.op == "input"}
        if unknown := [name for name in given if name not in inputs]:
            raise ValueError(f"main has the inputs {list(inputs)}, got values of {unknown}")
        values = {**random_arrays(inputs), **given}
        return [np.asarray(values[name]) for name in inputs]

    def memory(self) -> Memory:
        return planned_memory(self.calls, self.planned)

    def weights(self) -> list[Weight]:
        found: dict[int, Weight] = {}
        for number, constants in self.calls.constants.items():
            originals = [self.imported.nodes[i] for i in self.built.nodes[number].others]
            original = sum([t.bytes for node in originals for t in node.weights])
            for constant in constants:
                (tensor,) = tensors_of(constant.struct_info)
                name = f"constant {len(found)}"
                found.setdefault(id(constant.data), Weight(name, tensor, number, original))
        return sorted(found.values(), key=lambda weight: -weight.tensor.bytes)


def is_relax(model: Any) -> TypeGuard[IRModule | Function]:
    """Whether a model is a function of relax, or a module whose `main` is one."""
    is_module = isinstance(model, IRModule)
    return isinstance(model["main"] if is_module and "main" in model else model, Function)


def relax_program(
    mod: IRModule | Function,
    params: Params | None,
    target: Any,
    context: PassContext,
    step: Progress,
) -> RelaxProgram:
    """Compile a model.

    Parameters
    ----------
    mod : IRModule or relax.Function
        The model; its function `main`.
    params : dict of str to NDArray, optional
        Values of parameters of `main`.
    target : str or Target
        The machine.
    context : PassContext
        The options of passes, and who watches them.
    step : Progress
        What is told how far the build is.

    Raises
    ------
    OpNotImplemented
        If `main` has open shapes, control flow or inputs that are no tensors.
    """
    kind = Target(target)
    mod = bound(IRModule.from_expr(mod) if isinstance(mod, Function) else mod, params)
    main, names = marked(_checked(mod["main"]))
    given = mod.with_functions(
        {g: main if g.name_hint == "main" else f for g, f in mod.functions.items()}
    )
    lowered: list[LoweredKernel] = []
    with context, ranked(), kind:
        step("operators become kernels")
        kernels = Sequential([*kernel_passes(lowered.extend), RewriteDataflowReshape()])(given)
        step("planning memory")
        planned = Sequential(memory_passes())(kernels)
        step("instructions")
        final = Sequential(instruction_passes())(planned)
        step("compiling")
        executable = build(final, kind, pipeline=None)
    imported, numbers = imported_graph(main)
    for node, number in zip(imported.calls, numbers, strict=True):
        imported.graph.nodes[node].name = names[number]
    sources = {kernel.name: source_of(kernel) for kernel in lowered}
    calls = _built_graph(kernels, sources, numbers, imported.graph)
    link(imported.graph, calls.graph)
    traffic = {n: _bytes_moved(n, calls) for n in calls.calls}
    return RelaxProgram(
        kind, list(sources.values()), imported.graph, calls.graph, traffic, calls,
        planned["main"], executable,
    )  # fmt: skip


def _checked(main: Function) -> Function:
    check_is_straight(main)
    for param in main.params:
        if not isinstance(param.struct_info, TensorStructInfo):
            raise OpNotImplemented(
                f"explain requires inputs that are tensors, got {param.name_hint}: "
                f"{param.struct_info}"
            )
    return main


def _built_graph(
    mod: IRModule, sources: dict[str, KernelSource], numbers: Mapping[int, int], imported: Graph
) -> CallGraph:
    """The calls; loop programs that they call are added to the kernels."""
    programs = {g.name_hint: f for g, f in mod.functions.items() if isinstance(f, PrimFunc)}
    places: dict[str, int] = {name: i for i, name in enumerate(sources)}

    def node_of(call: Call, var: Var) -> Node | None:
        if is_view(call):
            return None
        name = callee_name(call)
        others = [numbers[n] for n in numbers_of(call.span) if n in numbers]
        if name in programs and name not in sources:
            operators = tuple([imported.nodes[i].op for i in others]) or (name,)
            sources[name] = _loop_program(name, programs[name], operators)
            places[name] = len(places)
        operators = sources[name].operators if name in sources else (name or op_name(call),)
        node = Node(" + ".join(operators).removeprefix("relax."), name, tensors_of(var.struct_info))
        node.kernel, node.others = places.get(name, -1), others
        return node

    return call_graph(mod["main"], "built", node_of)


def _loop_program(name: str, func: PrimFunc, operators: tuple[str, ...]) -> KernelSource:
    pattern = OpPattern(int(prim_func_pattern(func)))
    # private functions have no symbol until instructions are made
    lowered = lower(IRModule({name: func.with_attr("global_symbol", name)}))[name]
    return KernelSource(name, lowered, operators, (pattern, operators[-1]))


def _bytes_moved(number: int, calls: CallGraph) -> int:
    """The bytes of the tensors that a call reads and writes."""
    nodes = calls.graph.nodes
    read = [tensor for operand in calls.operands[number] for tensor in nodes[operand].outputs]
    tensors = [*read, *nodes[number].weights, *nodes[number].outputs]
    return sum([tensor.bytes for tensor in tensors])
