"""The model as one function, `tvmgen_<name>___tvm_main__`, that calls the kernels in order.

    def tvmgen_default___tvm_main__(x: Buffer((2, 8)), output: Buffer((2, 5))):
        p0 = allocate_const(...)
        sid_1 = allocate([64], "uint8")
        call_cpacked("tvmgen_default_fused_nn_dense", x, p0, sid_1)
        call_cpacked("tvmgen_default_fused_nn_relu", sid_1, output)

Its arguments are the inputs, then the outputs. With the unpacked interface the kernels take plain
pointers; otherwise they take arrays that are described on the stack.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tvm import tir
from tvm.codegen.model_metadata import ModelMetadata, TensorInfo
from tvm.ir.expr import PrimExpr
from tvm.ir.type import PointerType, PrimType
from tvm.relay.backend.graph import COPY, NOP, Graph, GraphNode, TensorRef
from tvm.relay.backend.graph_codegen import LoweredGraph
from tvm.relay.backend.memory_plan import StoragePlan
from tvm.relay.backend.name_transforms import mangle_module_name, sanitize
from tvm.relay.backend.utils import CallType
from tvm.relay.op.attributes import as_ints
from tvm.runtime.ndarray import NDArray
from tvm.support import UniqueNames
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.target.virtual_device import VirtualDevice
from tvm.tir.builtin import (
    TVMBackendAllocWorkspace,
    TVMBackendFreeWorkspace,
    call_cpacked,
    call_extern,
    call_packed,
    tvm_check_return,
    tvm_stack_make_array,
    tvm_stack_make_shape,
    tvm_throw_last_error,
)

MAIN = "__tvm_main__"
DEVICE_COPY = "runtime.device_copy"


def main_name(mod_name: str) -> str:
    """The symbol of the model's function."""
    return f"{mangle_module_name(mod_name)}_{MAIN}"


@dataclass(frozen=True)
class AotFunction:
    """The model's function, and what its arguments are."""

    name: str
    func: tir.PrimFunc
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    def metadata(self, mod_name: str) -> ModelMetadata:
        """The description that the library carries."""
        return ModelMetadata(mod_name, self.inputs, self.outputs)


def aot_function(
    lowered: LoweredGraph,
    plan: StoragePlan | None,
    mod_name: str,
    call_type: CallType,
    external: frozenset[str] = frozenset(),
    link_params: bool = True,
    main_device: int = 1,
) -> AotFunction:
    """The model's function.

    Parameters
    ----------
    plan : which intermediate tensors share memory; None to allocate each by itself.
    call_type : how the function calls kernels.
    external : functions that other compilers made; packed calls look them up at run time.
    link_params : whether parameters are constants of the code; else they are inputs, the last ones.
    main_device : the kind of the device of all that is on no other.
    """
    linked = lowered.params if link_params else {}
    builder = _MainBuilder(lowered, plan, call_type, external, linked, main_device)
    return builder.build(main_name(mod_name))


