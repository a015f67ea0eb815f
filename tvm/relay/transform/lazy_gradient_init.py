"""Make tensors of zeros and ones only where they are needed.

    add(zeros_like(%x), %g)    ->    @AddGradCell(add, Zero(fn () { zeros_like(%x) }), Raw(%g))

Each tensor of a function becomes a cell that holds it, or says how to make zeros or ones of its
shape: sums and products with those cost nothing. The function's own type stays.
"""

from __future__ import annotations

from tvm.error import TVMError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.type import TensorType, Type, TypeCall
from tvm.relay.analysis.infer import function_type_of, infer_type_of
from tvm.relay.expr import Call, Constant, Var
from tvm.relay.function import Function, is_opaque, relay_functions
from tvm.relay.library import add_library
from tvm.relay.op.registry import ops
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.transform.let_list import LetList
from tvm.relay.transform.lifting import TensorLifter, map_tensors
from tvm.relay.transform.operators import calls
from tvm.support import deep

_LIBRARY = "gradient.rly"


class _Lazy(TensorLifter):
    """Rewrites functions to functions on cells."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.cell = mod.get_global_type_var("GradCell")
        made = {c.name_hint: c for c in mod.type_definitions[self.cell].constructors}
        self.raw: Constructor = made["Raw"]
        self.one: Constructor = made["One"]
        self.zero: Constructor = made["Zero"]

    def wrapped(self, func: Function) -> Function:
        """The function on tensors, computed with cells."""
        inner = self.function(func)
        params = [Var(p.name_hint, infer_type_of(p)) for p in func.params]
        args = [self._lifted(p, p.type_annotation) for p in params]
        ret_type = function_type_of(func).ret_type
        lets = LetList()
        result = lets.push(Call(inner, args), None, "result")
        body = lets.get(self._plain(result, ret_type))
        return Function(params, body, ret_type, func.type_params, func.attrs)

    def lifted_tensor(self, ty: TensorType) -> Type:
        return TypeCall(self.cell, [ty])

    def constant(self, node: Constant) -> RelayExpr:
        return Call(self.raw, [node])

    def condition(self, value: RelayExpr) -> RelayExpr:
        return self._plain(value, TensorType((), "bool"))

    def operator(self, call: Call, args: list[Var], lets: LetList) -> RelayExpr:
        types = [infer_type_of(a, self.mod) for a in call.args]
        ty = infer_type_of(call, self.mod)
        if calls(call, ops.add, ops.multiply) and types[0] == ty and types[1] == ty:
            return self._combined(call, args, ty)
        plain = [self._plain(a, t) for a, t in zip(args, types, strict=True)]
        if calls(call, ops.zeros, ops.zeros_like):
            return Call(self.zero, [Function([], call.replace(args=tuple(plain)), ty)])
        if calls(call, ops.ones, ops.ones_like):
            return Call(self.one, [Function([], call.replace(args=tuple(plain)), ty)])
        value = lets.push(call.replace(args=tuple(plain)), ty, "y")
        return self._lifted(value, ty)

    def _combined(self, call: Call, args: list[Var], ty: Type) -> RelayExpr:
        a, b = Var("a", ty), Var("b", ty)
        compute = Function([a, b], call.replace(args=(a, b)), ty)
        name = "AddGradCell" if calls(call, ops.add) else "MultiplyGradCell"
        assert self.mod is not None
        return Call(self.mod.get_global_var(name), [compute, *args])

    def global_call(self, call: Call, args: list[RelayExpr], lets: LetList) -> RelayExpr:
        """Global functions stay functions on tensors."""
        types = [infer_type_of(a, self.mod) for a in call.args]
        named = [lets.push(a, None, "a") for a in args]
        plain = [self._plain(a, t) for a, t in zip(named, types, strict=True)]
        value = lets.push(call.replace(args=tuple(plain)), None, "y")
        return self._lifted(value, infer_type_of(call, self.mod))

    def global_value(self, gvar: GlobalVar) -> RelayExpr:
        ty = function_type_of(gvar, self.mod)
        params = [Var(f"x{i}", self.lifted_type(t)) for i, t in enumerate(ty.arg_types)]
        args = [self._plain(p, t) for p, t in zip(params, ty.arg_types, strict=True)]
        body = self._lifted(Call(gvar, args), ty.ret_type)
        return Function(params, body, self.lifted_type(ty.ret_type), ty.type_params)

    def _lifted(self, value: RelayExpr, ty: Type | None) -> RelayExpr:
        return self._converted(value, ty, self.raw)

    def _plain(self, value: RelayExpr, ty: Type | None) -> RelayExpr:
        assert self.mod is not None
        return self._converted(value, ty, self.mod.get_global_var("FromGradCell"))

    def _converted(self, value: RelayExpr, ty: Type | None, convert: RelayExpr) -> RelayExpr:
        """Every tensor of a value as an argument of `convert`."""

        def converted(part: RelayExpr, part_type: Type) -> RelayExpr:
            is_tensor = type(part_type) is TensorType
            return Call(convert, [part]) if is_tensor else self._same(part, part_type)

        return self._same(value, ty) if ty is None else map_tensors(value, ty, converted)

    def _same(self, value: RelayExpr, ty: Type | None) -> RelayExpr:
        if ty is None or self.lifted_type(ty) != ty:
            raise TVMError(
                f"LazyGradientInit requires tensors and tuples where functions meet, got {ty}"
            )
        return value


def LazyGradientInit() -> Pass:
    """The pass."""

    @deep
    def run(mod: IRModule, _: PassContext) -> IRModule:
        mod = infer_types(mod).clone()
        own = list(relay_functions(mod))
        add_library(mod, _LIBRARY)
        mod = infer_types(mod)
        for gvar in own:
            func = mod[gvar]
            if not is_opaque(func):
                mod[gvar] = _Lazy(mod).wrapped(func)
        return infer_types(mod)

    return ModulePass(run, PassInfo(1, "LazyGradientInit"))
