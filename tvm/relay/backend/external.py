"""Functions that other compilers make: `relay.ext.<name>` turns each into a runtime module.

lib -> code that needs nothing, and a const_loader -> modules that need constants
const_loader -> lib, and C text that needs constants, which will be linked into it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import MappingProxyType

from tvm._ffi import get_global_func
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.relay.backend.target_hooks import compile_hooked, given_target, hooked_kind
from tvm.relay.expr import Call, Constant
from tvm.relay.function import Function, is_external_function, relay_functions
from tvm.relay.transform.compiler_functions import OutlineCompilerFunctionsWithExistingGlobalSymbols
from tvm.relay.traverse import post_order
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.target import Target


def external_functions(mod: IRModule) -> dict[str, Function]:
    """The functions of a module that our own compiler must leave alone, by name."""
    return {
        gvar.name_hint: func for gvar, func in mod.functions.items() if is_external_function(func)
    }


def outline_external(mod: IRModule) -> IRModule:
    """The module with its local functions for other compilers as global ones."""
    calls = [
        node.op
        for func in relay_functions(mod).values()
        for node in post_order(func)
        if type(node) is Call and is_external_function(node.op)
    ]
    if not calls:
        return mod
    for func in calls:
        if not func.attrs.get("global_symbol"):
            raise TVMError(
                f"a function for the compiler {func.attrs['Compiler']} requires a name, got none",
                hint='func.with_attr("global_symbol", "...")',
            )
    return OutlineCompilerFunctionsWithExistingGlobalSymbols()(mod)


@dataclass(frozen=True)
class ExternalCode:
    """What other compilers made, and the constants that their functions have, by name."""

    modules: tuple[Module, ...]
    constants: Mapping[str, NDArray]

    @staticmethod
    def of(
        mod: IRModule,
        target: Target,
        unpacked_api: bool = False,
        attrs: Mapping[str, object] = MappingProxyType({}),
    ) -> ExternalCode:
        """Call the compilers of a module's functions.

        Parameters
        ----------
        target : our own.
        unpacked_api : whether the functions are called with pointers to data; compilers see it as
            the function's attribute `unpacked_api`.
        attrs : what the runtime asks of modules of loops.
        """
        modules: list[Module] = []
        constants: dict[str, NDArray] = {}
        hooked: dict[str, list[Function]] = {}
        for func in external_functions(mod).values():
            if (kind := hooked_kind(func)) is not None:
                hooked.setdefault(kind, []).append(func)
                continue
            called = func.with_attr("unpacked_api", 1) if unpacked_api else func
            modules.append(compile_external(called))
            constants.update(external_constants(func))
        for kind, functions in hooked.items():
            called_as = {**attrs, "unpacked_api": unpacked_api}
            modules.append(compile_hooked(mod, kind, functions, target, called_as))
        return ExternalCode(tuple(modules), constants)

    @property
    def claimed(self) -> dict[str, NDArray]:
        """The constants that the modules ask for."""
        return {n: self._constant(n) for m in self.modules for n in _wanted(m) or ()}

    def check_for_c(self) -> None:
        """Reject what programs in C, which load no modules, cannot have."""
        for module in self.modules:
            if not module.is_dso_exportable or _wanted(module):
                reason = "asks for constants" if module.is_dso_exportable else "is no code"
                raise TVMError(
                    f'Runtime("crt") requires code that is whole; a module of type '
                    f"{module.type_key!r} that another compiler made {reason}",
                    hint='Runtime("cpp") loads it',
                )

    def link(self, lib: Module | None) -> Module:
        """A library with all functions: `lib`, which calls the others, or what imports it.

        Without `lib` there are no other functions.
        """
        inside: list[Module] = []
        around: list[Module] = []
        called: list[Module] = []
        for module in self.modules:
            wanted = _wanted(module)
            if module.is_dso_exportable and wanted:
                around.append(module)
            elif wanted is not None and not module.is_dso_exportable:
                inside.append(module)
            else:
                called.append(module)
        if inside:
            called.append(self._loader(inside))
        if lib is None and called:
            lib = called.pop(0)
        for module in called:
            assert lib is not None
            lib.import_module(module)
        if not around:
            assert lib is not None
            return lib
        outer = self._loader(around)
        for module in around if lib is None else (lib, *around):
            outer.import_module(module)
        return outer

    def _loader(self, modules: Sequence[Module]) -> Module:
        needs = {str(m["get_symbol"]()): _wanted(m) or [] for m in modules}
        arrays = {name: self._constant(name) for names in needs.values() for name in names}
        loader: Module = get_global_func("runtime.ConstLoaderModuleCreate")(arrays, needs)
        for module in modules:
            if not module.is_dso_exportable:
                loader.import_module(module)
        return loader

    def _constant(self, name: str) -> NDArray:
        found = self.constants.get(name)
        if found is None:
            raise TVMError(
                f"a module of another compiler asks for the constant {name!r}, "
                f"its functions have {list(self.constants)}",
                hint="relay.ext.<compiler>.constant_updater returns the constants by name",
            )
        return found


def _wanted(module: Module) -> list[str] | None:
    """The constants that a module asks for; None if it does not say."""
    if not module.implements_function("get_const_vars"):
        return None
    if not module.implements_function("get_symbol"):
        return None
    return [str(name) for name in module["get_const_vars"]()]


def external_constants(func: Function) -> dict[str, NDArray]:
    """The constants of a function by name, as its compiler's `constant_updater` gives them."""
    compiler, symbol = func.attrs["Compiler"], str(func.attrs["global_symbol"])
    update = get_global_func(f"relay.ext.{compiler}.constant_updater", allow_missing=True)
    if update is not None:
        return {str(name): value for name, value in dict(update(func, symbol)).items()}
    constants = [node for node in post_order(func.body) if isinstance(node, Constant)]
    return {f"{symbol}_const_{i}": node.data for i, node in enumerate(constants)}


_HINTS = {
    "dnnl": "the runtime has it if it was built where oneDNN's headers were, Debian's libdnnl-dev",
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
            hint=_HINTS.get(compiler, f'register it: @tvm.register_func("relay.ext.{compiler}")'),
        )
    # the compiler's own target, where the build was given one, tells its options
    with given_target(str(compiler)) or nullcontext():
        made = generate(func)
    if not isinstance(made, Module):
        raise TVMError(
            f"relay.ext.{compiler} must return a runtime module, got {type(made).__name__}"
        )
    return made