@dataclass
class _MainBuilder:
    lowered: LoweredGraph
    plan: StoragePlan | None
    call_type: CallType
    external: frozenset[str]
    linked: Mapping[str, NDArray]  # parameters that are constants of the code
    main_device: int
    data: dict[TensorRef, tir.Var] = field(default_factory=dict)
    sizes: dict[tir.Var, int] = field(default_factory=dict)  # of intermediate memory, in bytes
    constants: dict[tir.Var, NDArray] = field(default_factory=dict)
    buffers: dict[TensorRef, tir.Buffer] = field(default_factory=dict)  # of inputs
    shared: dict[int, tir.Var] = field(default_factory=dict)  # by number of the storage
    places: dict[tir.Var, VirtualDevice] = field(default_factory=dict)  # of memory elsewhere

    @property
    def graph(self) -> Graph:
        return self.lowered.graph

    def build(self, name: str) -> AotFunction:
        inputs = self._inputs()
        outputs = self._outputs()
        written = self._assign_results(outputs)
        steps = [
            self._call(node, index)
            for index, node in enumerate(self.graph.nodes)
            if node.func not in (None, NOP)
        ]
        steps += [
            copy_statement(self.data[ref], outputs[i])
            for i, ref in enumerate(self.graph.heads)
            if i not in written
        ]
        body = tir.stmt.seq(steps)
        for var, size in reversed(self.sizes.items()):
            if (place := self.places.get(var)) is not None:
                body = _with_workspace(var, size, place, body)
            else:
                body = tir.Allocate(
                    var, as_dtype("uint8"), (tir.const(size),), tir.const(True, "bool"), body
                )
        for var, array in reversed(self.constants.items()):
            body = tir.AllocateConst(var, str(array.dtype), array.shape, array, body)
        buffers = [self.buffers[ref] for ref in inputs]
        attrs = {"global_symbol": name, "runner_function": True, "tir.noalias": True}
        return AotFunction(
            name,
            tir.PrimFunc([*buffers, *outputs], body, attrs=attrs),
            tuple([self._info(ref, self.graph.nodes[ref.node].name) for ref in inputs]),
            tuple(
                [
                    self._info(r, n)
                    for r, n in zip(self.graph.heads, self._output_names, strict=True)
                ]
            ),
        )

    @property
    def _output_names(self) -> list[str]:
        """Those of the imported model, or made ones."""
        count = len(self.graph.heads)
        made = ["output"] if count == 1 else [f"output{i}" for i in range(count)]
        return self.graph.output_names or made

    def _info(self, ref: TensorRef, name: str) -> TensorInfo:
        info = self.graph.info(ref)
        return TensorInfo(name, info.shape, info.dtype)

    # ---- where tensors are

    def _inputs(self) -> list[TensorRef]:
        """Buffers for the inputs, constants for the parameters; the inputs."""
        names = UniqueNames()
        inputs = []
        for index, node in enumerate(self.graph.nodes):
            if not node.is_input:
                continue
            ref, info = TensorRef(index), node.outputs[0]
            name = names.fresh(sanitize(node.name))
            if node.name in self.linked:
                var = tir.Var(name, _pointer(info.dtype))
                self.constants[var] = self.linked[node.name]
                self.data[ref] = var
                continue
            self.buffers[ref] = tir.decl_buffer(info.shape, info.dtype, f"{name}_buffer")
            self.data[ref] = self.buffers[ref].data
            inputs.append(ref)
        return inputs

    def _outputs(self) -> list[tir.Buffer]:
        names = UniqueNames()
        return [
            tir.decl_buffer(
                self.graph.info(ref).shape, self.graph.info(ref).dtype, names.fresh(sanitize(name))
            )
            for ref, name in zip(self.graph.heads, self._output_names, strict=True)
        ]

    def _assign_results(self, outputs: Sequence[tir.Buffer]) -> set[int]:
        """Give every tensor its memory; the outputs that a kernel writes."""
        wanted: dict[TensorRef, int] = {}
        for number, ref in enumerate(self.graph.heads):
            if not self._is_view_or_input(ref):
                wanted.setdefault(ref, number)
        for index, node in enumerate(self.graph.nodes):
            if node.is_input:
                continue
            for j in range(len(node.outputs)):
                ref = TensorRef(index, j)
                if node.func == NOP:
                    self.data[ref] = self.data[node.inputs[j]]
                elif ref in wanted:
                    self.data[ref] = outputs[wanted[ref]].data
                else:
                    self.data[ref] = self._storage(ref)
        return set(wanted.values())

    def _is_view_or_input(self, ref: TensorRef) -> bool:
        return self.graph.nodes[ref.node].func in (None, NOP)

    def _storage(self, ref: TensorRef) -> tir.Var:
        """The memory of an intermediate tensor."""
        if self.plan is None:
            name = f"{sanitize(self.graph.nodes[ref.node].name)}_{ref.index}"
            var = tir.Var(name, _pointer("uint8"))
            self.sizes[var] = self.graph.info(ref).nbytes
            return self._on_device(var, ref)
        number = self.plan.storage_ids[ref]
        if number not in self.shared:
            self.shared[number] = tir.Var(f"sid_{number}", _pointer("uint8"))
            self.sizes[self.shared[number]] = self.plan.sizes[number]
        return self._on_device(self.shared[number], ref)

    def _on_device(self, var: tir.Var, ref: TensorRef) -> tir.Var:
        """The memory, noted as that of a device other than the main target's."""
        if (place := self.graph.device(ref)) is not None:
            self.places[var] = place
        return var

    # ---- what happens

    def _call(self, node: GraphNode, index: int) -> tir.Stmt:
        refs = [*node.inputs, *[TensorRef(index, j) for j in range(len(node.outputs))]]
        assert node.func is not None
        if node.func == COPY:
            return self._device_copy(node, refs)
        if self.call_type is CallType.Unpacked:
            pointers = [self.data[ref] for ref in refs]
            call = call_extern("int32", node.func, *pointers)
            return tir.Evaluate(tvm_check_return(0, -1, call))
        make = call_cpacked
        is_elsewhere = node.device is not None
        if node.func in self.external or self.call_type is CallType.Packed or is_elsewhere:
            make = call_packed
        called = tir.Evaluate(make(node.func, *[self._described(ref) for ref in refs]))
        if node.device is None:
            return called
        # the arrays that the call describes are there
        kind = tir.const(node.device.device_type_int, "int32")
        return tir.AttrStmt(tir.StringImm("default"), "device_type", kind, called)

    def _device_copy(self, node: GraphNode, refs: list[TensorRef]) -> tir.Stmt:
        ends = [
            argument
            for ref in refs
            for argument in (self.data[ref], *_numbers(self.graph.device(ref), self.main_device))
        ]
        nbytes = tir.const(node.outputs[0].nbytes, "int64")
        return tir.Evaluate(call_packed(DEVICE_COPY, nbytes, *ends))

    def _described(self, ref: TensorRef) -> PrimExpr:
        """The tensor as an array on the stack."""
        info = self.graph.info(ref)
        shape = tvm_stack_make_shape(*[tir.const(extent, "int64") for extent in info.shape])
        none = tir.const(0, "int32")
        return tvm_stack_make_array(
            self.data[ref], shape, none, len(info.shape), tir.const(0, info.dtype), none
        )


