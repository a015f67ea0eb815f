"""The pass that lowers the fused functions of a program, each call on its own (classic name).

def @main(%a) {                             def @main(%a) {
  %0 = fn (%x, Primitive=1) { exp(%x) };      call_lowered(@m_fused_exp, (%a,), metadata={..})
  %0(%a)                              ->    }
}                                           @m_fused_exp = a function of loops

Builds go another way (`lowering.py`), which shares work between kernels.
"""

from __future__ import annotations

from typing import Any

from tvm._ffi import get_global_func, register_func
from tvm.error import TVMError
from tvm.ir.attrs import as_dict_attrs
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.analysis.symbolic import (
    DimensionPool,
    SymbolicKernel,
    is_dynamic_kernel,
    reads_values,
    symbolic_kernel,
)
from tvm.relay.backend.kernels import KernelCompiler, operators_of
from tvm.relay.backend.name_transforms import sanitize
from tvm.relay.backend.shape_function import ShapeFunctions
from tvm.relay.expr import Call, Tuple
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.call import CallLoweredAttrs
from tvm.relay.op.registry import ops
from tvm.relay.traverse import rewrite_function
from tvm.relay.ty import flat_types, is_dynamic
from tvm.runtime.module import Module
from tvm.target import Target
from tvm.target.compilation_config import CompilationConfig

_EXTERN = "Extern"
_NEEDS_VALUES, _NEEDS_SHAPE = 1, 2  # what a shape function is given of an argument


@register_func("relay.tec.LowerTE")
def LowerTE(module_name: str, config: CompilationConfig) -> Pass:
    """The pass.

    Parameters
    ----------
    module_name : the first part of the names of lowered functions.
    config : the targets of the build.
    """

    def run(mod: IRModule, _: PassContext) -> IRModule:
        return _Lowering(mod, f"{module_name}_" if module_name else "", config).module()

    return ModulePass(run, PassInfo(0, "LowerTE"))


class _Lowering:
    def __init__(self, mod: IRModule, prefix: str, config: CompilationConfig) -> None:
        self.mod = mod
        self.prefix = prefix
        self.config = config
        self.compilers: dict[str, KernelCompiler] = {}
        self.host_shapes = ShapeFunctions(config.host_target)
        self.dimensions = DimensionPool()
        self.made: dict[str, tuple[GlobalVar, BaseFunc]] = {}
        self.external: list[Module] = []

    def module(self) -> IRModule:
        """The module with calls of lowered functions, and those functions."""
        functions: dict[GlobalVar, BaseFunc] = {}
        for gvar, func in self.mod.functions.items():
            if isinstance(func, Function) and not _is_external(func):
                func = rewrite_function(func, self._lowered)
            functions[gvar] = func
        functions.update(dict(self.made.values()))
        found = IRModule(functions, self.mod.type_definitions, attrs=self.mod.attrs)
        return found.with_attr("external_mods", self.external) if self.external else found

    def _lowered(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not isinstance(new, Call):
            return new
        callee = new.op
        if isinstance(callee, GlobalVar):
            func = self.mod[callee]
            return self._call(callee, func, new, ()) if _is_external(func) else new
        if not is_primitive(callee):
            return new
        assert isinstance(old, Call) and isinstance(old.op, Function)
        if "Compiler" in callee.attrs:
            return self._call(self._external(callee), callee, new, ())
        gvar = self._kernel(old.op, self._target_of(old))
        return self._call(gvar, callee, new, (gvar,))

    def _call(
        self, gvar: GlobalVar, func: Function, call: Call, lowered: tuple[GlobalVar, ...]
    ) -> RelayExpr:
        metadata: dict[str, Any] = {"relay_attrs": func.attrs, "all_prim_fn_vars": list(lowered)}
        if is_dynamic_kernel(func) or is_dynamic(func.checked_type.ret_type):
            metadata.update(self._shape_function(func))
        attrs = CallLoweredAttrs(metadata=metadata)
        return Call(ops.call_lowered, [gvar, Tuple(list(call.args))], attrs, span=call.span)

    # ---- what is called

    def _target_of(self, call: Call) -> Target:
        place = call.virtual_device_
        if place is not None and place.target is not None:
            return Target(place.target)
        if self.config.optional_homogeneous_target is not None:
            return self.config.optional_homogeneous_target
        target = self.config.default_primitive_virtual_device.target
        assert target is not None
        return target

    def _kernel(self, func: Function, target: Target) -> GlobalVar:
        """The loops of a fused function."""
        typed = func.checked_type
        compiler = self.compilers.setdefault(
            str(target), KernelCompiler(target, self.prefix, False)
        )
        if is_dynamic_kernel(func):
            func = symbolic_kernel(func, self.dimensions).func
        kernel = compiler.lower(func)
        return self._global(kernel.name, kernel.func, typed)

    def _external(self, func: Function) -> GlobalVar:
        """The function as one that another compiler made, which is called now."""
        name = func.attrs.get("global_symbol")
        if name is None:
            raise TVMError(
                f"a function for the compiler {func.attrs['Compiler']} requires a name, got none",
                hint='func.with_attr("global_symbol", "...")',
            )
        generate = get_global_func(f"relay.ext.{func.attrs['Compiler']}", allow_missing=True)
        if generate is None:
            raise TVMError(
                f"LowerTE requires the code generator relay.ext.{func.attrs['Compiler']}"
            )
        if isinstance(made := generate(func), Module):
            self.external.append(made)
        marked = func.replace(attrs=as_dict_attrs({_EXTERN: 1}))
        return self._global(str(name), marked, func.checked_type)

    def _shape_function(self, func: Function) -> dict[str, Any]:
        """The shape function of a call, as the call's metadata tell it."""
        kernel: SymbolicKernel = symbolic_kernel(func, self.dimensions)
        names = "_".join([sanitize(op.name) for op in operators_of(func)])
        name = self.host_shapes.name_of(kernel, f"{self.prefix}shape_func_{names}")
        gvar = self._global(name, self.host_shapes.functions[name], None)
        states = [_NEEDS_VALUES if values else _NEEDS_SHAPE for values in reads_values(kernel)]
        return {
            "prim_shape_fn_var": gvar,
            "prim_shape_fn_states": states,
            "prim_shape_fn_num_inputs": len(states),
            "prim_shape_fn_num_outputs": len(flat_types(func.body.checked_type)),
            "all_prim_shape_fn_vars": [gvar],
        }

    def _global(self, name: str, func: BaseFunc, ty: Any) -> GlobalVar:
        if name not in self.made:
            self.made[name] = GlobalVar(name, ty), func
        return self.made[name][0]


def _is_external(func: BaseFunc) -> bool:
    return isinstance(func, Function) and bool(func.attrs.get(_EXTERN, 0))
