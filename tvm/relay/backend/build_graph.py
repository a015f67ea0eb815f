"""A lowered model for the graph executor: kernels, graph JSON, parameters."""

from __future__ import annotations

from tvm.codegen.llvm.parts import INDEPENDENT_FUNCTIONS
from tvm.driver.build_module import runtime_attrs
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import GraphExecutorFactoryModule
from tvm.relay.backend.function_info import function_metadata, intermediate_bytes
from tvm.relay.backend.graph import to_json
from tvm.relay.backend.kernels import build_kernels
from tvm.relay.backend.lowering import LoweredModel
from tvm.relay.backend.memory_plan import plan_memory
from tvm.relay.backend.runtime import Runtime
from tvm.relay.progress import COMPILING, Progress


def build_graph(
    model: LoweredModel, executor: Executor, runtime: Runtime, step: Progress
) -> GraphExecutorFactoryModule:
    """Compile the kernels, and plan which tensors share memory."""
    step("planning memory")
    plan = plan_memory(model.graph.graph)
    attrs = {**runtime_attrs(runtime), INDEPENDENT_FUNCTIONS: True}
    kernels = model.kernels.with_attrs(attrs)
    step(f"compiling {len(model.graph.kernels)} kernels", COMPILING)
    lib = build_kernels(kernels, model.target, model.elsewhere)
    lib = model.link_external(lib, runtime)
    device_type = model.target.get_target_device_type()
    return GraphExecutorFactoryModule(
        model.mod,
        model.target,
        executor,
        to_json(model.graph.graph, plan.storage_ids, device_type),
        lib,
        model.mod_name,
        model.graph.params,
        function_metadata(model, intermediate_bytes(model.graph, plan)),
        runtime,
    )