def copy_statement(data: tir.Var, output: tir.Buffer) -> tir.Stmt:
    """Write an output that is an input, a constant, or another output."""
    count = math.prod(as_ints(output.shape))
    i = tir.Var("i", "int64" if count >= 2**31 else "int32")
    source = tir.decl_buffer((count,), output.dtype, "source", data=data)
    target = tir.decl_buffer((count,), output.dtype, output.name, data=output.data)
    copy = tir.BufferStore(target, source[i], [i])
    loop = tir.For(i, 0, count, tir.ForKind.SERIAL, copy)
    return tir.DeclBuffer(source, tir.DeclBuffer(target, loop))


def _numbers(place: VirtualDevice | None, main: int) -> tuple[PrimExpr, PrimExpr]:
    """The kind and the number of a device."""
    kind = main if place is None else place.device_type_int
    index = 0 if place is None else max(place.virtual_device_id, 0)
    return tir.const(kind, "int32"), tir.const(index, "int32")


def _with_workspace(var: tir.Var, size: int, place: VirtualDevice, body: tir.Stmt) -> tir.Stmt:
    """`body`, for which a device lends memory."""
    kind, index = _numbers(place, 0)
    asked = TVMBackendAllocWorkspace(
        kind, index, tir.const(max(size, 1), "uint64"), tir.const(1, "int32"), tir.const(8, "int32")
    )
    given_back = TVMBackendFreeWorkspace(kind, index, var)
    fail = tir.Evaluate(tvm_throw_last_error())
    return tir.LetStmt(var, asked, tir.stmt.seq([
        tir.IfThenElse(tir.isnullptr(var), fail),
        body,
        tir.IfThenElse(tir.NE(given_back, tir.const(0, "int32")), fail),
    ]))  # fmt: skip


def _pointer(dtype: str | DType) -> PointerType:
    return PointerType(PrimType(as_dtype(dtype)))
