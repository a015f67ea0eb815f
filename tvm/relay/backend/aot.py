"""The steps of a build for the AOT executor, one by one, on modules of calls of lowered functions.

config = tvm.target.make_compilation_config(tvm.transform.PassContext.current(), "llvm")
mod = AOTLowerMain("test_mod", config, CallType.CPacked)(mod)       # mod["__tvm_main__"]
metadata = CreateExecutorMetadata(mod, "test_mod", Executor("aot"), 8, 8)
"""

from __future__ import annotations

from dataclasses import replace

from tvm import tir
from tvm.codegen.model_metadata import ModelMetadata, TensorInfo
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.backend.aot_function import MAIN, AotFunction, aot_function, main_name
from tvm.relay.backend.c_interface import ModelInterface
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import ExecutorMetadata
from tvm.relay.backend.function_info import FunctionInfo, kernel_info
from tvm.relay.backend.graph_codegen import GraphCodegen
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.utils import CallType
from tvm.relay.function import OUTPUT_NAMES, Function, output_names
from tvm.relay.op.attributes import as_ints
from tvm.relay.transform import InferType
from tvm.target import Target
from tvm.target.compilation_config import CompilationConfig
from tvm.tir import PrimFunc

__all__ = [
    "MAIN",
    "AOTLowerMain",
    "AotFunction",
    "CallType",
    "CreateExecutorMetadata",
    "CreateFunctionMetadata",
    "main_name",
]


def AOTLowerMain(mod_name: str, config: CompilationConfig, call_type: CallType) -> Pass:
    """The pass that writes `main`, which calls lowered functions, as `__tvm_main__`.

    Parameters
    ----------
    mod_name : part of the function's name.
    config : the targets of the build.
    call_type : how the function calls the others.
    """

    def run(mod: IRModule, _: PassContext) -> IRModule:
        if "main" not in mod:
            raise TVMError("AOTLowerMain requires a function main, the module has none")
        typed = InferType()(mod)
        main = typed["main"]
        graph = GraphCodegen(_refuse).run(main)
        made = aot_function(graph, None, mod_name, CallType(call_type))
        names = output_names(main, len(made.outputs))
        func = _described(made, names, config.host_target)
        kept = {g: f for g, f in typed.functions.items() if g.name_hint != "main"}
        functions: dict[GlobalVar, BaseFunc] = {**kept, GlobalVar(MAIN): func}
        return IRModule(functions, mod.type_definitions, attrs=mod.attrs)

    return ModulePass(run, PassInfo(0, "AOTLowerMain"))


def _refuse(func: Function) -> LoweredKernel:
    raise TVMError(
        "AOTLowerMain requires functions that were lowered, got one in its place",
        at=func,
        hint="call_lowered(@name, (arguments,)) calls a global function",
    )


def _described(made: AotFunction, outputs: list[str], target: Target) -> PrimFunc:
    """The model's function with what its attributes tell about it."""
    func = made.func
    count = len(made.inputs)
    params = [func.buffer_map[p].data for p in func.params]
    return func.with_attrs(
        {
            "target": target,
            "input_vars": params[:count],
            "output_vars": params[count:],
            OUTPUT_NAMES: outputs or [t.name for t in made.outputs],
            "devices": [],
        }
    )


def CreateFunctionMetadata(
    mod: IRModule, workspace_byte_alignment: int, constant_byte_alignment: int
) -> dict[str, FunctionInfo]:
    """What memory the lowered functions of a module need, by name.

    Parameters
    ----------
    workspace_byte_alignment, constant_byte_alignment : of every block of memory.
    """
    alignments = (int(workspace_byte_alignment), int(constant_byte_alignment))
    found = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            target = func.attrs.get("target") or Target("llvm")
            found[gvar.name_hint] = kernel_info(func, func, target, alignments)
    if (main := found.get(MAIN)) is not None:
        (target,) = main.workspace_sizes
        # kernels run one at a time
        inside = [sum(i.workspace_sizes.values()) for n, i in found.items() if n != MAIN]
        total = main.workspace_sizes[target] + max(inside, default=0)
        found[MAIN] = replace(main, workspace_sizes={target: total})
    return found


def CreateExecutorMetadata(
    mod: IRModule,
    mod_name: str,
    executor: Executor,
    workspace_byte_alignment: int,
    constant_byte_alignment: int,
) -> ExecutorMetadata:
    """What the code around a model's function knows of it.

    Parameters
    ----------
    mod : has the function `__tvm_main__`.
    mod_name : the name of the model.
    executor : with its options.
    workspace_byte_alignment, constant_byte_alignment : of every block of memory.
    """
    if MAIN not in mod:
        raise TVMError(f"CreateExecutorMetadata requires {MAIN}, which AOTLowerMain makes")
    func = mod[MAIN]
    facts = CreateFunctionMetadata(mod, workspace_byte_alignment, constant_byte_alignment)
    given = len(func.attrs["input_vars"])
    buffers = [func.buffer_map[p] for p in func.params]
    inputs = tuple([_info(b, b.name.removesuffix("_buffer")) for b in buffers[:given]])
    names = [str(n) for n in func.attrs[OUTPUT_NAMES]]
    outputs = tuple([_info(b, n) for b, n in zip(buffers[given:], names, strict=True)])
    workspace = sum(facts[MAIN].workspace_sizes.values())
    return ExecutorMetadata(
        ModelMetadata(mod_name, inputs, outputs),
        executor,
        ModelInterface(mod_name, inputs, outputs, workspace),
        (int(workspace_byte_alignment), int(constant_byte_alignment)),
    )


def _info(buffer: tir.Buffer, name: str) -> TensorInfo:
    return TensorInfo(name, as_ints(buffer.shape), buffer.dtype)
