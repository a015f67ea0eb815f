"""What matches a pattern becomes a function that another compiler may take.

lv = nn.conv2d(x, w)                   @private, Composite = "dnnl.conv2d_relu"
gv = nn.relu(lv)                 ->    fused_relax_nn_conv2d_relax_nn_relu(x, w): lv = nn.conv2d(x, w); ...
                                       gv = fused_relax_nn_conv2d_relax_nn_relu(x, w)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.variables import udchain, used_vars
from tvm.relax.dpl.matcher import Matcher
from tvm.relax.dpl.pattern import (
    CallPattern,
    DFPattern,
    TupleGetItemPattern,
    VarPattern,
    WildcardPattern,
)
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Function,
    Var,
    VarBinding,
    as_seq_expr,
    relax_functions,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.runtime.object import Object

from .fuse_ops import Grouper, rewrite_with
from .pass_kinds import whole_module_pass


class PatternCheckContext(Object):
    """What the check of a pattern is told of a match.

    Attributes
    ----------
    matched_expr : Expr
        The match.
    annotated_expr : dict of str to Expr
        What the annotation patterns stand for, by their names.
    matched_bindings : dict of Var to Expr
        The bindings that would be fused.
    var_usages : dict of Var to list of Var
        The variables of the block that are computed from each.
    value_to_bound_var : dict of Expr to Var
        The variable that a value is bound to.
    """

    def __init__(
        self,
        matched_expr: RelayExpr,
        annotated_expr: Mapping[str, RelayExpr],
        matched_bindings: Mapping[Var, RelayExpr],
        var_usages: Mapping[Var, Sequence[Var]],
        value_to_bound_var: Mapping[RelayExpr, Var],
    ) -> None:
        self.matched_expr = matched_expr
        self.annotated_expr = annotated_expr
        self.matched_bindings = matched_bindings
        self.var_usages = var_usages
        self.value_to_bound_var = value_to_bound_var


class FusionPattern(Object):
    """What is fused into one function.

    Parameters
    ----------
    name : str
        The function's attribute ``Composite``, such as ``"dnnl.conv2d_relu"``.
    pattern : DFPattern
        Of its result.
    annotation_patterns : dict of str to DFPattern, optional
        Parts of the pattern, by names under which `check` and `attrs_getter` find their expressions.
    check : callable, optional
        ``f(context: PatternCheckContext) -> bool``: whether a match is wanted.
    attrs_getter : callable, optional
        ``f(annotated_expr: dict) -> dict``: more attributes of the function.
    """

    def __init__(
        self,
        name: str,
        pattern: DFPattern,
        annotation_patterns: Mapping[str, DFPattern] | None = None,
        check: Callable[[PatternCheckContext], bool] | None = None,
        attrs_getter: Callable[[Mapping[str, RelayExpr]], Mapping[str, Any]] | None = None,
    ) -> None:
        if not isinstance(pattern, DFPattern):
            raise TypeError(f"FusionPattern requires a pattern, got {type(pattern).__name__}")
        self.name = name
        self.pattern = pattern
        self.annotation_patterns = dict(annotation_patterns or {})
        self.check = check
        self.attrs_getter = attrs_getter


def as_fusion_pattern(value: Any) -> FusionPattern:
    """A pattern, which may be given as the tuple of its parts."""
    if isinstance(value, FusionPattern):
        return value
    if not isinstance(value, (tuple, list)) or len(value) < 2:
        raise TypeError(
            f"FuseOpsByPattern requires FusionPattern or tuples (name, pattern, ...), got {value!r}"
        )
    return FusionPattern(*value)


class _Match:
    """Bindings that are fused, by index, and the attributes of their function."""

    def __init__(self, members: list[int], attrs: dict[str, Any]) -> None:
        self.members = members
        self.attrs = attrs


class _Search:
    """The matches of one pattern in one block, none of which depends on itself."""

    def __init__(self, pattern: FusionPattern, block: BindingBlock) -> None:
        self.pattern = pattern
        self.bindings = block.bindings
        self.index = {b.var: i for i, b in enumerate(block.bindings)}
        self.values = {b.var: b.value for b in block.bindings if isinstance(b, VarBinding)}
        self.var_of = {value: var for var, value in self.values.items()}
        self.usages = udchain(block)  # type: ignore[arg-type]
        self.users = {
            i: [self.index[u] for u in self.usages[b.var]] for i, b in enumerate(block.bindings)
        }
        self.match_of: dict[int, _Match] = {}

    def matches(self) -> list[_Match]:
        for binding in self.bindings:
            if isinstance(binding, VarBinding) and isinstance(binding.value, Call):
                self._try(binding)
        return list(dict.fromkeys(self.match_of.values()))

    def _try(self, root: VarBinding) -> None:
        matcher = Matcher(self.values)
        if not matcher.match(self.pattern.pattern, root.value):
            return
        inside = {root.var: root.value}
        for part, expr in matcher.found:
            if isinstance(part, (CallPattern, TupleGetItemPattern)) and expr in self.values:
                inside[expr] = self.values[expr]
        annotated = {
            name: _annotated(part, dict(matcher.found)[part], matcher)
            for name, part in self.pattern.annotation_patterns.items()
            if part in dict(matcher.found)
        }
        context = PatternCheckContext(root.value, annotated, inside, self.usages, self.var_of)
        if self.pattern.check is not None and not self.pattern.check(context):
            return
        members = sorted([self.index[var] for var in inside])
        taken = [self.match_of[i] for i in members if i in self.match_of]
        if any([len(m.members) > 1 for m in taken]) or self._depends_on_itself(members):
            return
        attrs: dict[str, Any] = {"Composite": self.pattern.name, "Primitive": True}
        if self.pattern.attrs_getter is not None:
            attrs.update(self.pattern.attrs_getter(annotated))
        self.match_of.update(dict.fromkeys(members, _Match(members, attrs)))

    def _depends_on_itself(self, members: list[int]) -> bool:
        """Whether something outside, computed from a member, is what another one is computed from."""
        inside = dict.fromkeys(members)
        pending = [u for m in members for u in self.users[m] if u not in inside]
        seen: dict[int, None] = {}
        while pending:
            index = pending.pop()
            if index in inside:
                return True
            if index in seen:
                continue
            match = self.match_of.get(index)
            for i in [index] if match is None else match.members:
                seen[i] = None
                pending += self.users[i]
        return False


def _annotated(pattern: DFPattern, expr: RelayExpr, matcher: Matcher) -> RelayExpr:
    """What comes from outside as its variable, what is matched as its value."""
    is_input = isinstance(pattern, (WildcardPattern, VarPattern))
    return expr if is_input else matcher.value_of(expr)


class _PatternFuser(Grouper):
    def __init__(self, mod: IRModule, pattern: FusionPattern, lifts_constants: bool) -> None:
        super().__init__(mod, {}, lifts_constants)
        self.pattern = pattern
        self.attrs_by_var: dict[Var, dict[str, Any]] = {}

    def groups(self, block: BindingBlock) -> list[list[int]]:
        matches = _Search(self.pattern, block).matches()
        for match in matches:
            self.attrs_by_var[block.bindings[match.members[-1]].var] = match.attrs
        return [match.members for match in matches]

    def attrs_of(self, bindings: list[Binding]) -> tuple[str, dict[str, Any]]:
        name, _ = super().attrs_of(bindings)
        return name, self.attrs_by_var[bindings[-1].var]


def fuse_ops_by_pattern(
    mod: IRModule,
    patterns: Sequence[FusionPattern],
    bind_constants: bool,
    annotate_codegen: bool,
    entry_functions: Sequence[str] | None,
) -> IRModule:
    """The module with matches of patterns, those of the first one first, as functions."""
    for name in entry_functions or ():
        mod.get_global_var(name)
    for pattern in patterns:
        fuser = _PatternFuser(mod, pattern, lifts_constants=not bind_constants)
        mod = rewrite_with(fuser, mod, entry_functions or None)
    return annotate_composites(mod) if annotate_codegen else mod


class _Annotator(ExprMutator):
    """Wraps composite functions into functions for their compiler."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.wrapped: dict[GlobalVar, GlobalVar] = {}

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        if not isinstance(call.op, GlobalVar):
            return call
        func = self.builder_.get().functions.get(call.op)
        if isinstance(func, Function) and "Composite" in func.attrs:
            if call.op not in self.wrapped:
                self.wrapped[call.op] = self._wrap(call.op, func)
            return Call(self.wrapped[call.op], call.args, call.attrs, call.sinfo_args, call.span)
        return call

    def _wrap(self, gvar: GlobalVar, func: Function) -> GlobalVar:
        codegen = codegen_of(str(func.attrs["Composite"]))
        name = f"{gvar.name_hint}_{codegen}"
        params = [Var(p.name_hint, p.struct_info_) for p in func.params]
        body = as_seq_expr(Call(func.without_attr("Primitive"), params))
        attrs = {"Codegen": codegen, "global_symbol": name}
        made = Function(params, body, func.ret_struct_info, func.is_pure, attrs)
        return self.builder_.add_func(self.builder_.normalize(made), name)  # type: ignore[arg-type]


