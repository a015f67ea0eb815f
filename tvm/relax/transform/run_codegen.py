"""Other compilers make runtime modules of the functions that are theirs.

@Codegen = "dnnl"
def f(x, w): ..                ->    external_mods = [module with f]
gv = f(x, w)                         gv = call_dps_packed("f", (x, w), Tensor(..))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm._ffi import get_global_func
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.variables import post_order_visit
from tvm.relax.expr import Call, Constant, ExternFunc, Function, Tuple, relax_functions
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.base import call_dps_packed
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray

from .dead_code import remove_unused_functions
from .pass_kinds import whole_module_pass

_HINTS = {
    "dnnl": "the runtime has it if it was built where oneDNN's headers were, Debian's libdnnl-dev",
    **dict.fromkeys(
        ["cublas", "cudnn", "cutlass", "hipblas", "tensorrt", "coreml", "nnapi", "clml"],
        "this release cannot generate code for it; without partitioning, the operators are compiled",
    ),
}


def external_functions(mod: IRModule) -> dict[GlobalVar, Function]:
    """The functions that other compilers take."""
    return {g: f for g, f in relax_functions(mod).items() if f.attrs.get("Codegen")}


def _symbol(func: Function) -> str:
    if not (symbol := func.attrs.get("global_symbol")):
        raise TVMError(
            f"a function for the compiler {func.attrs['Codegen']} requires a name, got none",
            at=func,
            hint='func.with_attr("global_symbol", "...")',
        )
    return str(symbol)


class _CallRewriter(ExprMutator):
    def __init__(self, mod: IRModule, symbols: Mapping[GlobalVar, str]) -> None:
        super().__init__(mod)
        self.symbols = symbols

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        symbol = self.symbols.get(call.op)
        if symbol is None:
            return call
        info = self.builder_.normalize(call).struct_info
        return call_dps_packed(ExternFunc(symbol), Tuple(call.args), info)


def constant_names(functions: Sequence[Function]) -> dict[Constant, str]:
    """Names of the constants in functions for other compilers."""
    names: dict[Constant, str] = {}

    for func in functions:
        prefix = f"{_symbol(func)}_{func.attrs['Codegen']}_const_"
        parts: list[RelayExpr] = []
        post_order_visit(func.body, parts.append)
        constants = dict.fromkeys([e for e in parts if isinstance(e, Constant)])
        names.update({c: f"{prefix}{i}" for i, c in enumerate(constants)})
    return names


def compile_external(
    functions: Sequence[Function],
    names: Mapping[Constant, str],
    options: Mapping[str, Mapping[str, Any]],
) -> list[Module]:
    """The runtime modules that compilers make of functions."""
    by_codegen: dict[str, list[Function]] = {}
    for func in functions:
        by_codegen.setdefault(str(func.attrs["Codegen"]), []).append(func)
    modules: list[Module] = []
    for codegen, own in by_codegen.items():
        generate = get_global_func(f"relax.ext.{codegen}", allow_missing=True)
        if generate is None:
            raise TVMError(
                f"RunCodegen requires the code generator relax.ext.{codegen}, there is none",
                hint=_HINTS.get(codegen, f'register it: @tvm.register_func("relax.ext.{codegen}")'),
            )
        made = generate(own, dict(options.get(codegen, {})), dict(names))
        for module in made:
            if not isinstance(module, Module):
                raise TVMError(
                    f"relax.ext.{codegen} must return runtime modules, got {type(module).__name__}"
                )
        modules += made
    return modules


def run_codegen(
    mod: IRModule,
    target_options: Mapping[str, Mapping[str, Any]],
    entry_functions: Sequence[str],
) -> IRModule:
    """The module with calls of runtime modules, which are its attribute ``external_mods``."""
    for name in entry_functions:
        mod.get_global_var(name)
    external = external_functions(mod)
    symbols = {gvar: _symbol(func) for gvar, func in external.items()}
    names = constant_names(list(external.values()))
    modules = compile_external(list(external.values()), names, target_options)
    rewriter = _CallRewriter(mod, symbols)
    functions = {
        g: rewriter.visit_expr(f) if isinstance(f, Function) and f.body is not None else f
        for g, f in mod.functions.items()
        if g not in external
    }
    new = mod.with_functions(functions)
    attrs = dict((mod.attrs or {}).items())
    if modules:
        known = list(attrs.get("external_mods", []))
        new = new.with_attr("external_mods", [*known, *modules])
    if names:
        arrays: dict[str, NDArray] = {name: c.data for c, name in names.items()}
        old = dict(attrs.get("const_name_to_constant", {}))
        new = new.with_attr("const_name_to_constant", {**old, **arrays})
    return remove_unused_functions(new, entry_functions) if external else new


def RunCodegen(
    target_options: Mapping[str, Mapping[str, Any]] | None = None,
    entry_functions: Sequence[str] | None = None,
) -> Pass:
    """Let other compilers make runtime modules of the functions with the attribute ``Codegen``.

    ``relax.ext.<codegen>(functions, options, constant_names)`` returns the modules, each with
    functions of the names of ``global_symbol`` that take inputs, then outputs.

    Parameters
    ----------
    target_options : dict of str to dict, optional
        Options of each compiler.
    entry_functions : list of str, optional
        Functions that stay, beside public ones.
    """
    options, entries = dict(target_options or {}), list(entry_functions or ())
    return whole_module_pass("RunCodegen", lambda mod: run_codegen(mod, options, entries))
