"""From a lowered module to machine code in this process.

PrimFuncs -> object code -> addresses -> runtime module
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.elf.objects import constants_object
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.runtime.module import Module, module_from_object, module_from_symbols
from tvm.target import Target

from .exports import Exports
from .foreign import foreign_to
from .loaded import LoadedObject, undefined_names
from .parts import Lowering, compile_module
from .system_lib import system_lib_prefix
from .versions import chosen_version, version_suffix, versions_note


def build_llvm(
    mod: IRModule,
    target: Target,
    versions: Sequence[tuple[Target, IRModule]] = (),
    lower: Lowering | None = None,
) -> Module:
    """A runtime module of type ``llvm`` for lowered host functions.

    Parameters
    ----------
    versions : sequence of (Target, IRModule)
        The same functions lowered for other processors; the loader takes the last that can run.
    lower : callable, optional
        What brings the functions to the convention of the target's host; they have it otherwise.
    """
    targets = [kind for kind, _ in versions]
    compiled = [(compile_module(mod, target, note=versions_note(targets), lower=lower), "")]
    for kind, other in versions:
        suffix = version_suffix(kind.mcpu)
        compiled.append((compile_module(other, kind, suffix), suffix))
    prefix = system_lib_prefix(mod)
    if versions:
        _check_versions(compiled[0][0].exports, prefix)
    codes = [part.object_code() for part, _ in compiled]
    exports = compiled[0][0].exports
    constants = {
        k: data for part, _ in compiled for k, data in part.exports.large_constants.items()
    }
    others = [*codes[1:], *([constants_object(constants, codes[0])] if constants else [])]
    foreign = foreign_to(exports.options.cpu)
    if exports.is_linked:
        foreign = foreign or "it is for programs that are linked with the C runtime"
    loaded, symbols = None, dict.fromkeys(exports.symbols(), 0)
    if not foreign:  # else it can be exported
        position = chosen_version(targets)
        number = 0 if position is None else position + 1
        objects = [codes[number], *others[len(versions) :]]
        foreign = _lacking(objects)
    if not foreign:
        loaded, symbols = _load(compiled[number][0].exports, objects, compiled[number][1])
    module = module_from_symbols(
        "llvm",
        symbols,
        object_code=codes[0],
        get_source=compiled[0][0].source,
        facts={
            "get_func_names": exports.functions,
            "_get_target_string": str(target),
            "__tvm_is_system_module": prefix is not None,
            "__tvm_get_system_lib_prefix": prefix,
        },
        foreign=foreign,
        keepalive=loaded,
    )
    for code in others:
        module.import_module(module_from_object(code))
    return module


def _check_versions(exports: Exports, prefix: str | None) -> None:
    if exports.is_linked or prefix is not None or exports.options.llvm_options:
        raise TVMError(
            "versions of kernels require a library that is loaded, got a system library, code for "
            "the C runtime or options of LLVM's own",
            hint="leave out -versions",
        )


def _lacking(objects: Sequence[bytes]) -> str:
    """Why code cannot run in this process that can be exported all the same; empty if it can."""
    missing = undefined_names(objects)
    if not missing:
        return ""
    return (
        f"compiled code calls {', '.join(missing)}, which no loaded library defines; load the "
        "library with ctypes.CDLL(path, ctypes.RTLD_GLOBAL) before tvm.build"
    )


def _load(
    exports: Exports, objects: Sequence[bytes], suffix: str
) -> tuple[LoadedObject, dict[str, int]]:
    """The code in this process, and where its functions and variables are."""
    names = {
        name: symbol + suffix if name in exports.functions else symbol
        for name, symbol in exports.symbols().items()
    }
    loaded = LoadedObject(objects, names.values(), exports.options.jit)
    return loaded, {name: loaded.address(symbol) for name, symbol in names.items()}
