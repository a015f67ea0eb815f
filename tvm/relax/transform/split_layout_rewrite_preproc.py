"""Blocks that bring weights to another layout become loop programs of their own, which run once.

y = call_tir(f, (x, w), Y)    ->    w1 = call_tir(f_weight_prepack, (w,), W1)
                                    y = call_tir(f_prepacked, (x, w1), Y)

Which blocks do, their annotation ``meta_schedule.layout_rewrite_preproc`` says, and which parameters are
weights, the function's attribute ``layout_free_buffers``, which `AttachAttrLayoutFreeBuffers` makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.ir.visitor import Visitor
from tvm.relax.expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.base import call_tir
from tvm.relax.struct_info import TensorStructInfo
from tvm.tir import Block, BlockRealize, Buffer, PrimFunc, SeqStmt, Stmt
from tvm.tir import Var as TirVar
from tvm.tir.stmt_functor import renew_defs
from tvm.tir.transform.common import TRUE
from tvm.tir.transform.remove_weight_layout_rewrite import RewriteFinder

from .dead_code import remove_unused_functions
from .pass_kinds import whole_module_pass

_CALL_TIR = Op.get("relax.call_tir")
_LAYOUT_FREE = "layout_free_buffers"


# ---- which parameters are weights


def AttachAttrLayoutFreeBuffers() -> Pass:
    """State of each loop program which of its parameters are weights or constants.

    Weights are the parameters of a function of relax behind those that its attribute ``num_input`` counts.

    Returns
    -------
    Pass
    """
    return whole_module_pass("AttachAttrLayoutFreeBuffers", _attach)


def _attach(mod: IRModule) -> IRModule:
    attacher = _Attacher(mod)
    _update(attacher, mod)
    return remove_unused_functions(attacher.builder_.get()) if attacher.is_changed else mod


def _update(mutator: _Attacher | _Splitter, mod: IRModule) -> None:
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            new = mutator.visit_expr(func)
            if new is not func:
                mutator.builder_.update_func(gvar, new)


class _Attacher(ExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.is_changed = False
        self.weights: dict[Var, None] = {}

    def visit_function_(self, op: Function) -> Any:
        count = op.attrs.get("num_input")
        if count is not None:
            self.weights.update(dict.fromkeys(op.params[int(count) :]))
        return super().visit_function_(op)

    def visit_call_(self, op: Call) -> Any:
        found = _called_program(op, self.mod)
        if found is None:
            return super().visit_call_(op)
        callee, func, inputs = found
        free = [
            i
            for i, value in enumerate(inputs)
            if isinstance(value, Constant) or (isinstance(value, Var) and value in self.weights)
        ]
        call = super().visit_call_(op)
        if not free or not isinstance(call, Call):
            return call
        self.is_changed = True
        gvar = self.builder_.add_func(
            renew_defs(func.with_attr(_LAYOUT_FREE, free)), callee.name_hint
        )
        return call.replace(args=[gvar, *call.args[1:]])


def _called_program(
    call: Call, mod: IRModule
) -> tuple[GlobalVar, PrimFunc, Sequence[RelayExpr]] | None:
    if call.op is not _CALL_TIR or not isinstance(call.args[1], Tuple):
        return None
    callee = call.args[0]
    if not isinstance(callee, GlobalVar):
        return None
    func = mod.functions.get(callee)
    return (callee, func, call.args[1].fields) if isinstance(func, PrimFunc) else None


# ---- programs in two parts


def SplitLayoutRewritePreproc() -> Pass:
    """Let loop programs take weights in the layout that they bring them to.

    Returns
    -------
    Pass
    """
    return whole_module_pass("SplitLayoutRewritePreproc", _split)


def _split(mod: IRModule) -> IRModule:
    splitter = _Splitter(mod)
    if not splitter.parts:
        return mod
    _update(splitter, mod)
    return remove_unused_functions(splitter.builder_.get())


@dataclass(frozen=True)
class _Parts:
    """A loop program in two: what brings weights to their layout, and what computes."""

    prepack: PrimFunc
    compute: PrimFunc
    weights: list[int]  # which parameters
    targets: list[Buffer]  # and what they become


class _Splitter(ExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.parts = {
            gvar: parts
            for gvar, func in mod.functions.items()
            if isinstance(func, PrimFunc) and (parts := split_layout_rewrite(func)) is not None
        }

    def visit_call_(self, op: Call) -> Any:
        call = self.visit_expr_post_order(op)
        found = _called_program(call, self.mod) if isinstance(call, Call) else None
        if found is None or found[0] not in self.parts:
            return call
        callee, _, inputs = found
        parts = self.parts[callee]
        moved = dict(zip(parts.weights, self.prepacked(callee, parts, inputs), strict=True))
        gvar = self.builder_.add_func(parts.compute, f"{callee.name_hint}_prepacked")
        values = Tuple([moved.get(i, value) for i, value in enumerate(inputs)])
        return call.replace(args=[gvar, values, *call.args[2:]])

    def prepacked(
        self, callee: GlobalVar, parts: _Parts, inputs: Sequence[RelayExpr]
    ) -> list[RelayExpr]:
        """The weights in their new layouts."""
        gvar = self.builder_.add_func(parts.prepack, f"{callee.name_hint}_weight_prepack")
        infos = [
            TensorStructInfo(target.shape, target.dtype, inputs[i].struct_info.vdevice)
            for i, target in zip(parts.weights, parts.targets, strict=True)
        ]
        weights = Tuple([inputs[i] for i in parts.weights])
        made = self.builder_.emit(call_tir(gvar, weights, infos if len(infos) > 1 else infos[0]))
        if len(infos) == 1:
            return [made]
        return [self.builder_.emit(TupleGetItem(made, i)) for i in range(len(infos))]


def split_layout_rewrite(func: PrimFunc) -> _Parts | None:
    """A loop program in two parts, or None if no statement of its own rewrites a weight's layout."""
    root = func.body.block if isinstance(func.body, BlockRealize) else None
    free = [int(i) for i in func.attrs.get(_LAYOUT_FREE, ())]
    if root is None or root.iter_vars or not free:
        return None
    steps = list(root.body.seq) if isinstance(root.body, SeqStmt) else [root.body]
    weights = {
        func.buffer_map[func.params[i]]: i for i in free if func.params[i] in func.buffer_map
    }
    moved: dict[Buffer, tuple[Buffer, Stmt]] = {}
    for step in steps:
        finder = RewriteFinder()
        finder.visit(step)
        if len(finder.found) == 1:
            source, target = next(iter(finder.found.items()))
            if source in weights and _has_constant_shape(target):
                moved[source] = (target, step)
    own = [step for _, step in moved.values()]
    rest = [step for step in steps if not any([step is other for other in own])]
    moved = {s: pair for s, pair in moved.items() if not any([_accesses(step, s) for step in rest])}
    if not moved or len(moved) < len(own):
        return None
    return _parts(func, root, rest, moved, weights)


