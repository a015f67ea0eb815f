"""Runs of operators become calls of the kernel library's kernels.

lv = matmul(x, w); lv1 = add(lv, b); y = nn.relu(lv1)
->
y = call_dps_packed("relax_fused_nn_contrib_dense_pack_add_nn_relu", (x, packed w, b), ...)

The library chooses layouts, packs weights, fuses and schedules as for graphs of relay, for symbolic
extents too. What it does not know is left for `LegalizeOps`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.arith import Analyzer
from tvm.error import OpNotImplemented, TypeCheckError
from tvm.ir.expr import RelayExpr
from tvm.ir.global_info import VDevice
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.span import SequentialSpan, Span
from tvm.ir.transform import ModulePass, Pass, PassInfo
from tvm.ir.type import TensorType
from tvm.ir.type import TupleType as GraphTupleType
from tvm.relax.backend.extents import Extents, are_equal
from tvm.relax.backend.kernel_ops import OPERANDS, ROWS, has_dimensions
from tvm.relax.base import StructInfo, update_struct_info
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    ExternFunc,
    Function,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.struct_info import ShapeExpr, TensorStructInfo, TupleStructInfo
from tvm.relax.transform.kill_after_last_use import variables
from tvm.relax.transform.update_vdevice import is_same_device
from tvm.relay import expr as graphs
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.analysis.source_names import computed_spans
from tvm.relay.analysis.symbolic import DimensionPool, is_dynamic_kernel, symbolic_kernel
from tvm.relay.backend.kernels import KernelCompiler, build_kernels
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.expr import TupleWrapper
from tvm.relay.frontend.common import set_span
from tvm.relay.function import Function as GraphFunction
from tvm.relay.op.types import undecided
from tvm.relay.pipeline import fusion, optimization
from tvm.relay.traverse import nodes_outside_functions
from tvm.relay.ty import flat_types
from tvm.support.scope import compiling
from tvm.target import Target
from tvm.target.versions import layout_target
from tvm.tir.expr import Any as UnknownDim
from tvm.tir.expr import IntImm


class _Region:
    """Bindings, one after the other, that the library computes on one device."""

    def __init__(self, extents: Extents, device: VDevice | None = None) -> None:
        self.extents = extents
        self.device = device
        self.bindings: list[VarBinding] = []
        self.values: dict[Var, Any] = {}
        self.inputs: dict[Var, graphs.Var] = {}

    def add(self, binding: VarBinding) -> bool:
        """Whether the library computes the binding, given those before."""
        try:
            value = self._value(binding.value)
        except OpNotImplemented:
            return False
        if isinstance(value, TupleWrapper):
            value = value.astuple()
        self.values[binding.var] = value
        self.bindings.append(binding)
        return True

    def _value(self, value: RelayExpr) -> Any:
        if isinstance(value, Call):
            return self._call(value)
        if isinstance(value, TupleGetItem):
            whole = self._operand(value.tuple_value)
            fields = getattr(whole, "fields", None)
            return (
                graphs.TupleGetItem(whole, value.index) if fields is None else fields[value.index]
            )
        return self._operand(value)

    def _call(self, call: Call) -> Any:
        row = ROWS.get(call.op.name) if isinstance(call.op, Op) else None
        if row is None or not has_dimensions(call.struct_info_):
            raise OpNotImplemented(f"the library has no kernel for {call.op}")
        args = [self._operand(arg) for arg in call.args if not isinstance(arg, OPERANDS)]
        made = row(call, args)
        if isinstance(call.span, Span):
            set_span(made.astuple() if isinstance(made, TupleWrapper) else made, call.span)
        if not _is_static(call.struct_info_):
            whole = made.astuple() if isinstance(made, TupleWrapper) else made
            _check_extents(whole, call.struct_info_, self.extents)
        return made

    def _operand(self, arg: RelayExpr) -> Any:
        if isinstance(arg, Constant):
            return graphs.Constant(arg.data)
        if isinstance(arg, Tuple):
            return graphs.Tuple([self._operand(field) for field in arg.fields])
        if not isinstance(arg, Var) or not has_dimensions(arg.struct_info_):
            raise OpNotImplemented(f"{arg} is no tensor of known rank")
        if arg in self.values:
            return self.values[arg]
        if arg not in self.inputs:
            self.inputs[arg] = graphs.Var(
                f"x{len(self.inputs)}", _type_of(arg.struct_info_, self.extents)
            )
        return self.inputs[arg]


def _type_of(info: Any, extents: Extents) -> Any:
    if isinstance(info, TupleStructInfo):
        return GraphTupleType([_type_of(field, extents) for field in info.fields])
    return TensorType(extents.in_graph(info.dimensions), str(info.dtype))


def _tensors(info: Any) -> list[TensorStructInfo]:
    fields = info.fields if isinstance(info, TupleStructInfo) else None
    return [info] if fields is None else [t for field in fields for t in _tensors(field)]


def _device_of(info: Any) -> VDevice | None:
    """Where a tensor lives, or the fields of a tuple do."""
    if not isinstance(info, (TensorStructInfo, TupleStructInfo)):
        return None
    parts = [part for part in _tensors(info) if isinstance(part, TensorStructInfo)]
    return next((part.vdevice for part in parts if part.vdevice is not None), None)


def _is_static(info: Any) -> bool:
    dims = [dim for part in _tensors(info) for dim in part.dimensions or ()]
    return all([isinstance(dim, IntImm) for dim in dims])


def _check_extents(graph: RelayExpr, info: Any, extents: Extents) -> None:
    """Raise OpNotImplemented unless the library's shapes are those of the program, whatever the run gives."""
    analyzer = Analyzer()
    try:
        with undecided() as conditions:
            types = flat_types(infer_type_of(graph))
    except TypeCheckError as error:  # some operators of the library want to know extents
        raise OpNotImplemented(f"{info} has no type in the library") from error
    for ty, wanted in zip(types, _tensors(info), strict=True):
        if any([isinstance(dim, UnknownDim) for dim in ty.shape]):
            raise OpNotImplemented(f"the library does not find the extents of {wanted}")
        if not are_equal(analyzer, extents.in_program(ty.shape), wanted.dimensions or ()):
            raise OpNotImplemented(f"the library finds {ty}, not {wanted}")
    if not all([analyzer.can_prove(condition) for condition, _ in conditions]):
        raise OpNotImplemented(f"{info} holds under conditions that are not known")


