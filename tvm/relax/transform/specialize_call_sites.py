"""Loop programs know the shapes and the memory of the tensors that they are called with.

y = call_tir(f, (x,), Tensor((4,)))    ->    f(x: Buffer((4,)), y: Buffer((4,)))
f(x: Buffer((n,)), y: Buffer((n,)))          in the memory that the tensors' vdevices name
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.ir.transform import Pass
from tvm.ir.type import PointerType
from tvm.relax.expr import Call, Function, Tuple
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from tvm.tir import Buffer, IntImm, PrimFunc, Var

from .pass_kinds import whole_module_pass

_INPLACE = Op.get("relax.call_tir_inplace")
_CALLS = [Op.get("relax.call_tir"), Op.get("relax.call_tir_with_grad"), _INPLACE]


def SpecializePrimFuncBasedOnCallSite() -> Pass:
    """Give loop programs the shapes and memory scopes of the tensors that they are called with.

    A program that is called with tensors in several kinds of memory, or of several shapes, becomes several.

    Returns
    -------
    Pass
    """
    return whole_module_pass("SpecializePrimFuncBasedOnCallSite", _specialize)


def _specialize(mod: IRModule) -> IRModule:
    specializer = _Specializer(mod)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and not func.attrs.get("Primitive"):
            new = specializer.visit_expr(func)
            if new is not func:
                specializer.builder_.update_func(gvar, new)
    return specializer.builder_.get() if specializer.is_changed else mod


class _Specializer(ExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.is_changed = False
        # of each function, the first version in its place, further ones under other names
        self.versions: dict[GlobalVar, list[tuple[PrimFunc, GlobalVar]]] = {}

    def visit_call_(self, op: Call) -> Any:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or not any([call.op is known for known in _CALLS]):
            return call
        callee, inputs = call.args[:2]
        if not isinstance(callee, GlobalVar):
            return call
        func = self.mod.functions.get(callee)
        if not isinstance(func, PrimFunc) or not isinstance(inputs, Tuple):
            return call
        new = func.specialize(_call_site_buffers(func, _tensors(call, inputs)))
        gvar = self.version(callee, func, new)
        return call if gvar is callee else call.replace(args=[gvar, *call.args[1:]])

    def version(self, callee: GlobalVar, func: PrimFunc, new: PrimFunc) -> GlobalVar:
        """The name of a function for the buffers of a call."""
        known = self.versions.setdefault(callee, [])
        for other, gvar in known:
            if structural_equal(other, new):
                return gvar
        gvar = callee
        if known:
            gvar = self.builder_.add_func(new.without_attr("global_symbol"), callee.name_hint)
        elif new is not func:
            self.builder_.update_func(callee, new)
        self.is_changed |= new is not func
        known.append((new, gvar))
        return gvar


def _tensors(call: Call, inputs: Tuple) -> list[StructInfo | None]:
    """What the parameters of the callee are, in turn."""
    result = call.sinfo_args[0]
    results = list(result.fields) if isinstance(result, TupleStructInfo) else [result]
    places = call.attrs.inplace_indices if call.op is _INPLACE else [-1] * len(results)
    fresh = [info for info, place in zip(results, places, strict=True) if int(place) < 0]
    return [*[value.struct_info_ for value in inputs.fields], *fresh]


def _call_site_buffers(func: PrimFunc, infos: list[StructInfo | None]) -> Mapping[Var, Buffer]:
    found = {}
    for param, info in zip(func.params, infos, strict=False):
        declared = func.buffer_map.get(param)
        if declared is None or not isinstance(info, TensorStructInfo):
            continue
        new = _call_site_buffer(func, declared, info)
        if new is not declared:
            found[param] = new
    return found


def _call_site_buffer(func: PrimFunc, declared: Buffer, info: TensorStructInfo) -> Buffer:
    """A buffer with the extents that are known at the call, in the memory of the tensor."""
    new = declared
    dims = info.dimensions
    if dims is not None and len(dims) == len(declared.shape):
        new = new.replace(
            shape=tuple(
                [_extent(func, own, dim) for own, dim in zip(declared.shape, dims, strict=True)]
            )
        )
        if all([a is b for a, b in zip(new.shape, declared.shape, strict=True)]):
            new = declared
    scope = info.vdevice.memory_scope if info.vdevice is not None else "global"
    if scope == declared.scope():
        return new
    pointer = declared.data.type_annotation
    assert isinstance(pointer, PointerType)
    return new.replace(data=Var(declared.data.name, PointerType(pointer.element_type, scope)))


def _extent(func: PrimFunc, own: PrimExpr, given: PrimExpr) -> PrimExpr:
    # symbols of the caller are none of the callee, and scalars stay parameters
    if isinstance(own, Var) and own not in func.params and isinstance(given, IntImm):
        return IntImm(own.dtype, given.value)
    return own
