"""The pass that turns calls of lowered functions into one function of the loop level.

def @main(%a) {                           def __tvm_main__(a: handle, output: handle):
  %0 = call_lowered(@f, (%a,));     ->        a_buffer, output_buffer = match_buffer(...), ...
  call_lowered(@f, (%0,))                     sid_1 = allocate([140], "int8", "global.workspace")
}                                             call_cpacked("f", a_buffer.data, sid_1, no context)
                                              call_cpacked("f", sid_1, output_buffer.data, no context)

Every intermediate tensor has memory of its own; StorageRewrite and the planner of pools share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm import tir
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, PrimExpr, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.type import PointerType, PrimType
from tvm.relay.backend.aot_function import MAIN, copy_statement
from tvm.relay.backend.graph import COPY, NOP, Graph, GraphNode, TensorRef
from tvm.relay.backend.graph_codegen import GraphCodegen, LoweredGraph
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.name_transforms import camel_case, sanitize
from tvm.relay.backend.utils import CallType
from tvm.relay.function import OUTPUT_NAMES, Function
from tvm.relay.op.registry import ops
from tvm.relay.transform import InferType, ToGraphNormalForm
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import rewrite_function
from tvm.support import UniqueNames
from tvm.support.dtype import dtype as as_dtype
from tvm.target.compilation_config import CompilationConfig
from tvm.tir.builtin import call_cpacked, call_extern, call_packed, tvm_check_return

_ALIGNMENT = 16  # of inputs and outputs, in bytes
_CONTEXTS = "device_contexts"  # the module's attribute: functions, and the device each needs


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
        typed = InferType()(ToGraphNormalForm()(InferType()(_without_devices(mod))))
        main = typed["main"]
        contexts = {g.name_hint: str(n) for g, n in mod.attrs.get(_CONTEXTS, {}).items()}
        lowered = GraphCodegen(_unsupported).run(main)
        func = _MainWriter(lowered, CallType(call_type), contexts).function().with_attrs(
            {"global_symbol": f"{mod_name}_{MAIN}", "runner_function": True, "target": config.host_target}
        )  # fmt: skip
        if (names := main.attrs.get(OUTPUT_NAMES)) is not None:
            func = func.with_attr(OUTPUT_NAMES, names)
        kept = {g: f for g, f in typed.functions.items() if g.name_hint != "main"}
        functions: dict[GlobalVar, BaseFunc] = {**kept, GlobalVar(MAIN): func}
        return IRModule(functions, mod.type_definitions, attrs=mod.attrs)

    return ModulePass(run, PassInfo(0, "AOTLowerMain"))


def _unsupported(func: Function) -> LoweredKernel:
    raise TVMError(
        "AOTLowerMain requires functions that were lowered, got one in its place",
        at=func,
        hint="call_lowered(@name, (arguments,)) calls a global function",
    )


def _without_devices(mod: IRModule) -> IRModule:
    """The module with a main function whose values say nothing of devices: there is one."""

    def bare(_: RelayExpr, new: RelayExpr) -> RelayExpr:
        return new.args[0] if calls(new, ops.on_device) else new

    main = mod.get_global_var("main")
    return IRModule(
        {**mod.functions, main: rewrite_function(mod[main], bare)},
        mod.type_definitions,
        attrs=mod.attrs,
    )


@dataclass
class _MainWriter:
    lowered: LoweredGraph
    call_type: CallType
    contexts: Mapping[str, str]  # the devices of functions that need one, by the functions' names
    data: dict[TensorRef, tir.Var] = field(default_factory=dict)
    sizes: dict[tir.Var, int] = field(default_factory=dict)  # of intermediate tensors, in bytes
    constants: dict[tir.Var, str] = field(default_factory=dict)  # names of parameters
    devices: dict[str, tir.Var] = field(default_factory=dict)
    names: UniqueNames = field(default_factory=UniqueNames)

    @property
    def graph(self) -> Graph:
        return self.lowered.graph

    def function(self) -> tir.PrimFunc:
        """The function, without what belongs to the module."""
        inputs = self._inputs()
        outputs = self._outputs()
        copied = self._assign_results(list(outputs.values()))
        for device in dict.fromkeys(self.contexts.values()):
            name = f"device_context_{sanitize(device)}"
            self.devices[device] = tir.Var(self.names.fresh(name), as_dtype("handle"))
        steps = [
            self._call(node, index)
            for index, node in enumerate(self.graph.nodes)
            if node.func not in (None, NOP)
        ]
        steps += [copy_statement(self.data[ref], buffer) for ref, buffer in copied]
        body = self._between_hooks(self._with_memory(tir.stmt.seq(steps)))
        attrs = {
            "input_vars": list(inputs),
            "output_vars": list(outputs),
            "devices": list(self.devices),
        }
        params = [*inputs, *outputs, *self.devices.values()]
        return tir.PrimFunc(params, body, buffer_map={**inputs, **outputs}, attrs=attrs)

    def _between_hooks(self, body: tir.Stmt) -> tir.Stmt:
        """The devices are activated for the body."""
        before = [self._hook(device, "Activate") for device in self.devices]
        after = [self._hook(device, "Deactivate") for device in self.devices]
        return tir.stmt.seq([*before, body, *after])

    def _with_memory(self, body: tir.Stmt) -> tir.Stmt:
        for var, size in self.sizes.items():
            body = tir.Allocate(
                var, as_dtype("int8"), (tir.const(size),), tir.const(True, "bool"), body
            )
        for var, name in self.constants.items():
            array = self.lowered.params[name]
            body = tir.AllocateConst(var, str(array.dtype), array.shape, array, body)
        return body

    # ---- where tensors are

    def _inputs(self) -> dict[tir.Var, tir.Buffer]:
        inputs = {}
        for index, node in enumerate(self.graph.nodes):
            if not node.is_input:
                continue
            ref = TensorRef(index)
            if node.name in self.lowered.params:
                kind = PointerType(PrimType(node.outputs[0].dtype))
                var = tir.Var(self.names.fresh(f"constant_{len(self.constants)}"), kind)
                self.constants[var] = node.name
                self.data[ref] = var
                continue
            param, buffer = self._argument(ref, node.name)
            self.data[ref] = buffer.data
            inputs[param] = buffer
        return inputs

    def _outputs(self) -> dict[tir.Var, tir.Buffer]:
        heads = self.graph.heads
        names = ["output"] if len(heads) == 1 else [f"output{i}" for i in range(len(heads))]
        return dict([self._argument(ref, n) for ref, n in zip(heads, names, strict=True)])

    def _argument(self, ref: TensorRef, name: str) -> tuple[tir.Var, tir.Buffer]:
        name = self.names.fresh(sanitize(name))
        info = self.graph.info(ref)
        buffer = tir.decl_buffer(
            info.shape, info.dtype, f"{name}_buffer", data_alignment=_ALIGNMENT
        )
        return tir.Var(name, as_dtype("handle")), buffer

    def _assign_results(self, outputs: list[tir.Buffer]) -> list[tuple[TensorRef, tir.Buffer]]:
        """Give every result its memory; the outputs that must be copied."""
        written: dict[TensorRef, tir.Buffer] = {}
        copied = []
        for ref, buffer in zip(self.graph.heads, outputs, strict=True):
            if ref in written or self.graph.nodes[ref.node].func in (None, NOP):
                copied.append((ref, buffer))
            else:
                written[ref] = buffer
        for index, node in enumerate(self.graph.nodes):
            if node.is_input:
                continue
            for j, info in enumerate(node.outputs):
                ref = TensorRef(index, j)
                if node.func == NOP:
                    self.data[ref] = self.data[node.inputs[j]]
                elif ref in written:
                    self.data[ref] = written[ref].data
                else:
                    kind = PointerType(PrimType(as_dtype("int8")), "global.workspace")
                    self.data[ref] = tir.Var(self.names.fresh(f"sid_{len(self.data)}"), kind)
                    self.sizes[self.data[ref]] = info.nbytes
        return copied

    # ---- what happens

    def _call(self, node: GraphNode, index: int) -> tir.Stmt:
        if node.func is None or node.func == COPY:
            raise TVMError("AOTLowerMain requires a program on one device, got a copy between two")
        refs = [*node.inputs, *[TensorRef(index, j) for j in range(len(node.outputs))]]
        arguments: list[PrimExpr] = [self.data[ref] for ref in refs]
        device = self.contexts.get(node.func)
        context = None if device is None else self.devices[device]
        if self.call_type is CallType.CPacked:
            nothing = tir.reinterpret("handle", tir.const(0, "uint64"))
            called = call_cpacked(node.func, *arguments, nothing if context is None else context)
        elif self.call_type is CallType.Packed:
            called = tvm_check_return(0, -1, call_packed(node.func, *arguments))
        else:
            given = arguments if context is None else [*arguments, context]
            called = tvm_check_return(0, -1, call_extern("int32", node.func, *given))
        step = tir.Evaluate(called)
        if device is None:
            return step
        return tir.stmt.seq([self._hook(device, "Open"), step, self._hook(device, "Close")])

    def _hook(self, device: str, event: str) -> tir.Stmt:
        name = f"TVMDevice{camel_case(sanitize(device))}{event}"
        call = call_extern("int32", name, self.devices[device])
        return tir.Evaluate(tvm_check_return(0, -1, call))
