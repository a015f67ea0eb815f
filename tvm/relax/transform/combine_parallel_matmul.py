"""Products of one matrix with several become one product with all of them side by side.

lv0 = matmul(x, w0)          ->    lv = concat((w0, w1), axis=1)
lv1 = matmul(x, w1)                lv2 = split(matmul(x, lv), [640], axis=1)
                                   lv0, lv1 = lv2[0], lv2[1]

Biases that all products have are added at once, then an activation that all have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.analysis.unused import remove_all_unused
from tvm.relax.analysis.variables import used_vars
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    Binding,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.binary import add
from tvm.relax.op.joining import concat, split
from tvm.relax.op.linear_algebra import matmul
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.struct_info_relations import are_same_dimensions
from tvm.support.dtype import DType
from tvm.tir.expr import IntImm

from .pass_kinds import relax_pass

_MATMUL, _ADD = Op.get("relax.matmul"), Op.get("relax.add")
_ACTIVATIONS = tuple([Op.get(f"relax.nn.{name}") for name in ("relu", "gelu", "silu")])
# of the common matrix, the others, the biases and the values of the block's variables
Check = Callable[[Var, Sequence[RelayExpr], Sequence[RelayExpr], dict[Var, RelayExpr]], bool]


@dataclass
class _Branch:
    """A product, and what is computed of it alone."""

    product: Var
    rhs: RelayExpr
    columns: Any
    biased: Var | None = None
    bias: RelayExpr | None = None
    activated: Var | None = None
    activation: Call | None = None


def CombineParallelMatmul(check: Check | None = None) -> Pass:
    """Combine products with a common left matrix, in dataflow blocks.

    Parameters
    ----------
    check : callable, optional
        ``check(lhs, rhs, bias, bindings) -> bool`` says whether products are combined; by default all.
    """

    def rewrite(func: Function, mod: IRModule) -> Function:
        new = _Combiner(check).visit_expr(func)
        found: Function = func if new is func else remove_all_unused(new)
        return found

    return relax_pass("CombineParallelMatmul", rewrite)


class _Combiner(ExprMutator):
    def __init__(self, check: Check | None) -> None:
        super().__init__()
        self.check = check

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        groups = _Groups(block, self.check, self.builder_)
        for group in groups.find():
            groups.combine(*group)
        made = groups.block()
        return super().visit_dataflow_block_(made)


class _Groups:
    """The products of a block by their left matrices."""

    def __init__(self, block: DataflowBlock, check: Check | None, builder: BlockBuilder) -> None:
        self.original = block
        self.check = check
        self.builder = builder
        self.definitions = {b.var: b for b in block.bindings}
        self.users: dict[Var, list[Binding]] = {}
        for binding in block.bindings:
            for var in used_vars(binding.value):
                self.users.setdefault(var, []).append(binding)
        # by variable: what is bound instead of its value
        self.replaced: dict[Var, Binding] = {}
        self.before: dict[Var, list[Binding]] = {}

    def find(self) -> list[tuple[Var, list[_Branch]]]:
        """Left matrices, each with several products."""
        groups: dict[tuple[Var, int, DType], list[_Branch]] = {}
        for binding in self.original.bindings:
            call = binding.value
            if not (isinstance(call, Call) and call.op is _MATMUL):
                continue
            lhs, rhs = call.args
            info, result = rhs.struct_info, call.struct_info
            if not isinstance(lhs, Var) or not isinstance(info, TensorStructInfo):
                continue
            if info.dimensions is None or info.ndim < 2 or lhs.struct_info.ndim < 1:
                continue
            branch = _Branch(binding.var, rhs, info.dimensions[-1])
            groups.setdefault((lhs, info.ndim, result.dtype), []).append(branch)
        found = [(lhs, self.usable(lhs, branches)) for (lhs, *_), branches in groups.items()]
        return [(lhs, branches) for lhs, branches in found if len(branches) > 1]

    def usable(self, lhs: Var, branches: list[_Branch]) -> list[_Branch]:
        """Branches that can stand side by side: one of unknown extent at most, which is the last."""
        batches = [branch.rhs.struct_info.dimensions[:-2] for branch in branches]
        if not all([are_same_dimensions(batches[0], batch) for batch in batches]):
            return []
        known = [b for b in branches if isinstance(b.columns, IntImm)]
        open_ones = [b for b in branches if not isinstance(b.columns, IntImm)]
        chosen = [*known, *open_ones[:1]]
        for branch in chosen:
            self.follow(branch)
        own = {branch.product for branch in chosen}
        if any([self.depends(branch, own) for branch in chosen]):
            return []
        biases = [branch.bias for branch in chosen]
        bindings = {b.var: b.value for b in self.original.bindings}
        shared = [bias for bias in biases if bias is not None]
        if len(chosen) > 1 and self.check is not None:
            rhs = [branch.rhs for branch in chosen]
            given = shared if len(shared) == len(chosen) else []
            if not self.check(lhs, rhs, given, bindings):
                return []
        return chosen

    def only_user(self, var: Var) -> Binding | None:
        users = self.users.get(var, [])
        return users[0] if len(users) == 1 and isinstance(var, DataflowVar) else None

    def follow(self, branch: _Branch) -> None:
        """What is computed of a product alone: with a bias, and with an activation."""
        user = self.only_user(branch.product)
        if user is not None and isinstance(user.value, Call) and user.value.op is _ADD:
            first, bias = user.value.args
            info = bias.struct_info
            is_bias = isinstance(info, TensorStructInfo) and info.ndim == 1
            if first is branch.product and is_bias:
                if are_same_dimensions(info.dimensions, [branch.columns]):
                    branch.bias, branch.biased = bias, user.var
                    user = self.only_user(user.var)
        if user is not None and isinstance(user.value, Call) and user.value.op in _ACTIVATIONS:
            branch.activation, branch.activated = user.value, user.var

    def depends(self, branch: _Branch, own: set[Var]) -> bool:
        """Whether a branch needs another one, or what only a check at run time defines."""
        pending = [v for e in (branch.rhs, branch.bias) if e is not None for v in used_vars(e)]
        seen: set[Var] = set()
        while pending:
            var = pending.pop()
            if var in own:
                return True
            binding = self.definitions.get(var)
            if binding is None or var in seen:
                continue
            seen.add(var)
            if not isinstance(binding, VarBinding):
                return True
            pending.extend(used_vars(binding.value))
        return False

    def combine(self, lhs: Var, branches: list[_Branch]) -> None:
        """Bind the results of branches to parts of one product."""
        has_bias = all([branch.bias is not None for branch in branches])
        activations = [branch.activation for branch in branches]
        first = activations[0]
        is_alike = first is not None and all(
            [a is not None and a.op is first.op and a.attrs == first.attrs for a in activations]
        )
        # an activation follows at once only where the products have been combined up to it
        has_activation = is_alike and (
            has_bias or all([branch.bias is None for branch in branches])
        )
        made: list[Binding] = []

        def bind(value: RelayExpr) -> Var:
            value = self.builder.normalize(value)
            var = DataflowVar("lv", value.struct_info)
            made.append(VarBinding(var, value))
            return var

        rhs = bind(concat([b.rhs for b in branches], branches[0].rhs.struct_info.ndim - 1))
        kind = branches[0].product.struct_info.dtype
        whole = bind(matmul(lhs, rhs, kind))
        if has_bias:
            whole = bind(add(whole, bind(concat([b.bias for b in branches], 0))))
        if has_activation:
            assert first is not None
            whole = bind(Call(first.op, [whole], first.attrs))
        ends, end = [], 0
        for branch in branches[:-1]:
            end += branch.columns.value
            ends.append(end)
        parts = bind(split(whole, ends, whole.struct_info.ndim - 1))
        places = {b.var: i for i, b in enumerate(self.original.bindings)}
        results = []
        for i, branch in enumerate(branches):
            var = branch.biased if has_bias else branch.product
            var = branch.activated if has_activation else var
            assert var is not None
            results.append(var)
            self.replaced[var] = VarBinding(var, TupleGetItem(parts, i))
        self.before[min(results, key=places.__getitem__)] = made

    def block(self) -> DataflowBlock:
        """The block with combined products, definitions before their uses."""
        if not self.replaced:
            return self.original
        done: dict[Var, None] = {}
        bindings: list[Binding] = []

        def put(binding: Binding) -> None:
            if binding.var in done:
                return
            done[binding.var] = None
            for early in self.before.get(binding.var, []):
                for var in used_vars(early.value):
                    if var in self.definitions:
                        put(self.replaced.get(var, self.definitions[var]))
                bindings.append(early)
            for var in used_vars(binding.value):
                if var in self.definitions:
                    put(self.replaced.get(var, self.definitions[var]))
            bindings.append(binding)

        for binding in self.original.bindings:
            put(self.replaced.get(binding.var, binding))
        return DataflowBlock(bindings)
