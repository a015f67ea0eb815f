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
from tvm.ir.memory_pools import ConstantPoolInfo
from tvm.ir.module import IRModule
from tvm.relay.backend.aot_function import MAIN, AotFunction, main_name
from tvm.relay.backend.aot_lower_main import AOTLowerMain
from tvm.relay.backend.c_interface import ModelInterface
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import ExecutorMetadata
from tvm.relay.backend.function_info import FunctionInfo, kernel_info
from tvm.relay.backend.utils import CallType
from tvm.relay.function import OUTPUT_NAMES
from tvm.relay.op.attributes import as_ints
from tvm.runtime.container import Map
from tvm.target import Target
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
            info = kernel_info(func, func, target, alignments)
            found[gvar.name_hint] = (
                _with_pools(info, target, mod) if gvar.name_hint == MAIN else info
            )
    return found


def _with_pools(main: FunctionInfo, target: Target, mod: IRModule) -> FunctionInfo:
    """What the model's function needs, with the pools that have places for the module's memory."""
    workspace, constants = main.workspace_sizes[target], main.constant_sizes[target]
    for pool in mod.attrs.get("pool_args", ()):
        size = int(pool.allocated_size)
        if isinstance(pool.pool, ConstantPoolInfo):
            constants += size
        else:
            workspace += size
    return replace(
        main,
        workspace_sizes=Map({target: workspace}),
        constant_sizes=Map({target: constants}),
    )


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
    inputs = tuple([_info(func.buffer_map[v], v.name) for v in func.attrs["input_vars"]])
    results = func.attrs["output_vars"]
    names = [str(n) for n in func.attrs.get(OUTPUT_NAMES) or [v.name for v in results]]
    outputs = tuple([_info(func.buffer_map[v], n) for v, n in zip(results, names, strict=True)])
    # kernels run one at a time
    inside = [sum(i.workspace_sizes.values()) for n, i in facts.items() if n != MAIN]
    workspace = sum(facts[MAIN].workspace_sizes.values()) + max(inside, default=0)
    return ExecutorMetadata(
        ModelMetadata(mod_name, inputs, outputs),
        executor,
        ModelInterface(mod_name, inputs, outputs, workspace),
        (int(workspace_byte_alignment), int(constant_byte_alignment)),
    )


def _info(buffer: tir.Buffer, name: str) -> TensorInfo:
    return TensorInfo(name, as_ints(buffer.shape), buffer.dtype)
