"""From a model to kernels and the order of their calls: what all executors start from."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.driver.build_module import runtime_attrs
from tvm.ir.module import IRModule
from tvm.ir.pass_context import register_pass_config
from tvm.relay.backend.external import ExternalCode, external_functions, outline_external
from tvm.relay.backend.graph_codegen import GraphCodegen, LoweredGraph
from tvm.relay.backend.kernels import KernelCompiler, check_operators, kernel_name
from tvm.relay.backend.machines import Machines
from tvm.relay.backend.name_transforms import mangle_module_name
from tvm.relay.backend.runtime import Runtime
from tvm.relay.backend.summary import report
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive, output_names
from tvm.relay.pipeline import fusion, optimization
from tvm.relay.progress import LOWERING, OPTIMIZING, Progress
from tvm.relay.traverse import nodes_outside_functions
from tvm.runtime.module import Module
from tvm.target import Target
from tvm.target.versions import layout_target

_NO_TUNERS = "kernels have the schedules of their operators"
register_pass_config("relay.backend.use_auto_scheduler", bool)
register_pass_config("relay.backend.use_meta_schedule", bool, _NO_TUNERS)
register_pass_config("relay.backend.use_meta_schedule_dispatch", int, _NO_TUNERS)


@dataclass
class LoweredModel:
    """A model before code generation."""

    mod: IRModule  # optimised and fused
    graph: LoweredGraph
    kernels: IRModule
    external: dict[str, Function]  # by the name in the module
    target: Target
    mod_name: str
    elsewhere: dict[Target, IRModule]  # kernels of other targets

    def link_external(self, lib: Module, runtime: Runtime, unpacked_api: bool = False) -> Module:
        """The library with what other compilers make of their functions."""
        external = ExternalCode.of(self.mod, self.target, unpacked_api, runtime_attrs(runtime))
        if runtime.name == "crt":
            external.check_for_c()
        return external.link(lib)


def lower_model(
    mod: IRModule,
    machines: Machines,
    mod_name: str,
    step: Progress,
    link_params: bool = False,
    is_hosted: bool = False,
) -> LoweredModel:
    """Optimise the graph, fuse it, and lower each distinct kernel.

    With `is_hosted`, inputs, results and constants live with the main target.
    """
    with layout_target(machines.main):
        step("optimizing the graph", OPTIMIZING)
        copied = machines.copied(outline_external(mod), is_hosted)
        fused = fusion(link_params)(optimization()(copied))
        fused = machines.assigned(fused, copied, is_hosted)
    model = lower_fused(fused, machines.main, mod_name, step)
    model.graph.graph.output_names = output_names(mod["main"], len(model.graph.graph.heads))
    return model


def lower_fused(mod: IRModule, target: Target, mod_name: str, step: Progress) -> LoweredModel:
    """Lower each distinct kernel of a fused model."""
    main = mod["main"]
    order = nodes_outside_functions(main.body)
    functions = [n.op for n in order if isinstance(n, Call) and is_primitive(n.op)]
    check_operators(functions)
    compiler = KernelCompiler(target, prefix=f"{mangle_module_name(mod_name)}_")
    external = external_functions(mod)
    lower = step.counting("lowering kernel", compiler.lower, len(functions), kernel_name)
    step(f"lowering {len(functions)} kernels", LOWERING)
    compiler.lower_ahead(functions)
    codegen = GraphCodegen(lower, external)
    graph = codegen.run(main)
    graph.kernels = compiler.kernels
    report(compiler.kernels, target)
    return LoweredModel(
        mod, graph, compiler.module(), external, target, mod_name, compiler.elsewhere()
    )
