"""Calls of loop programs are grouped: each group becomes a function, and later one kernel.

lv = call_tir(add, (x, y))                 @private, Primitive
gv = call_tir(exp, (lv,))          ->      fused_add_exp(x, y): lv = call_tir(add, ...); gv = call_tir(exp, ...)
                                           gv = fused_add_exp(x, y)
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.transform import Pass
from tvm.relax.analysis.order import definitions_first
from tvm.relax.analysis.variables import used_vars
from tvm.relax.bind import copy_with_new_vars
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    relax_functions,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.struct_info import ShapeStructInfo, TensorStructInfo
from tvm.relax.struct_info_relations import (
    definable_tir_vars_in_struct_info,
    tir_vars_in,
    written_out,
)
from tvm.relay.op.registry import OpPattern
from tvm.relay.transform.fuse_graph import GraphNode, Partitioner
from tvm.tir import PrimFunc

from .pass_kinds import whole_module_pass

MAX_DEPTH = 256


def pattern_of(value: RelayExpr, mod: IRModule) -> OpPattern:
    """How the value of a binding may be fused."""
    if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "relax.call_tir":
        callee = value.args[0]
        func = mod.functions.get(callee) if isinstance(callee, GlobalVar) else None
        if isinstance(func, PrimFunc) and "op_pattern" in func.attrs:
            return OpPattern(int(func.attrs["op_pattern"]))
    if isinstance(value, TupleGetItem):
        return OpPattern.INJECTIVE
    return OpPattern.OPAQUE


def _is_same_shape(a: Any, b: Any) -> bool:
    x, y = a.struct_info_, b.struct_info_
    both = isinstance(x, TensorStructInfo) and isinstance(y, TensorStructInfo)
    return both and x.shape is not None and x.shape.struct_info_ == y.shape.struct_info_


def _groups(block: DataflowBlock, mod: IRModule, max_depth: int) -> list[Any]:
    """The group of each binding."""
    made: dict[Any, RelayExpr] = {binding.var: binding.value for binding in block.bindings}

    def pattern(binding: Binding) -> OpPattern:
        value = binding.value
        # what is taken out of a tuple that is written out is no result of a loop program
        is_alias = isinstance(value, TupleGetItem) and isinstance(
            made.get(value.tuple_value), (Tuple, TupleGetItem)
        )
        if is_alias or not isinstance(binding, VarBinding):
            return OpPattern.OPAQUE
        return pattern_of(value, mod)

    nodes = [GraphNode(b, i, pattern(b)) for i, b in enumerate(block.bindings)]
    by_var = {binding.var: node for binding, node in zip(block.bindings, nodes, strict=True)}
    for binding, node in zip(block.bindings, nodes, strict=True):
        for used in used_vars(binding.value):
            source = by_var.get(used)
            if source is None:
                continue
            edge = node.pattern
            if edge is OpPattern.BROADCAST and _is_same_shape(used, binding.var):
                edge = OpPattern.ELEMWISE
            source.outputs.append((node, edge))
        if type(binding.var) is not DataflowVar:
            node.is_used_outside = True
    return Partitioner(nodes, max_depth).partition()


class GroupFunction:
    """The function of a group of bindings."""

    def __init__(self, bindings: list[Binding], outputs: list[Var], lifts_constants: bool) -> None:
        self.bindings = bindings
        self.outputs = outputs
        self.lifts_constants = lifts_constants
        self.args: list[RelayExpr] = []
        self.params: list[Var] = []
        self.values: dict[Any, Var] = {}
        self.inside = {b.var for b in bindings}

    def add(self, expr: RelayExpr) -> None:
        """Make a parameter of what comes from outside."""
        if isinstance(expr, Tuple):
            for field in expr.fields:
                self.add(field)
        elif isinstance(expr, Var):
            if expr not in self.inside and expr not in self.values:
                self._param(expr, expr.name_hint)
        elif isinstance(expr, Constant) and self.lifts_constants:
            if id(expr) not in self.values:
                self._param(expr, f"param_{len(self.params)}", id(expr))

    def _param(self, expr: RelayExpr, name: str, key: Any = None) -> None:
        param = Var(name, written_out(expr.struct_info))
        self.values[expr if key is None else key] = param
        self.args.append(expr)
        self.params.append(param)

    def build(self, attrs: dict[str, Any]) -> Function:
        """The function, with variables of its own."""
        for binding in self.bindings:
            value = binding.value
            if isinstance(value, Call):
                is_tir = isinstance(value.op, Op) and value.op.name.startswith("relax.call_tir")
                if not isinstance(value.op, (Op, GlobalVar)):
                    self.add(value.op)
                for arg in value.args[1:] if is_tir else value.args:
                    self.add(arg)
            elif isinstance(value, TupleGetItem):
                self.add(value.tuple_value)
            else:
                self.add(value)
        self._add_symbols()
        body = _GroupBody(self).body()
        ret = body.body.struct_info_
        func = Function(self.params, body, ret, True, attrs)
        return copy_with_new_vars(func)

    def _add_symbols(self) -> None:
        """A shape of symbolic variables that no tensor says."""
        known = {v for p in self.params for v in definable_tir_vars_in_struct_info(p.struct_info)}
        used: dict[Any, None] = {}
        for binding in self.bindings:
            for var in tir_vars_in(binding.value):
                used[var] = None
            for var in tir_vars_in(written_out(binding.var.struct_info)):
                used[var] = None
        for param in self.params:
            for var in tir_vars_in(param.struct_info):
                used[var] = None
        free = [v for v in used if v not in known]
        if free:
            self.params.append(Var("tir_vars", ShapeStructInfo(free)))
            self.args.append(ShapeExpr(free))


class _GroupBody(ExprMutator):
    """Copies bindings, with parameters for what comes from outside."""

    def __init__(self, group: GroupFunction) -> None:
        super().__init__()
        self.group = group

    def visit_var_(self, op: Var) -> Any:
        found = self.group.values.get(op)
        return super().visit_var_(op) if found is None else found

    def visit_constant_(self, op: Constant) -> Any:
        return self.group.values.get(id(op), op)

    def body(self) -> SeqExpr:
        builder = self.builder_
        builder.begin_scope(self.group.params)
        builder.begin_block(is_dataflow=True)
        outputs = set(self.group.outputs)
        results = []
        for binding in self.group.bindings:
            value = self.visit_expr(binding.value)
            name = binding.var.name_hint
            is_output = binding.var in outputs
            # its shape may be a variable outside
            info = written_out(binding.var.struct_info)
            var = (Var if is_output else DataflowVar)(name, info)
            self.set_var_remap(binding.var.vid, var)
            if isinstance(binding, MatchCast):
                builder.emit_normalized(MatchCast(var, value, binding.struct_info))
            else:
                builder.emit_normalized(VarBinding(var, value))
            if is_output:
                results.append(var)
        block = builder.end_block()
        result: RelayExpr = results[0] if len(results) == 1 else Tuple(results)
        seq = builder.normalize(SeqExpr([block], result))
        builder.end_scope()
        assert isinstance(seq, SeqExpr)
        return seq


def group_name(bindings: list[Binding]) -> str:
    """``fused_add_exp``: the names of what is called."""
    names = ["fused"]
    for binding in bindings:
        value = binding.value
        if isinstance(value, Call) and isinstance(value.op, Op):
            if value.op.name == "relax.call_tir" and isinstance(value.args[0], GlobalVar):
                names.append(value.args[0].name_hint)
            else:
                names.append(value.op.name.replace(".", "_"))
        elif isinstance(value, Call) and isinstance(value.op, GlobalVar):
            names.append(value.op.name_hint.removeprefix("fused_"))
    return "_".join(names)


class Grouper(ExprMutator):
    """Replaces groups of bindings by calls of their functions."""

    def __init__(self, mod: IRModule, attrs: dict[str, Any], lifts_constants: bool = True) -> None:
        super().__init__(mod)
        self.mod = mod
        self.attrs = attrs
        self.lifts_constants = lifts_constants

    def groups(self, block: BindingBlock) -> list[list[int]]:
        """The bindings of each group, by index."""
        raise NotImplementedError

    def attrs_of(self, bindings: list[Binding]) -> tuple[str, dict[str, Any]]:
        """The name and the attributes of a group's function."""
        return group_name(bindings), dict(self.attrs)

    def replace(self, block: BindingBlock) -> list[Binding]:
        """The bindings of a block, with calls in the place of groups."""
        plan = self.groups(block)
        last = {g[-1]: g for g in plan}
        members = {i: g for g in plan for i in g}
        users = _users(block)
        found: list[Binding] = []
        for i, binding in enumerate(block.bindings):
            if i not in members:
                found.append(binding)
            elif i in last:
                found.extend(self._call(block, last[i], users))
        # what is between the bindings of a group may use one of them
        return definitions_first(found)

    def _call(
        self, block: BindingBlock, group: list[int], users: dict[Var, set[int]]
    ) -> list[Binding]:
        bindings = [block.bindings[i] for i in group]
        inside = set(group)
        outputs = [
            b.var
            for b in bindings
            if type(b.var) is not DataflowVar or not users.get(b.var, set()) <= inside
        ]
        maker = GroupFunction(bindings, outputs, self.lifts_constants)
        name, attrs = self.attrs_of(bindings)
        func = maker.build(attrs)
        gvar = self.builder_.add_func(func, name)
        call = self.builder_.normalize(Call(gvar, maker.args))
        if len(outputs) == 1:
            return [VarBinding(outputs[0], call)]
        whole = DataflowVar(self.builder_.get_unique_name("lv"), call.struct_info)
        items = []
        for i, var in enumerate(outputs):
            items.append(VarBinding(var, TupleGetItem(whole, i)))
        return [VarBinding(whole, call), *items]

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        bindings = self.replace(block)
        if len(bindings) == len(block.bindings) and all(
            [a is b for a, b in zip(bindings, block.bindings, strict=True)]
        ):
            made: BindingBlock = super().visit_dataflow_block_(block)
        else:
            made = super().visit_dataflow_block_(DataflowBlock(bindings, block.span))
        return made


