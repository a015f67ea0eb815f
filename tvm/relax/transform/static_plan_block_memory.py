"""Tensors of one function share storages where their lifetimes do not overlap.

a = builtin.alloc_tensor((8,), "float32", 0)      storage = memory.alloc_storage((32,), 0, "global", "float32")
f(x, a)                                           a = memory.alloc_tensor(storage, 0, (8,), "float32")
b = builtin.alloc_tensor((8,), "float32", 0)  ->  f(x, a)
f(a, b)                                           ...
c = builtin.alloc_tensor((8,), "float32", 0)      c = memory.alloc_tensor(storage, 0, (8,), "float32")
f(b, c)                                           f(b, c)

Dimensions count with the upper bounds that the function's attribute ``tir_var_upper_bound`` states for
symbolic variables. Tensors that a function returns, that branches share or that may be referred to from
elsewhere stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tvm.arith import Analyzer, ConstIntBound, IntervalSet
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, PrimExpr, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.expr import (
    Binding,
    Call,
    ExternFunc,
    Function,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relax.struct_info import ShapeExpr, TupleStructInfo
from tvm.relax.struct_info_relations import tir_vars_in
from tvm.tir import PrimFunc
from tvm.tir.expr import IntImm

from .binding_rewriter import BindingRewriter, op_call
from .kill_after_last_use import variables
from .lower_alloc_tensor import data_type_of, element_bytes
from .pass_kinds import relax_pass

_PLANS_DYNAMIC_OUTPUT = "relax.memory_plan_dynamic_func_output"
# operators whose result is their first argument under another shape
VIEWS = {"relax.reshape", "relax.memory.view", "relax.memory.ensure_zero_offset"}
# a storage serves tensors of at most that many times, and at least that part of, its size
_MATCH_RANGE = 16


@dataclass(eq=False)
class _Storage:
    """Memory for tensors whose lives do not overlap."""

    size: PrimExpr
    like: Call  # the first allocation
    var: Var | None = None  # once it is emitted


@dataclass(eq=False)
class _Token:
    """What is known of one allocated tensor."""

    call: Call
    size: PrimExpr
    site: SeqExpr
    is_held: bool = False  # others may refer to it until the function ends
    is_planned: bool = True
    is_output: bool = False
    storage: _Storage | None = None


_Tokens: TypeAlias = "_Token | tuple[_Tokens, ...] | None"


def _leaves(tokens: _Tokens) -> Iterator[_Token]:
    if isinstance(tokens, tuple):
        for part in tokens:
            yield from _leaves(part)
    elif tokens is not None:
        yield tokens


@dataclass
class _Sequence:
    """The allocations of a sequence, and where their tensors are used for the last time."""

    events: list[tuple[Binding, _Token | None]] = field(default_factory=list)
    last_use: dict[_Token, int] = field(default_factory=dict)


class _Lifetimes:
    """Finds the tensors of a function, and how long each is used."""

    def __init__(self, mod: IRModule, bounds: _UpperBounds) -> None:
        self.mod, self.bounds = mod, bounds
        self.values: dict[Var, _Tokens] = {}
        self.sequences: list[_Sequence] = []
        self.tokens: dict[int, _Token] = {}  # by the identity of the call

    def function(self, func: Function, plans_output: bool) -> None:
        for token in _leaves(self.sequence(func.body)):
            if plans_output and not _is_constant(token.call.args[0]):
                token.is_output = True
                token.size = self.bounds.product(token.call)
            else:
                token.is_planned = False

    def sequence(self, seq: SeqExpr) -> _Tokens:
        found = _Sequence()
        self.sequences.append(found)
        for block in seq.blocks:
            for binding in block.bindings:
                self.values[binding.var] = tokens = self.value(binding.value, seq, found)
                is_new = isinstance(tokens, _Token) and binding.value is tokens.call
                found.events.append((binding, tokens if is_new else None))  # type: ignore[arg-type]
        return self.of(seq.body)

    def of(self, expr: RelayExpr) -> _Tokens:
        if isinstance(expr, Var):
            return self.values.get(expr)
        if isinstance(expr, Tuple):
            return tuple([self.of(part) for part in expr.fields])
        if isinstance(expr, TupleGetItem):
            whole = self.of(expr.tuple_value)
            return whole[expr.index] if isinstance(whole, tuple) else whole
        return None

    def value(self, value: RelayExpr, seq: SeqExpr, found: _Sequence) -> _Tokens:
        if isinstance(value, If):
            self.drop(value.cond)
            for branch in (value.true_branch, value.false_branch):
                self.unplan(self.sequence(branch))
            return None
        if not isinstance(value, Call):
            if isinstance(value, (Var, Tuple, TupleGetItem)):
                return self.of(value)
            self.drop(value)
            return None
        name = value.op.name if isinstance(value.op, Op) else ""
        if name == "relax.builtin.alloc_tensor":
            return self.allocation(value, seq)
        if name in VIEWS:
            self.use(value.args[0], seq, found)
            return self.of(value.args[0])
        if name == "relax.vm.call_tir_dyn" or self._is_plain_call(value):
            for arg in value.args:
                self.use(arg, seq, found)
            if isinstance(value.op, ExternFunc) and not _is_void(value):
                self.hold(value)
            return None
        self.drop(value)
        return None

    def allocation(self, call: Call, seq: SeqExpr) -> _Tokens:
        if not isinstance(call.args[0], ShapeExpr):
            return None
        element = data_type_of(call.args[1])
        token = _Token(call, self.bounds.bytes_of(call.args[0], element), seq)
        self.tokens[id(call)] = token
        return token

    def _is_plain_call(self, call: Call) -> bool:
        """Whether the callee reads and writes its arguments, and keeps none."""
        if isinstance(call.op, GlobalVar):
            return isinstance(self.mod.functions.get(call.op), PrimFunc)
        return isinstance(call.op, ExternFunc)

    def use(self, arg: RelayExpr, seq: SeqExpr, found: _Sequence) -> None:
        for token in _leaves(self.of(arg)):
            if token.site is not seq:
                token.is_planned = False
            found.last_use.pop(token, None)  # the order is that of last uses
            found.last_use[token] = len(found.events)

    def hold(self, value: RelayExpr) -> None:
        for var in variables(value):
            for token in _leaves(self.values.get(var)):
                token.is_held = True

    def drop(self, value: RelayExpr) -> None:
        for var in variables(value):
            self.unplan(self.values.get(var))

    def unplan(self, tokens: _Tokens) -> None:
        for token in _leaves(tokens):
            token.is_planned = False


def _is_void(call: Call) -> bool:
    info = call.struct_info_
    return isinstance(info, TupleStructInfo) and not info.fields


def _is_constant(shape: RelayExpr) -> bool:
    return isinstance(shape, ShapeExpr) and all([isinstance(v, IntImm) for v in shape.values])


# ---- sizes


class _UpperBounds:
    """Sizes of tensors, with symbolic variables at most what the function's attributes state."""

    def __init__(self, func: Function) -> None:
        self.analyzer = Analyzer()
        self.domains: dict[Any, Any] = {}
        bounds = _stated_bounds(func)
        non_negative = {str(name) for name in func.attrs.get("tir_non_negative_var") or ()}
        for param in func.params:
            for var in tir_vars_in(param.struct_info):
                if (bound := bounds.get(var.name)) is not None:
                    self.domains[var] = IntervalSet(IntImm(var.dtype, 0), IntImm(var.dtype, bound))
                    self.analyzer.update(var, ConstIntBound(0, bound))
                elif var.name in non_negative:
                    self.analyzer.update(var, ConstIntBound(0, ConstIntBound.POS_INF))

    def bytes_of(self, shape: ShapeExpr, element: Any) -> PrimExpr:
        """The bytes of a tensor at most."""
        factor = element_bytes(element)
        extents: PrimExpr = IntImm("int64", 1)
        for extent in shape.values:
            most = self.of(extent)
            if isinstance(most, IntImm):
                factor *= most.value
            else:
                extents = extents * most
        return IntImm("int64", factor) * extents

    def product(self, call: Call) -> PrimExpr:
        """The bytes of an allocated tensor at most, dimension by dimension."""
        shape, element = call.args[:2]
        assert isinstance(shape, ShapeExpr)
        total: PrimExpr = IntImm("int64", 1)
        for factor in (*[self.of(extent) for extent in shape.values], _size(element)):
            total = total * factor
        return total

    def of(self, extent: PrimExpr) -> PrimExpr:
        """A dimension at most, an expression over variables without bounds."""
        if isinstance(extent, IntImm):
            return extent
        most = self.analyzer.const_int_bound(extent).max_value
        if most < ConstIntBound.POS_INF:
            return IntImm("int64", most)
        if not any([var in self.domains for var in tir_vars_in(extent)]):
            return extent
        found = self.analyzer.int_set(extent, self.domains)
        known = isinstance(found, IntervalSet) and found.max_value.dtype == "int64"
        return found.max_value if known else extent


