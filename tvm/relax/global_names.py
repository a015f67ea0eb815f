"""Names of functions: public ones have that of their ``global_symbol``, and no two the same."""

from __future__ import annotations

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.replace_global_vars import GlobalVarReplacer
from tvm.ir.supply import NameSupply
from tvm.support import deep


@deep
def with_symbol_names(mod: IRModule) -> IRModule:
    """The module with public functions under the names of their ``global_symbol``.

    Private functions that have such a name get another one. The same module if all names agree.

    Raises
    ------
    ValueError
        If two functions have one ``global_symbol``.
    """
    supply = NameSupply()
    public: dict[str, GlobalVar] = {}
    for gvar, func in mod.functions_items():
        symbol = func.attrs.get("global_symbol")
        if symbol is not None:
            if str(symbol) in public:
                raise ValueError(f"two functions have the global_symbol {symbol!r}")
            public[str(symbol)] = gvar
            supply.reserve_name(str(symbol))
    names: dict[GlobalVar, GlobalVar] = {}
    for symbol, gvar in public.items():
        if symbol != gvar.name_hint:
            names[gvar] = gvar.renamed(symbol)
    owners = {id(g) for g in public.values()}
    for gvar, _ in mod.functions_items():
        if id(gvar) not in owners:
            if supply.contains_name(gvar.name_hint):
                names[gvar] = gvar.renamed(supply.fresh_name(gvar.name_hint))
            else:
                supply.reserve_name(gvar.name_hint)
    if not names:
        return mod
    renamer = GlobalVarReplacer(names)
    functions = {names.get(g, g): renamer.visit(f) for g, f in mod.functions.items()}
    return mod._with(functions)
