"""Decide where each value lives, and copy values that are needed elsewhere.

    add(on_device(exp(%x), ext_dev(0)), %y)
    ->
    add(device_copy(exp(%x), src=ext_dev(0), dst=cpu(0)), %y)

Values that must live together form one domain: the operands and the result of an operator, the
branches of an `if`, what a variable is bound to. `on_device` and `device_copy` say where a domain
lives, and part the one before them from the one after; domains nobody says anything about live on
the default device. Functions say where their parameters and results live, expressions where they
do (`virtual_device_`).
"""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.adt import Match
from tvm.relay.expr import Call, Constant, If, Let, RefWrite, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.transform.operators import DEVICE_COPY, ON_DEVICE, calls
from tvm.relay.traverse import operands, post_order, rewrite_function
from tvm.relay.with_fields import set_virtual_device
from tvm.target.compilation_config import CompilationConfig
from tvm.target.virtual_device import VirtualDevice

PARAM_DEVICES = "param_virtual_devices"
RESULT_DEVICE = "result_virtual_device"


class Domain:
    """Values that live together; joined domains share their root."""

    def __init__(self) -> None:
        self.parent: Domain | None = None
        self.device: VirtualDevice | None = None

    def root(self) -> Domain:
        domain = self
        while domain.parent is not None:
            if domain.parent.parent is not None:
                domain.parent = domain.parent.parent
            domain = domain.parent
        return domain


def _same(a: VirtualDevice, b: VirtualDevice) -> bool:
    """Whether two places are one, parts that are left open fitting any."""
    index = a.virtual_device_id == b.virtual_device_id or -1 in (
        a.virtual_device_id,
        b.virtual_device_id,
    )
    scopes = a.memory_scope == b.memory_scope or "" in (a.memory_scope, b.memory_scope)
    return a.device_type_int == b.device_type_int and index and scopes


def _text(device: VirtualDevice) -> str:
    return f"device {device.device_type_int}({max(device.virtual_device_id, 0)})"


class _Planner:
    """Joins the domains of all functions of a module."""

    def __init__(self, mod: IRModule, config: CompilationConfig) -> None:
        self.mod = mod
        self.default = config.default_primitive_virtual_device
        self.host = config.host_virtual_device
        self.domains: dict[int, Domain] = {}
        for func in mod.functions.values():
            for node in post_order(func) if isinstance(func, Function) else ():
                self._visit(node)

    def of(self, node: RelayExpr) -> Domain:
        """The domain that the value of a node lives in."""
        return self.domains.setdefault(id(node), Domain())

    def device_of(self, node: RelayExpr) -> VirtualDevice:
        """Where the value of a node lives."""
        return self.of(node).root().device or self.default

    def _join(self, a: Domain, b: Domain, at: RelayExpr) -> None:
        a, b = a.root(), b.root()
        if a is b:
            return
        if a.device is not None and b.device is not None and not _same(a.device, b.device):
            raise TVMError(
                f"PlanDevices requires one place for a value, got {_text(a.device)} and "
                f"{_text(b.device)}",
                at=at,
                hint="part them with relay.annotation.on_device or relay.device_copy",
            )
        b.parent = a
        a.device = a.device or b.device

    def _place(self, domain: Domain, device: VirtualDevice, at: RelayExpr) -> None:
        placed = Domain()
        placed.device = device
        self._join(domain, placed, at)

    def _visit(self, node: RelayExpr) -> None:
        if isinstance(node, Function):
            self._ends(node)
        elif isinstance(node, Call):
            self._call(node)
        elif isinstance(node, Let):
            self._join(self.of(node.var), self.of(node.value), node)
            self._join(self.of(node), self.of(node.body), node)
        elif isinstance(node, If):
            for branch in (node.true_branch, node.false_branch):
                self._join(self.of(node), self.of(branch), node)
            self._place(self.of(node.cond), self.host, node)
        elif isinstance(node, Match):
            for clause in node.clauses:
                self._join(self.of(node), self.of(clause.rhs), node)
                for variable in clause.lhs.bound_vars():
                    self._join(self.of(node.data), self.of(variable), node)
        elif isinstance(node, RefWrite):
            self._join(self.of(node.ref), self.of(node.value), node)
        elif not isinstance(node, (Var, Constant, Op, GlobalVar, Constructor)):
            for operand in operands(node):
                self._join(self.of(node), self.of(operand), node)

    def _ends(self, func: Function) -> None:
        """What a function says about its parameters and its result."""
        for param, device in zip(func.params, func.attrs.get(PARAM_DEVICES) or (), strict=False):
            self._place(self.of(param), device, func)
        if (device := func.attrs.get(RESULT_DEVICE)) is not None:
            self._place(self.of(func.body), device, func)

    def _call(self, call: Call) -> None:
        attrs: Any = call.attrs
        if calls(call, ON_DEVICE):
            if attrs.constrain_body:
                self._place(self.of(call.args[0]), attrs.virtual_device, call)
            if attrs.constrain_result:
                self._place(self.of(call), attrs.virtual_device, call)
            return
        if calls(call, DEVICE_COPY):
            self._place(self.of(call.args[0]), attrs.src_virtual_device, call)
            self._place(self.of(call), attrs.dst_virtual_device, call)
            return
        callee = self.mod[call.op] if isinstance(call.op, GlobalVar) else call.op
        if isinstance(callee, Function) and not is_primitive(callee):
            for param, arg in zip(callee.params, call.args, strict=True):
                self._join(self.of(param), self.of(arg), call)
            self._join(self.of(call), self.of(callee.body), call)
            return
        for arg in call.args:
            self._join(self.of(call), self.of(arg), call)

    # -- writing it down

    def rewritten(self, func: Function) -> Function:
        """The function with copies, places, and without hints."""

        def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
            if isinstance(old, (Op, GlobalVar, Constructor)):
                return new
            if isinstance(old, Call) and calls(old, ON_DEVICE) and isinstance(new, Call):
                return self._copied(old.args[0], new.args[0], self.device_of(old))
            if isinstance(old, Call) and calls(old, DEVICE_COPY) and isinstance(new, Call):
                return self._copied(old.args[0], new.args[0], self.device_of(old))
            if isinstance(old, Function) and isinstance(new, Function) and not is_primitive(old):
                new = new.with_attr({
                    PARAM_DEVICES: tuple([self.device_of(p) for p in old.params]),
                    RESULT_DEVICE: self.device_of(old.body),
                })  # fmt: skip
            elif not isinstance(old, Function):
                set_virtual_device(new, self.device_of(old))
            return new

        return rewrite_function(func, rewrite)

    def _copied(self, old: RelayExpr, new: RelayExpr, target: VirtualDevice) -> RelayExpr:
        source = self.device_of(old)
        if _same(source, target):
            return new
        copy = DEVICE_COPY(new, src_virtual_device=source, dst_virtual_device=target)
        set_virtual_device(copy, target)
        return copy


def PlanDevices(config: CompilationConfig) -> Pass:
    """The pass; the configuration says which devices are the default and the host's."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        mod = infer_types(mod)
        planner = _Planner(mod, config)
        functions = {
            gvar: planner.rewritten(func) if isinstance(func, Function) else func
            for gvar, func in mod.functions.items()
        }
        return infer_types(mod.with_functions(functions))

    return ModulePass(run, PassInfo(0, "PlanDevices"))
