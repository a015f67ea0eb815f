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

from typing import TypeVar

from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Constant, Let, TupleGetItem, Var, VarWithFields
from tvm.relay.function import Function, FunctionWithFields, is_opaque
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.device_domains import DeviceDomains, Domain, is_same_device
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import PostOrderRewriter, operands, rewrite_function, with_operands
from tvm.relay.with_fields import set_virtual_device
from tvm.target.compilation_config import CompilationConfig
from tvm.target.virtual_device import VirtualDevice

E = TypeVar("E", bound=RelayExpr)

# where they are is said elsewhere, or does not matter
_WITHOUT_HINT = (Op, Constructor, GlobalVar, Var, Function)


class _Capturer(PostOrderRewriter):
    """Writes down what the domains say."""

    def __init__(self, domains: DeviceDomains) -> None:
        self.domains = domains

    def run(self, func: Function) -> Function:
        """The function with copies and devices."""
        return func if is_opaque(func) else rewrite_function(func, self.rewrite, is_opaque)

    def _unchanged(self, new: RelayExpr, old: RelayExpr) -> RelayExpr:
        return new

    visit_op = visit_global_var = visit_constructor = visit_constant = _unchanged

    def visit_var(self, new: Var, old: Var) -> RelayExpr:
        if id(old) not in self.domains.params:
            return new
        return VarWithFields(old, virtual_device=self.domains.device_of(old))

    def visit_function(self, new: Function, old: Function) -> RelayExpr:
        if is_opaque(old):
            return new
        marked = self._with_hints(old, new)
        return FunctionWithFields(marked, virtual_device=self.domains.device_of(old))

    def visit_call(self, new: Call, old: Call) -> RelayExpr:
        if not calls(old, ops.on_device, ops.device_copy):
            return self.visit_relay_expr(new, old)
        device = self.domains.device_of(old)
        return self._copied(new.args[0], self._source(old, device), device)

    def visit_let(self, new: Let, old: Let) -> RelayExpr:
        new = self._bound(old, self._with_hints(old, new))
        set_virtual_device(new, self.domains.device_of(old))
        return new

    def visit_relay_expr(self, new: RelayExpr, old: RelayExpr) -> RelayExpr:
        new = self._with_hints(old, new)
        set_virtual_device(new, self.domains.device_of(old))
        return new

    def _source(self, hint: Call, device: VirtualDevice) -> VirtualDevice:
        """Where the argument of a hint lives; a constant may as well live where it goes."""
        given = hint.args[0]
        return device if type(given) is Constant else self.domains.device_of(given)

    def _with_hints(self, old: RelayExpr, new: E) -> E:
        """The node over operands that are marked, or copied, where they live elsewhere."""
        here = self.domains.device_of(old)
        below = []
        required = self.domains.required(old)
        for before, after, domain in zip(operands(old), operands(new), required, strict=True):
            if self.domains.is_copied(old, before):
                below.append(self._copied(after, self.domains.device_of(before), here))
            else:
                below.append(self._edge(before, after, domain, here))
        return with_operands(new, below) if below else new  # type: ignore[return-value]

    def _edge(
        self, before: RelayExpr, after: RelayExpr, domain: Domain, here: VirtualDevice
    ) -> RelayExpr:
        if isinstance(before, _WITHOUT_HINT):
            return after
        there = self.domains.device(domain)
        return after if is_same_device(here, there) else _on_device(after, there)

    def _bound(self, old: Let, new: Let) -> Let:
        """The value of a variable is marked in any case: uses of the variable are not."""
        if isinstance(old.value, _WITHOUT_HINT):
            return new
        return new.replace(value=_on_device(new.value, self.domains.device_of(old.var)))

    def _copied(self, value: RelayExpr, source: VirtualDevice, target: VirtualDevice) -> RelayExpr:
        if is_same_device(source, target):
            return value
        marked = _on_device(value, source)
        copy = ops.device_copy(marked, src_virtual_device=source, dst_virtual_device=target)
        set_virtual_device(copy, target)
        return copy


def _on_device(value: RelayExpr, device: VirtualDevice) -> RelayExpr:
    """A value that lives elsewhere than what uses it."""
    if isinstance(value, _WITHOUT_HINT) or calls(value, ops.on_device):
        return value
    return ops.on_device(value, virtual_device=device, constrain_result=True, constrain_body=True)


def _with_hints_on_fields(func: Function) -> Function:
    """on_device(%t).0    ->    on_device(%t.0): one field is copied, not the tuple."""
    return rewrite_function(func, _sink_hint, is_opaque)


def _sink_hint(_: RelayExpr, new: RelayExpr) -> RelayExpr:
    if type(new) is TupleGetItem and calls(hint := new.tuple_value, ops.on_device):
        return hint.replace(args=(new.replace(tuple_value=hint.args[0]),))
    return new


def PlanDevices(config: CompilationConfig) -> Pass:
    """The pass; the configuration says which devices are the default and the host's."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        mod = infer_types(map_relay_functions(mod, _with_hints_on_fields))
        capturer = _Capturer(DeviceDomains(mod, config))
        return infer_types(map_relay_functions(mod, capturer.run))

    return ModulePass(run, PassInfo(0, "PlanDevices"))
