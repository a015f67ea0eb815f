"""Which values of a program must live together, and where.

The value of every expression belongs to a domain; a function's domain has one for each parameter
and one for the result. The operands and the result of an operator share a domain, as do the branches of an
`if`, and what a variable is bound to. `on_device` and `device_copy` part the domain before them
from the one after. Functions say where their parameters and results live (`virtual_device_`).
Domains that nobody says anything about live on the default device. Constants live wherever they
are used. What is said of devices comes first: an operand that lives elsewhere than its operator by
then is copied.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from tvm.error import TVMError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.type import FuncType, Type
from tvm.ir.visitor import ContextVisitor
from tvm.relay.adt import Match
from tvm.relay.expr import Call, Constant, If, Let, Var
from tvm.relay.function import Function, is_opaque, relay_functions
from tvm.relay.op.memory.memory import ALLOC_STORAGE, ALLOC_TENSOR
from tvm.relay.op.registry import ops
from tvm.relay.op.vm.vm import RESHAPE_TENSOR, SHAPE_FUNC, SHAPE_OF
from tvm.relay.transform.operators import calls, is_operator_call
from tvm.relay.traverse import operands, post_order, split_lets
from tvm.target.compilation_config import CompilationConfig
from tvm.target.virtual_device import VirtualDevice


class Domain:
    """Values that live together; joined domains share their root."""

    def __init__(self, ty: Type | None = None) -> None:
        self.parent: Domain | None = None
        self.device: VirtualDevice | None = None
        self.params: tuple[Domain, ...] = ()
        self.result: Domain | None = None  # of functions
        if type(ty) is FuncType:
            self.params = tuple([Domain(arg) for arg in ty.arg_types])
            self.result = Domain(ty.ret_type)

    def root(self) -> Domain:
        domain = self
        while domain.parent is not None:
            if domain.parent.parent is not None:
                domain.parent = domain.parent.parent
            domain = domain.parent
        return domain

    def value(self) -> Domain:
        """The root of what a function gives in the end; that of the domain itself if it has none."""
        domain = self.root()
        while domain.result is not None:
            domain = domain.result.root()
        return domain


class DeviceDomains(ContextVisitor):
    """The domains of a typed module."""

    def __init__(self, mod: IRModule, config: CompilationConfig) -> None:
        self.mod = mod
        self.config = config
        self.params: set[int] = set()  # of functions, by identity
        self._domains: dict[int, Domain] = {}
        main = config.default_primitive_virtual_device
        self._devices = {repr(main): main}  # one object for equal devices
        self._kept: list[RelayExpr] = []  # so that ids stay theirs
        self._copied: set[tuple[int, int]] = set()  # calls of operators and operands elsewhere
        conditions: list[If] = []
        hints: list[Call] = []
        computations: list[Call] = []
        for func in relay_functions(mod).values():
            for node in () if is_opaque(func) else _evaluated(func):
                if self._is_computation(node):
                    computations.append(node)
                    continue
                self._constrain(node)
                if type(node) is If:
                    conditions.append(node)
                elif type(node) is Function:
                    self.params.update([id(p) for p in node.params])
                    hints += _hints_of_result(node)
        for call in computations:
            self._compute(call)
        for node in conditions:  # the host decides, unless the value is elsewhere
            condition = self.of(node.cond).value()
            condition.device = condition.device or config.host_virtual_device
        for hint in hints:
            self._spread(hint)

    def _spread(self, hint: Call) -> None:
        """A result without a device of its own lives where it was computed."""
        before, after = self.of(hint.args[0]), self.of(hint)
        if after.value().device is None:
            self._join(before, after, hint)

    def of(self, node: RelayExpr) -> Domain:
        """The domain that the value of a node belongs to."""
        if type(node) is GlobalVar:
            node = self.mod[node]
        if id(node) not in self._domains:
            self._kept.append(node)
            self._domains[id(node)] = Domain(getattr(node, "_checked_type_", None))
        return self._domains[id(node)]

    def device_of(self, node: RelayExpr) -> VirtualDevice:
        """Where the value of a node lives; for a function, where its result does."""
        return self.device(self.of(node))

    def device(self, domain: Domain) -> VirtualDevice:
        """Where the values of a domain live."""
        return domain.value().device or self.config.default_primitive_virtual_device

    def is_copied(self, node: RelayExpr, operand: RelayExpr) -> bool:
        """Whether an operator needs a copy of an operand, which others need where it is."""
        return (id(node), id(operand)) in self._copied

    def required(self, node: RelayExpr) -> list[Domain]:
        """The domain that each operand of a node must belong to."""
        domains: list[Domain] = self.visit(node)
        return domains

    def visit_relay_expr(self, node: RelayExpr) -> list[Domain]:
        return [self.of(node) for _ in operands(node)]

    def visit_function(self, node: Function) -> list[Domain]:
        own = self.of(node).root()
        assert own.result is not None
        return [*own.params, own.result]

    def visit_call(self, node: Call) -> list[Domain]:
        return [self.of(node.op), *self._arguments(node)]

    def visit_let(self, node: Let) -> list[Domain]:
        return [self.of(node.var), self.of(node.var), self.of(node)]

    def visit_if(self, node: If) -> list[Domain]:
        return [self.of(node.cond), self.of(node), self.of(node)]

    def visit_match(self, node: Match) -> list[Domain]:
        data, own = self.of(node.data), self.of(node)
        clauses = [[*[data for _ in c.lhs.bound_vars()], own] for c in node.clauses]
        return [data, *[domain for clause in clauses for domain in clause]]

    def _arguments(self, call: Call) -> list[Domain]:
        own = self.of(call)
        attrs: Any = call.attrs
        if calls(call, ops.on_device):
            return [self._at(attrs.virtual_device if attrs.constrain_body else None)]
        if calls(call, ops.device_copy):
            return [self._at(attrs.src_virtual_device)]
        if calls(call, ALLOC_STORAGE, SHAPE_FUNC):
            return [self._host() for _ in call.args]
        if calls(call, SHAPE_OF):
            return [Domain()]
        if calls(call, ALLOC_TENSOR, RESHAPE_TENSOR):
            return [own, *[self._host() for _ in call.args[1:]]]
        callee = self.of(call.op).root() if self._is_function(call.op) else None
        if callee is not None and callee.result is not None:
            return list(callee.params)
        return [own for _ in call.args]

    def _is_function(self, callee: RelayExpr) -> bool:
        """Whether the callee has devices of its own; kernels run where their arguments are."""
        if isinstance(callee, (Op, Constructor)):
            return False
        return not is_opaque(self.mod[callee] if type(callee) is GlobalVar else callee)

    def _constrain(self, node: RelayExpr) -> None:
        for operand, domain in zip(operands(node), self.required(node), strict=True):
            if not isinstance(operand, (Constant, Op, Constructor)):
                self._join(domain, self.of(operand), node)
        if isinstance(node, (Var, Function)) and node.virtual_device_ is not None:
            self._assign(self.of(node), node.virtual_device_, node)
        if type(node) is Call:
            self._result(node)

    def _is_computation(self, node: RelayExpr) -> TypeGuard[Call]:
        """Whether a node is an operator whose operands are where its result is."""
        if not is_operator_call(node):
            return False
        own = self.of(node)
        return all([domain is own for domain in self._arguments(node)])

    def _compute(self, call: Call) -> None:
        own = self.of(call)
        for arg in call.args:
            if isinstance(arg, (Constant, Op, Constructor)):
                continue
            here, there = own.root(), self.of(arg).root()
            if self._are_apart(here, there):
                self._copied.add((id(call), id(arg)))
            else:
                self._join(own, there, call)

    def _are_apart(self, a: Domain, b: Domain) -> bool:
        if a.result is not None or b.result is not None or a.device is None or b.device is None:
            return False
        return _merged(a.device, b.device) is None

    def _result(self, call: Call) -> None:
        """Where the value of a call lives."""
        attrs: Any = call.attrs
        own = self.of(call)
        if calls(call, ops.on_device):
            if attrs.constrain_body and type(call.args[0]) is not Constant:
                self._assign(self.of(call.args[0]), attrs.virtual_device, call)
            if attrs.constrain_result:
                self._assign(own, attrs.virtual_device, call)
        elif calls(call, ops.device_copy):
            self._assign(own, attrs.dst_virtual_device, call)
        elif calls(call, SHAPE_OF, SHAPE_FUNC):
            self._join(own, self._host(), call)
        elif calls(call, ALLOC_STORAGE):
            if attrs.virtual_device is not None:
                self._assign(own, attrs.virtual_device, call)
        elif self._is_function(call.op):
            callee = self.of(call.op).root()
            self._join(own, callee.result or callee, call)

    def _at(self, device: VirtualDevice | None) -> Domain:
        domain = Domain()
        if device is not None:
            canonical = self.config.canonical_virtual_device(device)
            domain.device = self._devices.setdefault(repr(canonical), canonical)
        return domain

    def _host(self) -> Domain:
        return self._at(self.config.host_virtual_device)

    def _assign(self, domain: Domain, device: VirtualDevice, at: RelayExpr) -> None:
        self._join(domain.value(), self._at(device), at)

    def _join(self, a: Domain, b: Domain, at: RelayExpr) -> None:
        a, b = a.root(), b.root()
        if a is b:
            return
        if (a.result is None) != (b.result is None):
            self._collapse(*((b, a) if a.result is None else (a, b)), at)
            return
        if a.device is not None and b.device is not None:
            a.device = _joined(a.device, b.device, at)
        b.parent = a
        a.device = a.device or b.device
        if a.result is not None and b.result is not None:
            for first, second in zip((*a.params, a.result), (*b.params, b.result), strict=True):
                self._join(first, second, at)

    def _collapse(self, function: Domain, plain: Domain, at: RelayExpr) -> None:
        """A function in a tuple, a cell or a value of a data type lives where that does."""
        assert function.result is not None
        for part in (*function.params, function.result):
            self._join(plain, part, at)


def _hints_of_result(func: Function) -> list[Call]:
    _, result = split_lets(func.body)
    if calls(result, ops.on_device) and type(result.args[0]) is not Constant:
        return [result]
    return []


def _evaluated(func: Function) -> list[RelayExpr]:
    """Every expression of a function, operands first, but what is inside of kernels."""
    return [n for n in post_order(func, is_opaque=is_opaque) if not is_opaque(n)]


def is_same_device(a: VirtualDevice, b: VirtualDevice) -> bool:
    """Whether two virtual devices are one; fields that are left open fit any."""
    return _merged(a, b) is not None


def _merged(a: VirtualDevice, b: VirtualDevice) -> VirtualDevice | None:
    """Both virtual devices as one; None if they differ."""
    if a is b:
        return a
    numbers = {a.virtual_device_id, b.virtual_device_id} - {-1}
    scopes = {a.memory_scope, b.memory_scope} - {""}
    targets = [t for t in (a.target, b.target) if t is not None]
    is_one_target = len({str(target) for target in targets}) < 2  # whatever their hosts
    kinds = {a.device_type_int, b.device_type_int} - {-1}
    if len(kinds) > 1 or len(numbers) > 1 or len(scopes) > 1 or not is_one_target:
        return None
    return a if b.target is None or (a.target is not None and a.target.host is not None) else b


def _joined(a: VirtualDevice, b: VirtualDevice, at: RelayExpr) -> VirtualDevice:
    merged = _merged(a, b)
    if merged is None:
        raise TVMError(
            f"PlanDevices requires one device for a value, got {_text(a)} and {_text(b)}"
            + (f" for {a.target} and {b.target}" if _text(a) == _text(b) else ""),
            at=at,
            hint="part them with relay.annotation.on_device or relay.device_copy",
        )
    return merged


def _text(device: VirtualDevice) -> str:
    return f"device {device.device_type_int}({max(device.virtual_device_id, 0)})"
