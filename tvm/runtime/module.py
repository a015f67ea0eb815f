"""Modules: compiled or loaded functions, and the modules they import."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tvm._ffi import _core
from tvm._ffi._core import ModuleBase
from tvm._ffi.registry import get_global_func
from tvm._ffi.runtime_ctypes import Device
from tvm.contrib import cc
from tvm.contrib import tar as _tar
from tvm.contrib import utils as _utils
from tvm.error import RuntimeAttributeError
from tvm.runtime.benchmark import BenchmarkResult, make_time_evaluator
from tvm.runtime.export import collect_modules, export
from tvm.runtime.object import Object
from tvm.runtime.packed_func import PackedFunc
from tvm.support.deprecation import warn_renamed
from tvm.support.files import replacing


class ModulePropertyMask:
    """What a module can do."""

    BINARY_SERIALIZABLE = 0b001
    RUNNABLE = 0b010
    DSO_EXPORTABLE = 0b100


def _native(name: str, *args: Any) -> Any:
    return get_global_func(f"runtime.{name}")(*args)


class Module(ModuleBase, Object):
    """Functions that were compiled together, callable by name: ``module["name"](...)``.

    Calling the module calls its entry function.
    """

    __slots__ = ("_entry",)

    entry_name = "__tvm_main__"

    @property
    def entry_func(self) -> PackedFunc:
        """The function that calling the module calls."""
        entry: PackedFunc | None = getattr(self, "_entry", None)
        if entry is None:
            entry = self._entry = self.get_function(self.entry_name)
        return entry

    def __call__(self, *args: Any) -> Any:
        try:
            entry = self._entry
        except AttributeError:
            entry = self.entry_func
        return entry(*args)

    def same_as(self, other: object) -> bool:
        """Whether both are the very same module."""
        return self == other

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether the module has a function of that name."""
        return bool(_native("ModuleImplementsFunction", self, name, query_imports))

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """The function of that name.

        Parameters
        ----------
        name : str
            Its name.
        query_imports : bool
            Whether to look into imported modules too.
        """
        func: PackedFunc = self._find_function(name, query_imports)
        if func is None:
            raise RuntimeAttributeError(f"the module has no function {name!r}")
        return func

    def __getitem__(self, name: str) -> PackedFunc:
        if not isinstance(name, str):
            raise ValueError(f"a module's functions are found by name, got {type(name).__name__}")
        return self.get_function(name)

    def import_module(self, module: Module) -> None:
        """Let the functions of this module call those of another."""
        self._import(module)

    @property
    def type_key(self) -> str:
        """The kind of module: ``llvm``, ``library``, ``GraphExecutorFactory`` ..."""
        return str(_native("ModuleGetTypeKey", self))

    @property
    def format(self) -> str:
        """The form in which the module saves itself."""
        return str(_native("ModuleGetFormat", self))

    def get_source(self, fmt: str = "") -> str:
        """The module's code as text; ``fmt`` chooses a form, such as ``"ll"`` or ``"asm"``."""
        return str(_native("ModuleGetSource", self, fmt))

    @property
    def imported_modules(self) -> list[Module]:
        """The modules that this one imports."""
        return [
            _native("ModuleGetImport", self, i) for i in range(_native("ModuleImportsSize", self))
        ]

    def _collect_from_import_tree(self, filter_func: Callable[[Module], bool]) -> list[Module]:
        """This module and all that it imports, each once, as far as the filter holds."""
        return [module for module in collect_modules(self) if filter_func(module)]

    def _collect_dso_modules(self) -> list[Module]:
        """The modules whose code is linked into a library."""
        return self._collect_from_import_tree(lambda module: module.is_dso_exportable)

    def clear_imports(self) -> None:
        """Forget all imported modules."""
        _native("ModuleClearImports", self)

    def get_property_mask(self) -> int:
        """The bits of :class:`ModulePropertyMask`."""
        return int(_native("ModuleGetPropertyMask", self))

    @property
    def is_binary_serializable(self) -> bool:
        """Whether the module can become bytes in a library."""
        return bool(self.get_property_mask() & ModulePropertyMask.BINARY_SERIALIZABLE)

    @property
    def is_runnable(self) -> bool:
        """Whether its functions can be called."""
        return bool(self.get_property_mask() & ModulePropertyMask.RUNNABLE)

    @property
    def is_dso_exportable(self) -> bool:
        """Whether its code can be linked into a library."""
        return bool(self.get_property_mask() & ModulePropertyMask.DSO_EXPORTABLE)

    @property
    def is_device_module(self) -> bool:
        """Whether its code runs on an accelerator."""
        return self.type_key in ("cuda", "opencl", "metal", "hip", "vulkan", "webgpu")

    def save(self, file_name: str, fmt: str = "") -> None:
        """Write this module, without its imports, to a file."""
        form = fmt or Path(file_name).suffix[1:]
        with replacing(file_name) as path:
            _native("ModuleSaveToFile", self, str(path), form)
            if form == "o":
                _native("StampLibrary", str(path))

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
        *,
        ctx: Device | None = None,
    ) -> Callable[..., BenchmarkResult]:
        """A function that takes the arguments of ``func_name`` and measures it.

        Parameters
        ----------
        func_name : str
            The function to measure; empty for the entry function.
        dev : Device
            Where it runs.
        number : int
            Calls in one measurement, of which the mean counts.
        repeat : int
            Measurements.
        min_repeat_ms : int
            ``number`` grows until one measurement takes this long.
        limit_zero_time_iterations : int
            After how many measurements of no time at all to stop growing it.
        cooldown_interval_ms : int
            Pause between measurements.
        repeats_to_cooldown : int
            Measurements between two pauses.
        cache_flush_bytes : int
            Memory to write before each measurement, so that caches are cold.
        f_preproc : str
            A global function that is called with the arguments before each measurement.
        ctx : Device, optional
            The name of ``dev`` in older releases.
        """
        if ctx is not None:
            warn_renamed("time_evaluator(ctx=...)", "time_evaluator(dev=...)")
            dev = ctx
        if dev is None:
            raise TypeError("time_evaluator requires dev, the device that the function runs on")
        return make_time_evaluator(
            self, func_name, dev, number, repeat, min_repeat_ms, limit_zero_time_iterations,
            cooldown_interval_ms, repeats_to_cooldown, cache_flush_bytes, f_preproc,
        )  # fmt: skip

    def benchmark(
        self,
        device: Device,
        *args: Any,
        func_name: str = "",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> BenchmarkResult:
        """Measure one function with the given arguments.

        Parameters
        ----------
        device : Device
            Where it runs.
        args : tuple
            The function's arguments.
        func_name : str
            The function; empty for the entry function.
        repeat, number, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
        repeats_to_cooldown : int
            As for :meth:`time_evaluator`.
        """
        measure = self.time_evaluator(
            func_name, device, number, repeat, min_repeat_ms, limit_zero_time_iterations,
            cooldown_interval_ms, repeats_to_cooldown,
        )  # fmt: skip
        return measure(*args)

    def export_library(
        self,
        file_name: str | Path,
        *,
        fcompile: Callable[..., Any] | None = None,
        fpack_imports: Callable[..., str] | None = None,
        addons: list[str] | None = None,
        workspace_dir: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Write the module and all its imports as one library.

        Parameters
        ----------
        file_name : str
            The library: ``.so``, or ``.o``, ``.a`` and ``.tar`` for objects to be linked later.
        fcompile : callable, optional
            ``fcompile(file_name, files, **kwargs)`` links; the default calls the C++ compiler. Its
            attribute ``object_format`` chooses the form of the code: ``"o"``, ``"s"``, ``"bc"``.
        fpack_imports : callable, optional
            ``fpack_imports(module, is_system_lib, prefix, folder)`` writes the imports to a file.
        addons : list of str, optional
            More files to link.
        workspace_dir : str, optional
            A folder for the objects, kept afterwards.
        kwargs : dict
            Passed to ``fcompile``, for example ``options`` and ``cc``.
        """
        with _utils.kept_folder(Path(workspace_dir) if workspace_dir else None) as folder:
            return export(
                self, os.fspath(file_name), folder, fcompile, fpack_imports, addons or [], kwargs
            )

    def __repr__(self) -> str:
        return f"Module({self.type_key}, {self.handle.value or 0:#x})"


_core.set_classes(module=Module)


def module_from_symbols(
    type_key: str,
    symbols: Mapping[str, int],
    *,
    object_code: bytes = b"",
    get_source: Callable[[str], str | bytes] | None = None,
    facts: Mapping[str, object] | None = None,
    foreign: str = "",
    keepalive: object = None,
) -> Module:
    """A module of code that is in this process's memory.

    Parameters
    ----------
    type_key : str
        The kind of module.
    symbols : mapping of str to int
        The address of each packed function and of the context slots (``__TVMFuncCall`` ...), which
        are filled here.
    object_code : bytes
        The same code as an object file, for export.
    get_source : callable
        ``get_source(format)`` gives the code as text.
    facts : mapping of str to object
        What functions without arguments answer, such as ``"_get_target_string"``.
    foreign : str
        If the code cannot run here, why: what a call of one of the symbols says.
    keepalive : object
        What owns the memory of the code; the module keeps it.
    """

    def no_source(fmt: str) -> str:
        raise ValueError(f"the module has no source of format {fmt!r}")

    answers = facts or {}
    flat = [part for pair in (*answers.items(), *symbols.items()) for part in pair]
    source = _core.make_function(get_source or no_source)
    owner = _core.make_function(lambda: keepalive)
    module: Module = _native(
        "ModuleFromSymbols", type_key, object_code, source, owner, foreign, len(answers), *flat
    )
    return module


def load_module(path: str | Path, fmt: str = "") -> Module:
    """Load a library that :meth:`Module.export_library` wrote.

    Objects (``.o``) and archives (``.tar``) of them are linked first, in a temporary folder. A
    damaged file is rejected: all that this package writes carries a checksum. Of libraries that
    another tool has linked, the tables are checked, and damage to their code remains unseen.
    ``TVM_CHECKSUM=0`` loads files whatever their checksums say.
    """
    path = str(Path(path))
    if not Path(path).is_file():
        raise ValueError(f"cannot load module: file {path} does not exist")
    if not path.endswith((".o", ".tar")):
        return _read(path, fmt)
    with _utils.kept_folder() as folder:
        objects = _unpacked(path, folder / "objects") if path.endswith(".tar") else [path]
        for each in objects:
            _native("CheckObject", each)
        library = str(folder / f"{Path(path).name}.so")
        cc.create_shared(library, objects)
        return _read(library, fmt)


def _read(path: str, fmt: str) -> Module:
    module: Module = _native("ModuleLoadFromFile", path, fmt)
    return module


def _unpacked(archive: str, folder: Path) -> list[str]:
    folder.mkdir()
    try:
        _tar.untar(archive, str(folder))
    except tarfile.ReadError as error:
        raise ValueError(f"cannot load module: {archive} is no tar archive: {error}") from None
    names = sorted(file.name for file in folder.iterdir())
    if linked := [name for name in names if name.endswith(".so")]:
        raise ValueError(
            f"cannot load module: {archive} requires objects in it, got the library {linked[0]}, as "
            "packages of tvmc have\n  hint: unpack the library and load it, run the package by "
            "tvmc run, or compile to a library: tvmc compile -o model.so"
        )
    return [str(folder / name) for name in names]


def load_static_library(path: str, func_names: list[str]) -> Module:
    """A module over an object file, to be exported with others."""
    _native("CheckObject", str(path))
    return module_from_object(Path(path).read_bytes(), *func_names)


def module_from_object(object_code: bytes, *func_names: str) -> Module:
    """A module over an object file in memory, to be exported with others."""
    module: Module = _native("ModuleFromObject", object_code, *func_names)
    return module


def system_lib(symbol_prefix: str = "") -> Module:
    """The functions that libraries linked into the program have registered."""
    module: Module = _native("SystemLib", symbol_prefix)
    return module


def enabled(target: str) -> bool:
    """Whether the runtime can run code for a target."""
    return bool(_native("RuntimeEnabled", target.split()[0] if target else target))


def num_threads() -> int:
    """The number of threads that parallel loops use."""
    return int(_native("NumThreads"))


__all__ = [
    "BenchmarkResult",
    "Module",
    "ModulePropertyMask",
    "enabled",
    "load_module",
    "load_static_library",
    "module_from_symbols",
    "num_threads",
    "system_lib",
]
