"""For which machines a program is compiled, and which of its kernels run where.

copied(mod)     before the graph passes: values are copied between devices where hints ask for it
assigned(mod)   after fusion: each kernel that is not for the main target has the attribute
                `place`, with the target that it is compiled for, and constants that it reads have a
                `virtual_device_`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm._ffi.runtime_ctypes import Device
from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.backend.kernels import PLACE
from tvm.relay.backend.target_hooks import is_external
from tvm.relay.expr import Call, Constant, ConstantWithFields, Tuple, TupleGetItem, Var
from tvm.relay.function import (
    Function,
    FunctionWithFields,
    is_opaque,
    is_primitive,
    relay_functions,
)
from tvm.relay.op.hints import on_device
from tvm.relay.op.registry import ops
from tvm.relay.transform import PlanDevices
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.device_domains import DeviceDomains, is_same_device
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import operands, post_order, rewrite_function, substitute, with_operands
from tvm.relay.with_fields import set_virtual_device
from tvm.runtime.device import device as make_device
from tvm.target import Target
from tvm.target.compilation_config import CompilationConfig, make_compilation_config
from tvm.target.ext_dev import code_target, placed_target
from tvm.target.virtual_device import VirtualDevice


@dataclass(frozen=True)
class Machines:
    """The targets of a build."""

    config: CompilationConfig

    @staticmethod
    def of(target: Any, target_host: Any = None) -> Machines:
        """Those that a program names; by default the current target.

        What a target of other compilers leaves is for its host.
        """
        given = Target.target_or_current(target) if target is None else target
        return Machines(
            make_compilation_config(
                PassContext.current(), _own_targets(_by_device(given), target_host), target_host
            )
        )

    @property
    def main(self) -> Target:
        """The target of all that is assigned to no other device."""
        found = self.config.default_primitive_virtual_device.target
        assert found is not None
        return found

    @property
    def is_one(self) -> bool:
        """Whether there is no other target."""
        return len(self.config.primitive_targets) == 1

    def copied(self, mod: IRModule, is_hosted: bool = False) -> IRModule:
        """The module with copies between devices, and without hints.

        With `is_hosted`, the parameters and the result of `main` live with the main target.
        """
        if self.is_one and not _has_hints(mod):
            return mod
        if is_hosted:
            mod = self._hosted(mod)
        planned = PlanDevices(self.config)(mod)
        mod = infer_types(map_relay_functions(planned, _without_hints))
        self._check(mod)
        return mod

    def assigned(self, mod: IRModule, before: IRModule, is_hosted: bool = False) -> IRModule:
        """The fused module with devices; `before` is what `copied` gave.

        With `is_hosted`, constants live with the main target, and are copied where they are used.
        """
        if self.is_one:
            return mod
        _restore_ends(mod, before)
        mod = infer_types(mod)
        assigner = _Assigner(DeviceDomains(mod, self.config), is_hosted)
        return infer_types(map_relay_functions(mod, assigner.run))

    def _hosted(self, mod: IRModule) -> IRModule:
        main = mod["main"]
        home = self.config.default_primitive_virtual_device
        params = [Var(p.name_hint, p.type_annotation) for p in main.params]
        values = [on_device(p, home) for p in params]
        body = substitute(main.body, dict(zip(main.params, values, strict=True)))
        body = on_device(body, home, constrain_result=True, constrain_body=False)
        func = main.replace(params=tuple(params), body=body)
        return mod.with_functions({**mod.functions, mod.get_global_var("main"): func})

    def _check(self, mod: IRModule) -> None:
        """Reject devices for which there is no target."""
        domains = DeviceDomains(mod, self.config)
        for func in relay_functions(mod).values():
            for node in post_order(func):
                if isinstance(node, Constant) or is_opaque(node):
                    continue
                place = domains.device_of(node)
                if all(not _is_for(t, place) for t in self.config.primitive_targets):
                    kind = Device.DEVICE_TYPE_TO_NAME.get(place.device_type_int)
                    kinds = ", ".join([str(t.kind) for t in self.config.primitive_targets])
                    raise OpNotImplemented(
                        f"a value is placed on {kind or place.device_type_int}, and the program is "
                        f"compiled for {kinds}",
                        at=node,
                        hint='target={"cpu": "llvm", "ext_dev": "ext_dev"} compiles for two devices',
                    )


def _is_for(target: Target, place: VirtualDevice) -> bool:
    return target.get_target_device_type() == place.device_type_int


def _by_device(given: Any) -> list[Target]:
    """The targets that a program gives as one, a list, or a mapping of devices to them."""
    if isinstance(given, Mapping) and "kind" not in given:
        return [placed_target(_device_type(key), value) for key, value in given.items()]
    return Target.canon_multi_target(given) or []


def _device_type(key: Any) -> int:
    if isinstance(key, Device):
        return key.device_type
    if isinstance(key, str):
        return make_device(key).device_type
    return int(getattr(key, "value", key))


def _own_targets(given: list[Target], target_host: Any) -> list[Target]:
    """Those that our own compiler generates code for, with their host."""
    given = Target.canon_multi_target_and_host(given, target_host)
    targets = [t for t in given if not is_external(t)]
    if targets:
        return [code_target(t) for t in dict.fromkeys(targets)]
    hosts = list(dict.fromkeys([t.host for t in given if t.host is not None]))
    if not hosts:
        names = ", ".join([t.kind.name for t in given])
        raise TVMError(
            f"relay.build requires a target for what {names} leaves",
            hint=f'Target("{given[0].kind.name}", host="llvm")',
        )
    return hosts


def _has_hints(mod: IRModule) -> bool:
    return any(
        calls(node, ops.on_device, ops.device_copy)
        for func in relay_functions(mod).values()
        for node in post_order(func)
    )


def _without_hints(func: Function) -> Function:
    def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if calls(new, ops.on_device):
            return new.args[0]
        if isinstance(new, Function):
            return FunctionWithFields(new, virtual_device=old.virtual_device_)
        return new

    return rewrite_function(func, rewrite, is_opaque)


def _restore_ends(mod: IRModule, before: IRModule) -> None:
    """Functions say again where their ends live: passes make new ones and do not know."""
    for gvar, old in before.functions.items():
        new = mod.functions.get(gvar)
        if not isinstance(old, Function) or not isinstance(new, Function) or is_opaque(old):
            continue
        if len(old.params) != len(new.params):
            continue
        set_virtual_device(new, old.virtual_device_)
        for param, known in zip(new.params, old.params, strict=True):
            set_virtual_device(param, known.virtual_device_)


class _Assigner:
    """Writes devices on kernels, constants and copies."""

    def __init__(self, domains: DeviceDomains, is_hosted: bool) -> None:
        self.domains = domains
        self.main = domains.config.default_primitive_virtual_device
        self.is_hosted = is_hosted
        self._constants: dict[tuple[int, str], RelayExpr] = {}

    def run(self, func: Function) -> Function:
        """The function with devices."""
        return func if is_opaque(func) else rewrite_function(func, self._rewrite, is_opaque)

    def _rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if is_opaque(old) or isinstance(old, Constant):
            return new
        new = self._with_constants(old, new)
        if isinstance(new, Function):
            return FunctionWithFields(new, virtual_device=old.virtual_device_)
        if not isinstance(old, Call) or not isinstance(new, Call):
            return new
        if calls(old, ops.device_copy):
            return _copies(new.args[0], new, old.checked_type)
        if is_primitive(new.op):
            place = self.domains.device_of(old)
            if not is_same_device(place, self.main):
                return new.replace(op=new.op.with_attr(PLACE, place))
        return new

    def _with_constants(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not any([isinstance(o, Constant) for o in operands(old)]):
            return new
        required = self.domains.required(old)
        below = [
            self._constant(after, self.domains.device(domain))
            if isinstance(after, Constant)
            else after
            for after, domain in zip(operands(new), required, strict=True)
        ]
        return with_operands(new, below)

    def _constant(self, constant: Constant, place: VirtualDevice) -> RelayExpr:
        if is_same_device(place, self.main):
            return constant
        key = id(constant), repr(place)
        if key not in self._constants:
            self._constants[key] = (
                ops.device_copy(constant, src_virtual_device=self.main, dst_virtual_device=place)
                if self.is_hosted
                else ConstantWithFields(constant, virtual_device=place)
            )
        return self._constants[key]


def _copies(value: RelayExpr, copy: Call, ty: Type) -> RelayExpr:
    """The copy of a value; that of a tuple is one of each field."""
    if isinstance(ty, TensorType):
        return copy.replace(args=(value,))
    if not isinstance(ty, TupleType):
        raise TVMError(
            f"device_copy requires tensors and tuples of them, got {ty}", at=copy,
            hint="build the value on the device where it is needed",
        )  # fmt: skip
    return Tuple([_copies(TupleGetItem(value, i), copy, t) for i, t in enumerate(ty.fields)])