class _KernelLowering:
    """Rewrites one module; kernels that are equal are one."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.compiler = KernelCompiler(target, prefix="relax_")
        self.pool = DimensionPool()
        self.extents = Extents()

    def function(self, func: Function) -> Function:
        body = self._sequence(func.body)
        return func if body is func.body else func.replace(body=body)

    def _sequence(self, seq: SeqExpr) -> SeqExpr:
        bindings = [binding for block in seq.blocks for binding in block.bindings]
        readers: dict[Var, set[int]] = {}
        for i, binding in enumerate(bindings):
            for var in variables(binding.value):
                readers.setdefault(var, set()).add(i)
        for var in variables(seq.body):
            readers.setdefault(var, set()).add(len(bindings))
        blocks: list[BindingBlock] = []
        at = 0
        for block in seq.blocks:
            blocks.append(self._block(block, at, readers))
            at += len(block.bindings)
        if all([a is b for a, b in zip(blocks, seq.blocks, strict=True)]):
            return seq
        made = SeqExpr(blocks, seq.body)
        update_struct_info(made, seq.struct_info_)
        return made

    def _block(self, block: BindingBlock, at: int, readers: dict[Var, set[int]]) -> BindingBlock:
        done: list[Binding] = []
        region = _Region(self.extents)
        begin = at
        for i, binding in enumerate(block.bindings, at):
            device = _device_of(binding.value.struct_info_)
            if not is_same_device(device, region.device):
                done += self._lower(region, range(begin, i), readers)
                region, begin = _Region(self.extents, device), i
            if isinstance(binding, VarBinding) and self._is_for(device) and region.add(binding):
                continue
            done += self._lower(region, range(begin, i), readers)
            done.append(_with_view(binding))
            region, begin = _Region(self.extents, device), i + 1
        done += self._lower(region, range(begin, at + len(block.bindings)), readers)
        same = len(done) == len(block.bindings) and all(
            [a is b for a, b in zip(done, block.bindings, strict=True)]
        )
        return block if same else block.replace(bindings=tuple(done))

    def _is_for(self, device: VDevice | None) -> bool:
        """Whether the library's kernels run on a device."""
        target = None if device is None else device.target
        return target is None or target.kind is self.target.kind

    def _lower(self, region: _Region, own: range, readers: dict[Var, set[int]]) -> list[Binding]:
        calls = [b for b in region.bindings if isinstance(b.value, Call)]
        if not calls:
            return list(region.bindings)
        outputs = [
            b.var for b in region.bindings if any([i not in own for i in readers.get(b.var, ())])
        ]
        if not outputs:
            return list(region.bindings)
        values = graphs.Tuple([region.values[var] for var in outputs])
        params = list(region.inputs.values())
        graph = GraphFunction(params, values)
        with layout_target(self.target):
            fused = fusion()(optimization()(IRModule.from_expr(graph)))
        main = fused["main"]
        inputs = dict(zip(main.params, region.inputs, strict=True))
        return _Emitter(self, inputs, region.device).run(main, outputs)

    def kernel(self, func: GraphFunction) -> str:
        """The name of the kernel of a fused function."""
        if is_dynamic_kernel(func):
            func = symbolic_kernel(func, self.pool).func
        return self.compiler.lower(func).name

    def library(self) -> Any:
        """The kernels so far, compiled; None if there are none."""
        if not self.compiler.kernels:
            return None
        return build_kernels(self.compiler.module(), self.target, self.compiler.elsewhere())


def _view(tensor: RelayExpr, info: TensorStructInfo) -> Call:
    """The same memory in another shape."""
    args = [ExternFunc("vm.builtin.reshape"), tensor, ShapeExpr(info.dimensions)]
    made = Call(Op.get("relax.call_pure_packed"), args, None, [info])
    update_struct_info(made, info)
    return made