def _size(element: RelayExpr) -> int:
    return element_bytes(data_type_of(element))


def _stated_bounds(func: Function) -> Mapping[str, int]:
    stated = func.attrs.get("tir_var_upper_bound") or {}
    found: dict[str, int] = {}
    for name, bound in stated.items():
        value = getattr(bound, "value", bound)
        if not isinstance(value, int) or value < 0:
            raise TVMError(
                "the attribute tir_var_upper_bound requires integers that are not negative, "
                f"got {bound!r} for {name}"
            )
        found[str(name)] = value
    return found


# ---- storages


class _Pool:
    """The storages of one sequence that no tensor lives in."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.free: dict[Any, list[_Storage]] = {}

    def take(self, token: _Token) -> _Storage:
        """A storage for a tensor: a free one that fits, or a new one."""
        free = self.free.setdefault(_memory_kind(token.call), [])
        found = self._fitting(free, token.size)
        if found is None:
            return _Storage(token.size, token.call)
        free.remove(found)
        if isinstance(found.size, IntImm) and found.size.value < token.size.value:  # type: ignore[attr-defined]
            found.size = token.size
        return found

    def _fitting(self, free: list[_Storage], size: PrimExpr) -> _Storage | None:
        if not isinstance(size, IntImm):
            same = [s for s in free if self._is_equal(s.size, size)]
            return same[0] if same else None
        wanted = size.value
        sizes = [(s.size.value, i) for i, s in enumerate(free) if isinstance(s.size, IntImm)]
        larger = [(n, i) for n, i in sizes if wanted <= n <= wanted * _MATCH_RANGE]
        if larger:
            return free[min(larger)[1]]
        smaller = [(n, i) for n, i in sizes if wanted // _MATCH_RANGE <= n < wanted]
        return free[max(smaller)[1]] if smaller else None

    def _is_equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        return not isinstance(a, IntImm) and self.analyzer.can_prove_equal(a, b)

    def give_back(self, token: _Token) -> None:
        assert token.storage is not None
        self.free[_memory_kind(token.call)].append(token.storage)


def _memory_kind(call: Call) -> tuple[Any, ...]:
    """What tensors of one storage have in common: data type, device and memory."""
    _, element, device, scope = call.args
    return data_type_of(element), str(device), str(scope)


def _assign(sequence: _Sequence, analyzer: Analyzer) -> None:
    """Find a storage for each planned tensor of a sequence."""
    pool = _Pool(analyzer)
    dying: dict[int, list[_Token]] = {}
    for used, at in sequence.last_use.items():
        if used.is_planned and not used.is_held and not used.is_output:
            dying.setdefault(at, []).append(used)
    for index, (_, token) in enumerate(sequence.events):
        if token is not None and token.is_planned:
            is_own = token.is_output or token not in sequence.last_use
            token.storage = _Storage(token.size, token.call) if is_own else pool.take(token)
        for dead in dying.get(index, ()):
            pool.give_back(dead)


# ---- the function over storages


class _InStorages(BindingRewriter):
    def __init__(self, mod: IRModule, tokens: Mapping[int, _Token], bounds: _UpperBounds) -> None:
        super().__init__(mod)
        self.tokens, self.bounds = tokens, bounds

    def value(self, value: RelayExpr, var: Var) -> RelayExpr:
        token = self.tokens.get(id(value))
        if token is None or token.storage is None:
            return value
        shape, element, _, _ = token.call.args
        storage = self._storage(token.storage)
        offset = IntImm("int64", 0)
        return op_call(
            "relax.memory.alloc_tensor", storage, offset, shape, element, info=value.struct_info_
        )

    def _storage(self, storage: _Storage) -> Var:
        if storage.var is None:
            _, element, device, scope = storage.like.args
            args = (ShapeExpr([storage.size]), device, scope, element)
            storage.var = self.emit(op_call("relax.memory.alloc_storage", *args), "storage")
        return storage.var


def plan_memory(func: Function, mod: IRModule) -> Function:
    """The function with tensors in storages that they share."""
    plans_output = bool(func.attrs.get(_PLANS_DYNAMIC_OUTPUT, False))
    bounds = _UpperBounds(func)
    lifetimes = _Lifetimes(mod, bounds)
    lifetimes.function(func, plans_output)
    for sequence in lifetimes.sequences:
        _assign(sequence, bounds.analyzer)
    new = _InStorages(mod, lifetimes.tokens, bounds).function(func)
    return new.without_attr(_PLANS_DYNAMIC_OUTPUT) if plans_output else new


def StaticPlanBlockMemory() -> Pass:
    """Let tensors of a function share storages.

    Functions say by attributes: ``tir_var_upper_bound`` (dict of str to int), the largest value of symbolic
    variables; ``tir_non_negative_var`` (list of str), variables without a bound that are not negative;
    ``relax.memory_plan_dynamic_func_output`` (bool), that results of symbolic shape have a storage, too.
    """
    return relax_pass("StaticPlanBlockMemory", plan_memory)


__all__ = ["StaticPlanBlockMemory", "plan_memory"]