def _users(block: BindingBlock) -> dict[Var, set[int]]:
    found: dict[Var, set[int]] = {}
    for i, binding in enumerate(block.bindings):
        for var in used_vars(binding.value):
            found.setdefault(var, set()).add(i)
    return found


class _Fuser(Grouper):
    def __init__(self, mod: IRModule, max_depth: int) -> None:
        super().__init__(mod, {"Primitive": True})
        self.max_depth = max_depth

    def groups(self, block: BindingBlock) -> list[list[int]]:
        assert isinstance(block, DataflowBlock)
        roots = _groups(block, self.mod, self.max_depth)
        by_root: dict[int, list[int]] = {}
        for i, group in enumerate(roots):
            by_root.setdefault(id(group), []).append(i)
        return [g for g in by_root.values() if len(g) > 1]


def rewrite_with(grouper: Grouper, mod: IRModule, chosen: Any = None) -> IRModule:
    """The module with the groups of each function as functions of their own."""
    is_same = True
    for gvar, func in relax_functions(mod).items():
        if func.attrs.get("Primitive") or func.attrs.get("Codegen") or not func.has_body:
            continue
        if chosen is not None and gvar.name_hint not in chosen:
            continue
        new = grouper.visit_expr(func)
        if new is not func:
            grouper.builder_.update_func(gvar, new)
            is_same = False
    return mod if is_same else grouper.builder_.get()


register_pass_config("relax.FuseOps.max_depth", int)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Group calls of loop programs in dataflow blocks into functions with the attribute ``Primitive``.

    Parameters
    ----------
    fuse_opt_level : int
        0: nothing is fused; by default as the context says.
    """

    def run(mod: IRModule) -> IRModule:
        context = PassContext.current()
        level = context.opt_level if fuse_opt_level == -1 else fuse_opt_level
        if level == 0:
            return mod
        depth = context.get("relax.FuseOps.max_depth", MAX_DEPTH)
        return rewrite_with(_Fuser(mod, depth), mod)

    return whole_module_pass("FuseOps", run)


__all__ = ["BlockBuilder", "FuseOps", "GroupFunction", "Grouper", "rewrite_with"]
