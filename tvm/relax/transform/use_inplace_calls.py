"""Elementwise operators write over an argument that nobody reads any more.

z = add(x, y); p = multiply(z, y)    ->    z = add(x, y)
                                           p = call_tir_inplace(multiply_inplace, (z, y), [0], ...)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.analysis.dataflow import Aliases, find_aliases, live_ranges, lives_behind
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Binding, Call, DataflowBlock, Function, Tuple, Var
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.base import call_tir_inplace
from tvm.relax.struct_info import ShapeExpr, TensorStructInfo, TupleStructInfo
from tvm.relax.struct_info_relations import prove_equal
from tvm.tir import PrimFunc
from tvm.tir.buffer import Buffer
from tvm.tir.stmt_functor import BufferRewriter

from .pass_kinds import whole_module_pass


@dataclass(frozen=True)
class InplaceOpportunity:
    """A binding, and the arguments of its call that its result may be written over."""

    binding: int
    args: tuple[int, ...]


def _is_supported(value: Any) -> bool:
    is_call = isinstance(value, Call) and isinstance(value.op, Op)
    return is_call and bool(value.op.get_attr("FElementwise")) and value.op.get_attr("FLegalize")


def _is_same_shape(a: TensorStructInfo, b: TensorStructInfo) -> bool:
    x, y = a.dimensions, b.dimensions
    if x is None or y is None or len(x) != len(y):
        return False
    return all([prove_equal(i, j) for i, j in zip(x, y, strict=True)])


def _are_same_shape(a: RelayExpr, b: RelayExpr) -> bool:
    x, y = a.struct_info, b.struct_info
    are_tensors = isinstance(x, TensorStructInfo) and isinstance(y, TensorStructInfo)
    return are_tensors and _is_same_shape(x, y)


def _is_large_enough(arg: TensorStructInfo, result: TensorStructInfo) -> bool:
    x, y = arg.dimensions, result.dimensions
    if x is None or y is None:
        return False
    sizes = [1, 1]
    for i, dims in enumerate((x, y)):
        for dim in dims:
            extent = getattr(dim, "value", None)
            if extent is None:
                return _is_same_shape(arg, result)
            sizes[i] *= extent
    return sizes[0] >= sizes[1]


def inplace_opportunities(
    block: DataflowBlock, inputs: Sequence[Var]
) -> tuple[list[InplaceOpportunity], list[InplaceOpportunity]]:
    """Where a result has room in an argument, and where both have the same shape."""
    ranges, aliases = live_ranges(block), find_aliases(block, inputs)
    roomy, exact = [], []
    for at, binding in enumerate(block.bindings):
        if not _is_supported(binding.value):
            continue
        found = [
            i for i, arg in enumerate(binding.value.args)
            if _may_hold(binding, arg) and not lives_behind(arg, at, ranges, aliases)
        ]  # fmt: skip
        found = [i for i in found if not _is_read_otherwise(binding.value, i, aliases)]
        if found:
            roomy.append(InplaceOpportunity(at, tuple(found)))
        info = binding.var.struct_info
        same = [i for i in found if _is_same_shape(binding.value.args[i].struct_info, info)]
        if same:
            exact.append(InplaceOpportunity(at, tuple(same)))
    return roomy, exact


def _may_hold(binding: Binding, arg: Any) -> bool:
    result = binding.var.struct_info
    if not isinstance(arg, Var) or not isinstance(result, TensorStructInfo):
        return False
    info = arg.struct_info
    if not isinstance(info, TensorStructInfo) or info.dtype != result.dtype:
        return False
    return info.vdevice is result.vdevice and _is_large_enough(info, result)


def _is_read_otherwise(call: Call, place: int, aliases: Aliases) -> bool:
    """Whether another argument is the same memory in another arrangement."""
    target = call.args[place]
    for i, arg in enumerate(call.args):
        if i == place or arg is target or not isinstance(arg, Var):
            continue
        is_same = _are_same_shape(arg, target)
        unknown = {-1}
        own = aliases.sets.get(target, unknown) if isinstance(target, Var) else unknown
        if aliases.sets.get(arg, unknown) & own and not is_same:
            return True
    return False


# ---- loop programs that write over arguments


class _WrittenOver(BufferRewriter):
    def __init__(self, replaced: dict[Buffer, Buffer]) -> None:
        super().__init__()
        self._buffers.update(replaced)


def inplace_program(func: PrimFunc, results: int, places: Sequence[int]) -> PrimFunc:
    """A loop program whose results, its last parameters, are written over some of its inputs."""
    inputs, outputs = func.params[: len(func.params) - results], func.params[-results:]
    replaced, kept = {}, list(inputs)
    for param, place in zip(outputs, places, strict=True):
        if place < 0:
            kept.append(param)
        else:
            replaced[func.buffer_map[param]] = func.buffer_map[inputs[place]]
    buffers = {p: func.buffer_map[p] for p in kept if p in func.buffer_map}
    body = _WrittenOver(replaced).visit(func.body)
    return func.replace(params=tuple(kept), buffer_map=buffers, body=body)


def single_inplace_call(mod: IRModule, call: Call, places: Sequence[int]) -> tuple[Call, IRModule]:
    """The call of an operator that writes over arguments, and the module with its loop program."""
    builder = BlockBuilder(mod)
    new = _inplace_call(builder, call, places)
    return new, builder.get()


def _inplace_call(builder: BlockBuilder, call: Call, places: Sequence[int]) -> Call:
    assert isinstance(call.op, Op)
    trial = BlockBuilder()
    legal = call.op.get_attr("FLegalize")(trial, call)
    if not (isinstance(legal, Call) and legal.op is Op.get("relax.call_tir")):
        raise TVMError(f"an operator in place requires one loop program, {call.op.name} has none")
    program, args = trial.get()[legal.args[0]], legal.args[1]
    numbers = legal.args[2] if len(legal.args) > 2 else None
    assert isinstance(args, Tuple) and (numbers is None or isinstance(numbers, ShapeExpr))
    if any([a is not b for a, b in zip(args.fields, call.args, strict=False)]):
        raise TVMError(f"an operator in place requires tensors as arguments, got {call}")
    info = legal.sinfo_args[0]
    count = len(info.fields) if isinstance(info, TupleStructInfo) else 1
    short = call.op.name.rpartition(".")[2]
    gvar = builder.add_func(inplace_program(program, count, places), f"{short}_inplace")
    infos: Any = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
    return call_tir_inplace(gvar, args, list(places), infos, numbers)


class _InplaceUser(ExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.params: tuple[Var, ...] = ()
        self.places: dict[Var, int] = {}

    def visit_function_(self, op: Function) -> Any:
        outer, self.params = self.params, op.params
        found = super().visit_function_(op)
        self.params = outer
        return found

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        _, exact = inplace_opportunities(block, self.params)
        outer = self.places
        self.places = {block.bindings[one.binding].var: one.args[-1] for one in exact}
        found = super().visit_dataflow_block_(block)
        self.places = outer
        return found

    def visit_var_binding_(self, binding: Any) -> None:
        place = self.places.get(binding.var)
        call = self.visit_expr(binding.value)
        if place is not None and _has_tensors_alone(call):
            call = self.builder_.normalize(_inplace_call(self.builder_, call, [place]))
        self.reemit_binding(binding, call)


def _has_tensors_alone(call: Any) -> bool:
    return isinstance(call, Call) and all([isinstance(a, Var) for a in call.args])


def use_inplace_calls(mod: IRModule) -> IRModule:
    """The module with operators that write over their arguments."""
    user = _InplaceUser(mod)
    for gvar, func in mod.functions_items():
        if isinstance(func, Function):
            new = user.visit_expr(func)
            if new is not func:
                user.builder_.update_func(gvar, new)
    return user.builder_.get()


def DataflowUseInplaceCalls() -> Pass:
    """Let elementwise operators of dataflow blocks write over arguments that are not used again."""
    return whole_module_pass("DataflowUseInplaceCalls", use_inplace_calls)


__all__ = [
    "DataflowUseInplaceCalls", "InplaceOpportunity", "inplace_opportunities",
    "inplace_program", "single_inplace_call",
]  # fmt: skip