def _parts(
    func: PrimFunc,
    root: Block,
    rest: list[Stmt],
    moved: dict[Buffer, tuple[Buffer, Stmt]],
    weights: dict[Buffer, int],
) -> _Parts:
    targets = [target for target, _ in moved.values()]
    sources = list(moved)
    buffers = [*sources, *targets]
    params = [TirVar(buffer.name, "handle") for buffer in buffers]
    first = PrimFunc(
        params,
        _in_root(root, [step for _, step in moved.values()], []),
        buffer_map=dict(zip(params, buffers, strict=True)),
    )
    kept = [b for b in root.alloc_buffers if not any([b is target for target in targets])]
    second = func.replace(
        body=_in_root(root, rest, kept),
        buffer_map={p: moved[b][0] if b in moved else b for p, b in func.buffer_map.items()},
    )
    second = second.without_attr(_LAYOUT_FREE).without_attr("global_symbol")
    return _Parts(renew_defs(first), renew_defs(second), [weights[s] for s in sources], targets)


def _in_root(root: Block, steps: list[Stmt], buffers: list[Buffer]) -> Stmt:
    body = steps[0] if len(steps) == 1 else SeqStmt(tuple(steps))
    return BlockRealize((), TRUE, root.replace(alloc_buffers=tuple(buffers), body=body))


def _has_constant_shape(buffer: Buffer) -> bool:
    return all([hasattr(dim, "value") for dim in buffer.shape])


class _Accessed(Visitor):
    """The buffers that blocks read and write."""

    def __init__(self) -> None:
        self.found: dict[Buffer, None] = {}

    def visit_block(self, block: Block) -> None:
        self.found.update(dict.fromkeys([r.buffer for r in (*block.reads, *block.writes)]))
        self.visit_children(block)


def _accesses(step: Stmt, buffer: Buffer) -> bool:
    """Whether a statement reads or writes a buffer."""
    accessed = _Accessed()
    accessed.visit(step)
    return buffer in accessed.found
