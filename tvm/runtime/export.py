"""Writing a module and all that it imports as one library.

    code of each module       ->  lib0.o, lib1.o   \
    the other modules' bytes  ->  devc.o            >  library
    files of the user                              /
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm._ffi.libinfo import find_include_path
from tvm._ffi.registry import get_global_func
from tvm.contrib import cc, tar
from tvm.elf.objects import data_object, is_elf
from tvm.support.files import replacing

if TYPE_CHECKING:
    from tvm.runtime.module import Module

BLOB = "__tvm_dev_mblob"


def collect_modules(root: Module) -> list[Module]:
    """The module and all that it imports, each once, in order of discovery."""
    found: dict[Module, None] = {}
    stack = [root]
    while stack:
        module = stack.pop()
        if module not in found:
            found[module] = None
            stack.extend(reversed(module.imported_modules))
    return list(found)


def system_lib_prefix(modules: Sequence[Module]) -> str | None:
    """The prefix under which modules become part of a system library; None if they do not."""
    prefixes = set()
    for module in modules:
        if module.type_key == "llvm" and _fact(module, "__tvm_is_system_module"):
            prefixes.add(_fact(module, "__tvm_get_system_lib_prefix") or "")
    if len(prefixes) > 1:
        raise ValueError(f"modules of one library need one prefix, got {sorted(prefixes)}")
    return prefixes.pop() if prefixes else None


def _fact(module: Module, name: str) -> Any:
    return module.get_function(name)() if module.implements_function(name) else None


def export(
    root: Module,
    file_name: str,
    folder: Path,
    fcompile: Callable[..., Any] | None,
    fpack_imports: Callable[..., str] | None,
    addons: Sequence[str],
    options: dict[str, Any],
) -> Any:
    """Write the objects to ``folder``, and link them; what the linking function returns."""
    modules = collect_modules(root)
    prefix = system_lib_prefix(modules)
    link = fcompile or _linker_for(file_name)
    if getattr(link, "need_system_lib", False) and prefix is None:
        raise ValueError(
            f"{getattr(link, '__name__', link)} links system libraries: build with "
            'runtime=Runtime("cpp", {"system-lib": True})'
        )
    files = [*addons, *_write_objects(modules, folder, getattr(link, "object_format", None))]
    # of what a module imports the library says which of it was code, too
    if root.imported_modules or any(not module.is_dso_exportable for module in modules):
        pack = fpack_imports or _pack_imports
        files.append(pack(root, prefix is not None, prefix or "", str(folder)))
    if not file_name.endswith(".tar") and any(module.type_key == "c" for module in modules):
        given = options.get("options") or []
        given = [given] if isinstance(given, str) else list(given)
        options = {**options, "options": [*given, *(f"-I{path}" for path in find_include_path())]}
    with replacing(file_name) as new:
        result = link(str(new), files, **options)
        if new.is_file():  # a damaged copy will be rejected
            get_global_func("runtime.StampLibrary")(str(new))
    return file_name if result == str(new) else result


def _linker_for(file_name: str) -> Callable[..., Any]:
    by_suffix: dict[str, Callable[..., Any]] = {
        ".tar": tar.tar,
        ".o": cc.create_object,
        ".a": cc.create_staticlib,
    }
    return by_suffix.get(Path(file_name).suffix, cc.create_shared)


def _write_objects(modules: Sequence[Module], folder: Path, object_format: str | None) -> list[str]:
    files: list[str] = []
    for module in modules:
        if module.is_dso_exportable:
            own = module.format or ("c" if module.type_key == "c" else "o")
            suffix = own if module.type_key == "c" else object_format or own
            path = folder / f"lib{len(files)}.{suffix}"
            module.save(str(path), suffix)
            files.append(str(path))
        elif not module.is_binary_serializable:
            raise RuntimeError(
                f"a module of type {module.type_key!r} cannot be exported: it is neither code that "
                "can be linked nor can it be saved as bytes"
            )
    return files


def packed_imports(root: Module) -> bytes:
    """The modules that are not code, as bytes."""
    return bytes(get_global_func("runtime.ModulePackImports")(root))


def imports_to_c(root: Module, is_system_lib: bool, prefix: str = "") -> str:
    """The same as the text of a C file that defines ``__tvm_dev_mblob``."""
    return _c_source(prefix + BLOB, _with_length(packed_imports(root)), bool(is_system_lib))


def _with_length(blob: bytes) -> bytes:
    return len(blob).to_bytes(8, "little") + blob


def _pack_imports(root: Module, is_system_lib: bool, prefix: str, folder: str) -> str:
    """Write the modules that are not code as data that will be linked; the file's path."""
    data = _with_length(packed_imports(root))
    objects = [path.read_bytes() for path in sorted(Path(folder).glob("lib*.o"))]
    like = next((code for code in objects if is_elf(code)), None)
    if like is not None:
        # code of a system library registers the data together with itself
        path = Path(folder) / f"{prefix}devc.o"
        path.write_bytes(data_object(prefix + BLOB, data, like))
        get_global_func("runtime.StampLibrary")(str(path))
    else:
        path = Path(folder) / f"{prefix}devc.c"
        path.write_text(_c_source(prefix + BLOB, data, is_system_lib))
    return str(path)


def _c_source(symbol: str, data: bytes, is_system_lib: bool) -> str:
    values = ",".join(map(str, data))
    registration = (
        "extern int TVMBackendRegisterSystemLibSymbol(const char*, void*);\n"
        "__attribute__((constructor)) static void __tvm_register_modules(void) {\n"
        f'  TVMBackendRegisterSystemLibSymbol("{symbol}", (void*){symbol});\n}}\n'
    )
    return (
        '#ifdef __cplusplus\nextern "C" {\n#endif\n'
        f"extern const unsigned char {symbol}[];\n"
        f"const unsigned char {symbol}[] = {{{values}}};\n"
        f"{registration if is_system_lib else ''}"
        "#ifdef __cplusplus\n}\n#endif\n"
    )
