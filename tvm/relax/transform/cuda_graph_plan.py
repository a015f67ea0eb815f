"""What of a function a CUDA graph can record.

A graph repeats launches of kernels with the same pointers. So a region may use only static values: what
lies in storages that stay where they are, weights, constants, and shapes of known extents, or of those
symbolic variables that tell one recording from another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relax.base import StructInfo
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.struct_info import ShapeExpr, TupleStructInfo
from tvm.relax.struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in
from tvm.tir import PrimFunc
from tvm.tir.expr import IntImm
from tvm.tir.expr import Var as TirVar

SYMBOLS = "relax.rewrite_cuda_graph.capture_symbolic_vars"
_SCOPES = ("global", "ipc_memory")
_VIEWS = frozenset({"relax.memory.alloc_tensor", "relax.memory.view", "relax.reshape"})


@dataclass
class Region:
    """Bindings in a row that a graph records."""

    bindings: list[VarBinding] = field(default_factory=list)
    inputs: dict[Var, None] = field(default_factory=dict)
    symbols: dict[TirVar, None] = field(default_factory=dict)
    outputs: dict[Var, None] = field(default_factory=dict)


@dataclass
class GraphPlan:
    """The storages that stay where they are, and the regions, of one function."""

    storages: list[VarBinding] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)


class Planner:
    """Finds the regions of a function."""

    def __init__(self, mod: IRModule, func: Function) -> None:
        self.mod = mod
        self.func = func
        self.plan = GraphPlan()
        self.region: Region | None = None
        self.owners: dict[Var, Region] = {}
        self.static: set[Var] = set()
        self.symbols: set[TirVar] = set()
        self.returned = _returned_storages(func)

    def run(self) -> GraphPlan:
        """The plan."""
        attrs: Any = self.func.attrs or {}
        named = {str(name) for name in attrs.get(SYMBOLS, ())}
        weights = self.func.params[int(attrs["num_input"]) :] if "num_input" in attrs else ()
        for param in self.func.params:
            found = definable_tir_vars_in_struct_info(param.struct_info)
            is_weight = any([param is weight for weight in weights])
            self.symbols.update([v for v in found if is_weight or v.name in named])
        self.static.update(weights)
        for block in self.func.body.blocks:
            if not isinstance(block, DataflowBlock):
                self._block(block)
        self._uses(self.func.body.body)
        return self.plan

    def _block(self, block: BindingBlock) -> None:
        for binding in block.bindings:
            self._binding(binding)
        self.region = None

    def _binding(self, binding: Binding) -> None:
        value = binding.value
        if isinstance(binding, VarBinding) and isinstance(value, Call):
            name = value.op.name if isinstance(value.op, Op) else ""
            if name == "relax.memory.alloc_storage":
                if binding.var not in self.returned and _is_fixed_storage(value):
                    self.plan.storages.append(binding)
                    self.static.add(binding.var)
                return
            if name in ("relax.builtin.alloc_tensor", "relax.null_value"):
                return
        used: dict[Var, None] = {}
        symbols: dict[TirVar, None] = {}
        if self._can_be_recorded(binding) and self._is_static(value, used, symbols):
            if self.region is None and isinstance(value, Call) and self._is_launch(value):
                self.region = Region()
                self.plan.regions.append(self.region)
            self.static.add(binding.var)
            if self.region is not None:
                assert isinstance(binding, VarBinding)
                self._record(self.region, binding, used, symbols)
                return
        else:
            self.region = None
        self._uses(value)

    def _record(
        self, region: Region, binding: VarBinding, used: dict[Var, None], symbols: dict[Any, None]
    ) -> None:
        region.bindings.append(binding)
        self.owners[binding.var] = region
        region.symbols.update(symbols)
        for var in used:
            owner = self.owners.get(var)
            if owner is not region:
                region.inputs[var] = None
                if owner is not None:
                    owner.outputs[var] = None

    def _uses(self, value: RelayExpr) -> None:
        """Values of regions that others use are results of theirs."""
        for var in used_vars(value):
            if (owner := self.owners.get(var)) is not None:
                owner.outputs[var] = None

    def _can_be_recorded(self, binding: Binding) -> bool:
        value = binding.value
        if isinstance(binding, MatchCast) or isinstance(value, (If, Function)):
            return False
        if not isinstance(value, Call):
            return True
        callee = value.op
        if isinstance(callee, GlobalVar):
            return isinstance(self.mod.functions.get(callee), PrimFunc)
        if isinstance(callee, ExternFunc):
            return not callee.global_symbol.startswith("vm.builtin")
        return isinstance(callee, Op) and callee.name not in (
            "relax.call_builtin_with_ctx", "relax.memory.kill_storage",
        )  # fmt: skip

    def _is_launch(self, call: Call) -> bool:
        if isinstance(call.op, Op):
            return not call.op.name.startswith(("relax.memory", "relax.builtin", "relax.reshape"))
        return True

    def _is_static(
        self, expr: RelayExpr, used: dict[Var, None], symbols: dict[TirVar, None]
    ) -> bool:
        """Whether a value is the same in each replay; which variables it uses."""
        if isinstance(expr, Var):
            used[expr] = None
            return expr in self.static and self._are_known(_numbers_of(expr.struct_info), symbols)
        if isinstance(expr, (Constant, StringImm, DataTypeImm, GlobalVar, ExternFunc, Op)):
            return True
        if isinstance(expr, PrimValue):
            return self._are_known(tir_vars_in(expr.struct_info), symbols)
        if isinstance(expr, ShapeExpr):
            return self._are_known(tir_vars_in(expr.struct_info), symbols)
        parts = _operands(expr)
        return parts is not None and all([self._is_static(p, used, symbols) for p in parts])

    def _are_known(self, found: Sequence[TirVar], symbols: dict[TirVar, None]) -> bool:
        symbols.update(dict.fromkeys(found))
        return all([var in self.symbols for var in found])


def _operands(expr: RelayExpr) -> Sequence[RelayExpr] | None:
    if isinstance(expr, Call):
        return expr.args
    if isinstance(expr, Tuple):
        return expr.fields
    return (expr.tuple_value,) if isinstance(expr, TupleGetItem) else None


def used_vars(expr: RelayExpr) -> Iterator[Var]:
    """The variables that a value in normal form uses, those of branches too."""
    if isinstance(expr, Var):
        yield expr
    elif isinstance(expr, If):
        yield from used_vars(expr.cond)
        for branch in (expr.true_branch, expr.false_branch):
            for block in branch.blocks:
                for binding in block.bindings:
                    yield from used_vars(binding.value)
            yield from used_vars(branch.body)
    else:
        for part in _operands(expr) or ():
            yield from used_vars(part)


def _numbers_of(info: StructInfo) -> list[TirVar]:
    if isinstance(info, TupleStructInfo):
        return [var for part in info.fields for var in _numbers_of(part)]
    return list(tir_vars_in(info))


def _is_fixed_storage(call: Call) -> bool:
    shape, scope = call.args[0], call.args[2]
    return (
        isinstance(shape, ShapeExpr)
        and all([isinstance(extent, IntImm) for extent in shape.values])
        and isinstance(scope, StringImm)
        and str(scope.value) in _SCOPES
    )


def _returned_storages(func: Function) -> set[Var]:
    """The storages of what a function returns, which the next run must not write over."""
    sources: dict[Var, list[Var]] = {}
    for block in func.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, Call):
                is_view = isinstance(value.op, Op) and value.op.name in _VIEWS
                is_view |= isinstance(value.op, ExternFunc) and "reshape" in value.op.global_symbol
                sources[binding.var] = list(used_vars(value.args[0])) if is_view else []
            else:
                sources[binding.var] = list(used_vars(value))
    found: set[Var] = set()
    stack = list(used_vars(func.body.body))
    while stack:
        var = stack.pop()
        if var not in found:
            found.add(var)
            stack.extend(sources.get(var, ()))
    return found
