"""Which variables of a dataflow block live how long, and which may be the same memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op
from tvm.relax.expr import (
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relax.struct_info import TupleStructInfo

from .variables import used_vars

# values from outside of the block, of which nothing is known
_UNKNOWN = -1
# operators whose result may be an argument, beside those that call what the compiler does not know
_HANDING_ON = {
    "relax.call_pure_packed", "relax.call_inplace_packed", "relax.invoke_pure_closure",
    "relax.call_builtin_with_ctx", "relax.reshape", "relax.memory.view",
    "relax.memory.ensure_zero_offset", "relax.wrap_param", "relax.builtin.stop_lift_params",
    "relax.hint_on_device", "relax.to_vdevice",
}  # fmt: skip


def live_ranges(block: DataflowBlock) -> dict[Var, tuple[int, int]]:
    """The numbers of the bindings where each variable is defined, and used for the last time.

    -1 stands for a definition before the block, the number of bindings for a use behind it.
    """
    count = len(block.bindings)
    start = {binding.var: i for i, binding in enumerate(block.bindings)}
    end: dict[Var, int] = {}
    for i, binding in enumerate(block.bindings):
        for var in used_vars(binding.value):
            is_local = isinstance(var, DataflowVar) and var in start
            end[var] = i if is_local else count
    for var, i in start.items():
        end[var] = end.get(var, i) if isinstance(var, DataflowVar) else count
    return {var: (start.get(var, -1), last) for var, last in end.items()}


@dataclass
class Aliases:
    """For each variable the numbers of the values that it may be; the parts of values that are tuples.

    Values that are constants are of the whole program, whatever names they have in a block.
    """

    sets: dict[Var, set[int]] = field(default_factory=dict)
    tuples: dict[int, list[set[int]]] = field(default_factory=dict)
    constants: set[int] = field(default_factory=set)


class _AliasFinder:
    def __init__(self) -> None:
        self.found = Aliases()
        self.count = 0

    def fresh(self) -> int:
        self.count += 1
        return self.count - 1

    def fresh_value(self, info: Any) -> int:
        """The number of a new value, whose fields are new, too."""
        index = self.fresh()
        if isinstance(info, TupleStructInfo):
            self.found.tuples[index] = [{self.fresh_value(f)} for f in info.fields]
        return index

    def of(self, value: RelayExpr) -> set[int]:
        if isinstance(value, Var):
            return set(self.found.sets.get(value, {_UNKNOWN}))
        if isinstance(value, Tuple):
            index = self.fresh()
            self.found.tuples[index] = [self.of(f) for f in value.fields]
            return {index}
        if isinstance(value, TupleGetItem):
            return self.item(self.of(value.tuple_value), value.index)
        if isinstance(value, Call):
            return self.call(value)
        index = self.fresh()
        if isinstance(value, Constant):
            self.found.constants.add(index)
        return {index}

    def item(self, wholes: set[int], index: int) -> set[int]:
        parts = [self.found.tuples[w] for w in wholes if w in self.found.tuples]
        found = {n for fields in parts if index < len(fields) for n in fields[index]}
        return found or {_UNKNOWN}

    def call(self, call: Call) -> set[int]:
        if not isinstance(call.op, Op) or call.op.name in _HANDING_ON:
            return self.unknown_call(call)
        if call.op.name == "relax.call_tir_inplace":
            return self.inplace_call(call)
        return {self.fresh_value(call.struct_info_)}

    def inplace_call(self, call: Call) -> set[int]:
        args = call.args[1]
        fields = args.fields if isinstance(args, Tuple) else (args,)
        info = call.struct_info_
        infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
        sets = [
            self.of(fields[place]) if place >= 0 else {self.fresh_value(one)}
            for place, one in zip(call.attrs.inplace_indices, infos, strict=True)
        ]
        if not isinstance(info, TupleStructInfo):
            return sets[0]
        index = self.fresh()
        self.found.tuples[index] = sets
        return {index}

    def unknown_call(self, call: Call) -> set[int]:
        """The result may be any argument, any part of one, or new."""
        args = call.args if not isinstance(call.op, Op) else call.args[1:] or call.args
        if isinstance(call.op, Op) and not call.op.name.startswith(("relax.call_", "relax.invoke")):
            args = call.args[:1]
        found: set[int] = set()
        for arg in args:
            if not isinstance(arg, GlobalVar):
                found |= self.with_parts(self.of(arg)) if used_vars(arg) else set()
        info = call.struct_info_
        index = self.fresh()
        found.add(index)
        if isinstance(info, TupleStructInfo):
            found |= {self.fresh() for _ in info.fields}
            self.found.tuples[index] = [found for _ in info.fields]
        return found

    def with_parts(self, values: set[int]) -> set[int]:
        found, pending = set(values), list(values)
        while pending:
            for part in self.found.tuples.get(pending.pop(), []):
                pending.extend(part - found)
                found |= part
        return found


def find_aliases(block: DataflowBlock, inputs: Iterable[Var]) -> Aliases:
    """What the variables of a block may be, given that inputs are different values."""
    finder = _AliasFinder()
    for var in inputs:
        finder.found.sets[var] = {finder.fresh_value(var.struct_info_)}
    for binding in block.bindings:
        finder.found.sets[binding.var] = finder.of(binding.value)
    return finder.found


def lives_behind(
    var: Var, at: int, ranges: Mapping[Var, tuple[int, int]], aliases: Aliases
) -> bool:
    """Whether a value, or a part of it, is used after a binding under any name."""
    finder = _AliasFinder()
    finder.found = aliases
    own = finder.with_parts(aliases.sets.get(var, {_UNKNOWN}))
    if _UNKNOWN in own or own & aliases.constants:
        return True
    for other, (_, end) in ranges.items():
        if end > at and finder.with_parts(aliases.sets.get(other, {_UNKNOWN})) & own:
            return True
    return False


__all__ = ["Aliases", "find_aliases", "live_ranges", "lives_behind"]
