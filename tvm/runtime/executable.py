"""A compiled program under the interface of the newer releases: `tvm.compile`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tvm.contrib import utils
from tvm.runtime.module import Module, load_module
from tvm.runtime.packed_func import PackedFunc


class Executable:
    """A compiled program.

    Parameters
    ----------
    mod : Module
        The functions, as :func:`tvm.build` makes them.
    """

    def __init__(self, mod: Module) -> None:
        if not isinstance(mod, Module):
            raise TypeError(f"Executable needs a Module, got {type(mod).__name__}")
        self.mod = mod
        self._runnable: Module | None = None

    def __getitem__(self, name: str) -> PackedFunc:
        return self.jit().get_function(name, query_imports=True)

    def __call__(self, *args: Any) -> Any:
        return self.jit()(*args)

    def jit(
        self,
        fcompile: Callable[..., Any] | None = None,
        addons: list[str] | None = None,
        force_recompile: bool = False,
        **kwargs: Any,
    ) -> Module:
        """The module that runs in this process; code that is only source is compiled first, once.

        Parameters
        ----------
        fcompile, addons, kwargs :
            As of :meth:`tvm.runtime.Module.export_library`.
        force_recompile : bool
            Whether to compile again what was compiled before.

        Returns
        -------
        Module
            The functions.
        """
        if self._runnable is None or force_recompile or addons:
            self._runnable = self._linked(fcompile, addons, kwargs)
        return self._runnable

    def _linked(
        self,
        fcompile: Callable[..., Any] | None,
        addons: list[str] | None,
        kwargs: dict[str, Any],
    ) -> Module:
        sources = self.mod._collect_from_import_tree(
            lambda module: module.is_dso_exportable and not module.is_runnable
        )
        if not sources and not addons:
            return self.mod
        with utils.tempdir() as folder:
            path = folder.relpath("exported.so")
            self.mod.export_library(path, fcompile=fcompile, addons=addons, **kwargs)
            return load_module(path)

    def export_library(
        self,
        file_name: str | Path,
        fcompile: Callable[..., Any] | None = None,
        workspace_dir: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Write the program as one library.

        Parameters
        ----------
        file_name, fcompile, workspace_dir, kwargs :
            As of :meth:`tvm.runtime.Module.export_library`.

        Returns
        -------
        object
            What `fcompile` returned.
        """
        return self.mod.export_library(
            file_name, fcompile=fcompile, workspace_dir=workspace_dir, **kwargs
        )