def _with_view(binding: Binding) -> Binding:
    """A reshape that the library's graphs cannot say needs no kernel."""
    call = binding.value
    if not isinstance(call, Call) or call.op is not Op.get("relax.reshape"):
        return binding
    operands = (call.args[0], call)
    if not all([has_dimensions(operand.struct_info_) for operand in operands]):
        return binding
    return VarBinding(binding.var, _view(call.args[0], call.struct_info))


class _Emitter:
    """Calls of kernels in the order of the fused graph."""

    def __init__(
        self, lowering: _KernelLowering, inputs: dict[graphs.Var, Var], device: VDevice | None
    ) -> None:
        self.lowering = lowering
        self.device = device
        self.values: dict[int, Any] = {id(p): v for p, v in inputs.items()}
        self.bindings: list[Binding] = []

    def run(self, main: GraphFunction, outputs: list[Var]) -> list[Binding]:
        for node in nodes_outside_functions(main.body):
            if id(node) not in self.values:
                self.values[id(node)] = self._value(node)
        assert isinstance(main.body, graphs.Tuple)
        for var, field in zip(outputs, main.body.fields, strict=True):
            self.bindings.append(VarBinding(var, self._as_expr(self.values[id(field)])))
        return self.bindings

    def _value(self, node: Any) -> Any:
        if isinstance(node, graphs.Constant):
            return Constant(node.data)
        if isinstance(node, graphs.Tuple):
            return [self.values[id(field)] for field in node.fields]
        if isinstance(node, graphs.TupleGetItem):
            whole = self.values[id(node.tuple_value)]
            return (
                whole[node.index]
                if isinstance(whole, list)
                else self._bind(TupleGetItem(whole, node.index))
            )
        return self._call(node)

    def _call(self, call: Any) -> Any:
        args = [tensor for arg in call.args for tensor in self._flat(self.values[id(arg)])]
        # what a kernel gives may be known better than what it is declared to give
        types = flat_types(call.op.body.checked_type)
        infos = [
            TensorStructInfo(self.lowering.extents.in_program(ty.shape), str(ty.dtype), self.device)
            for ty in types
        ]
        if call.op.attrs.get("relay.reshape_only"):
            return self._bind(_view(args[0], infos[0]))
        is_tuple = isinstance(call.checked_type, GraphTupleType)
        info: StructInfo = TupleStructInfo(infos) if is_tuple else infos[0]
        callee = ExternFunc(self.lowering.kernel(call.op))
        made = Call(Op.get("relax.call_dps_packed"), [callee, Tuple(args)], None, [info])
        if spans := computed_spans(call, call.op):
            made = made.replace(span=SequentialSpan(tuple(spans)))
        update_struct_info(made, info)
        var = self._bind(made)
        if not is_tuple:
            return var
        return [self._bind(TupleGetItem(var, i)) for i in range(len(infos))]

    def _flat(self, value: Any) -> list[RelayExpr]:
        if isinstance(value, list):
            return [tensor for part in value for tensor in self._flat(part)]
        if isinstance(value.struct_info_, TupleStructInfo):
            count = len(value.struct_info_.fields)
            parts = [self._bind(TupleGetItem(value, i)) for i in range(count)]
            return [tensor for part in parts for tensor in self._flat(part)]
        return [value]

    def _as_expr(self, value: Any) -> RelayExpr:
        if isinstance(value, list):
            return Tuple([self._as_expr(part) for part in value])
        found: RelayExpr = value
        return found

    def _bind(self, value: RelayExpr) -> Var:
        var = Var("lv", value.struct_info_)
        self.bindings.append(VarBinding(var, value))
        return var


def lower_to_kernels(
    mod: IRModule, target: Target, watch: Callable[[Sequence[LoweredKernel]], None] | None = None
) -> IRModule:
    """The module with calls of the library's kernels, which is one of its ``external_mods``.

    Parameters
    ----------
    mod : IRModule
        Functions of relax in normal form.
    target : Target
        The machine.
    watch : function, optional
        What is shown the kernels.
    """
    with compiling(), target:
        lowering = _KernelLowering(target)
        lowered = mod.map_functions(
            lambda _, func: lowering.function(func) if isinstance(func, Function) else func
        )
        library = lowering.library()
    if watch is not None:
        watch(lowering.compiler.kernels)
    if library is None:
        return mod
    return lowered.with_attrs({"external_mods": [*(mod.get_attr("external_mods") or []), library]})


def LowerToKernels(watch: Callable[[Sequence[LoweredKernel]], None] | None = None) -> Pass:
    """Compute runs of operators of known shapes by the kernel library, for the current target.

    Parameters
    ----------
    watch : function, optional
        What is shown the kernels.
    """

    def run(mod: IRModule, context: object) -> IRModule:
        target = Target.current(allow_none=True)
        if target is None or "cpu" not in target.keys or target.kind.name != "llvm":
            return mod
        return lower_to_kernels(mod, target, watch)

    return ModulePass(run, PassInfo(0, "LowerToKernels", ()))