def codegen_of(composite: str) -> str:
    """The compiler of a composite function: what is before the dot of its name."""
    codegen, dot, _ = composite.partition(".")
    if not dot:
        raise TVMError(
            f'the name of a composite function must be "compiler.what", got {composite!r}'
        )
    return codegen


def annotate_composites(mod: IRModule) -> IRModule:
    """The module with each composite function in one that has its compiler as attribute ``Codegen``."""
    annotator = _Annotator(mod)
    for gvar, func in relax_functions(mod).items():
        if "Composite" in func.attrs or "Codegen" in func.attrs or func.body is None:
            continue
        new = annotator.visit_expr(func)
        if new is not func:
            annotator.builder_.update_func(gvar, new)
    if not annotator.wrapped:
        return mod
    found = annotator.builder_.get()
    return found.with_functions(
        {g: f for g, f in found.functions.items() if g not in annotator.wrapped}
    )


def FuseOpsByPattern(
    patterns: Sequence[FusionPattern | tuple[Any, ...]],
    bind_constants: bool = True,
    annotate_codegen: bool = False,
    entry_functions: Sequence[str] | None = None,
) -> Pass:
    """Move what matches patterns in dataflow blocks into functions with the attribute ``Composite``.

    Parameters
    ----------
    patterns : list of FusionPattern, or of tuples of its parameters
        Those that come first are preferred.
    bind_constants : bool
        Whether constants become part of the functions; otherwise they are arguments.
    annotate_codegen : bool
        Whether each function goes into one with the attribute ``Codegen``, the compiler that the
        pattern's name begins with; `MergeCompositeFunctions` does so for neighbours together.
    entry_functions : list of str, optional
        The functions to look at; by default all.
    """
    chosen = [as_fusion_pattern(p) for p in patterns]
    return whole_module_pass(
        "FuseOpsByPattern",
        lambda mod: fuse_ops_by_pattern(
            mod, chosen, bind_constants, annotate_codegen, entry_functions
        ),
    )


__all__ = ["DataflowBlock", "FuseOpsByPattern", "FusionPattern", "PatternCheckContext", "used_vars"]
