"""Decide where each value lives, and copy values that are needed elsewhere.

    add(on_device(exp(%x), ext_dev(0)), %y)
    ->
    add(device_copy(on_device(exp(%x), ext_dev(0), constrain_result=True),
                    src=ext_dev(0), dst=cpu(0)), %y)

`device_domains.py` says which values live together. In the result, parameters and functions have
a `virtual_device_`; what lives elsewhere than the expression that uses it is inside an `on_device` that
constrains both its body and its result; what the value of a variable is was said where it is bound.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Constant, Let, TupleGetItem, Var, VarWithFields
from tvm.relay.function import Function, FunctionWithFields
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.device_domains import DeviceDomains, Domain, is_same_place, is_whole
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import operands, rewrite_function, with_operands
from tvm.relay.with_fields import set_virtual_device
from tvm.target.compilation_config import CompilationConfig
from tvm.target.virtual_device import VirtualDevice

# where they are is said elsewhere, or does not matter
_UNMARKED = (Op, Constructor, GlobalVar, Var, Function)


class _Capturer:
    """Writes down what the domains say."""

    def __init__(self, domains: DeviceDomains) -> None:
        self.domains = domains

    def run(self, func: Function) -> Function:
        """The function with copies and places."""
        if is_whole(func):
            return func
        return rewrite_function(func, self._rewrite, is_whole)

    def _rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if isinstance(old, (Op, GlobalVar, Constructor)) or is_whole(old):
            return new
        device = self.domains.device_of(old)
        if isinstance(old, Var):
            is_param = id(old) in self.domains.params
            return VarWithFields(old, virtual_device=device) if is_param else new
        hints = (ops.on_device, ops.device_copy)
        if calls(old, *hints) and calls(new, *hints):
            return self._copied(new.args[0], self._source(old, device), device)
        new = self._with_marks(old, new)
        if isinstance(old, Let) and isinstance(new, Let):
            new = self._bound(old, new)
        if isinstance(new, Function):
            return FunctionWithFields(new, virtual_device=device)
        if not isinstance(new, Constant):
            set_virtual_device(new, device)
        return new

    def _source(self, hint: Call, device: VirtualDevice) -> VirtualDevice:
        """Where the argument of a hint lives; a constant may as well live where it goes."""
        given = hint.args[0]
        return device if isinstance(given, Constant) else self.domains.device_of(given)

    def _with_marks(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        """The node over operands that are marked, or copied, where they live elsewhere."""
        here = self.domains.device_of(old)
        below = []
        required = self.domains.required(old)
        for before, after, domain in zip(operands(old), operands(new), required, strict=True):
            below.append(self._edge(before, after, domain, here))
        return with_operands(new, below) if below else new

    def _edge(
        self, before: RelayExpr, after: RelayExpr, domain: Domain, here: VirtualDevice
    ) -> RelayExpr:
        if isinstance(before, _UNMARKED):
            return after
        there = self.domains.device(domain)
        return after if is_same_place(here, there) else _marked(after, there)

    def _bound(self, old: Let, new: Let) -> Let:
        """The value of a variable is marked in any case: uses of the variable are not."""
        if isinstance(old.value, _UNMARKED):
            return new
        return new.replace(value=_marked(new.value, self.domains.device_of(old.var)))

    def _copied(self, value: RelayExpr, source: VirtualDevice, target: VirtualDevice) -> RelayExpr:
        if is_same_place(source, target):
            return value
        marked = _marked(value, source)
        copy = ops.device_copy(marked, src_virtual_device=source, dst_virtual_device=target)
        set_virtual_device(copy, target)
        return copy


def _marked(value: RelayExpr, device: VirtualDevice) -> RelayExpr:
    """A value that lives elsewhere than what uses it."""
    if isinstance(value, _UNMARKED) or calls(value, ops.on_device):
        return value
    return ops.on_device(value, virtual_device=device, constrain_result=True, constrain_body=True)


def _with_hints_on_fields(func: Function) -> Function:
    """on_device(%t).0    ->    on_device(%t.0): one field is copied, not the tuple."""
    return rewrite_function(func, _sink_hint, is_whole)


def _sink_hint(_: RelayExpr, new: RelayExpr) -> RelayExpr:
    if not isinstance(new, TupleGetItem) or not calls(new.tuple_value, ops.on_device):
        return new
    hint: Any = new.tuple_value
    expr: RelayExpr = hint.replace(args=(new.replace(tuple_value=hint.args[0]),))
    return expr


def PlanDevices(config: CompilationConfig) -> Pass:
    """The pass; the configuration says which devices are the default and the host's."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        mod = infer_types(map_relay_functions(mod, _with_hints_on_fields))
        capturer = _Capturer(DeviceDomains(mod, config))
        return infer_types(map_relay_functions(mod, capturer.run))

    return ModulePass(run, PassInfo(0, "PlanDevices"))
