"""Functions that other compilers make: `relay.ext.<name>` turns each into a runtime module."""

from __future__ import annotations

from tvm._ffi import get_global_func
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.relay.function import Function
from tvm.runtime.module import Module


def external_functions(mod: IRModule) -> dict[str, Function]:
    """The functions of a module that our own compiler must leave alone, by name."""
    return {
        gvar.name_hint: func
        for gvar, func in mod.functions.items()
        if isinstance(func, Function) and func.attrs.get("Compiler")
    }


def compile_external(func: Function) -> Module:
    """The runtime module that the function's compiler makes of it.

    Its function of the name `global_symbol` is called with the inputs, then the outputs.
    """
    compiler = func.attrs["Compiler"]
    generate = get_global_func(f"relay.ext.{compiler}", allow_missing=True)
    if generate is None:
        raise TVMError(
            f"relay.build requires the code generator relay.ext.{compiler}",
            hint=f'register it: @tvm.register_func("relay.ext.{compiler}")',
        )
    made = generate(func)
    if not isinstance(made, Module):
        raise TVMError(
            f"relay.ext.{compiler} must return a runtime module, got {type(made).__name__}"
        )
    return made
