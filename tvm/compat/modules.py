"""Imports of old module paths: ``import topi.nn.conv2d`` gives the very module ``tvm.topi.nn.conv2d``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class OldPackage(MetaPathFinder, Loader):
    """Finds the modules of an old package in the one that took its place.

    Parameters
    ----------
    old, new : str
        The packages.
    renamed : dict of str to str
        Modules that have other names today.
    """

    def __init__(self, old: str, new: str, renamed: Mapping[str, str]) -> None:
        self.old = old
        self.new = new
        self.renamed = renamed
        self._own: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self.old + "."):
            return None
        try:
            importlib.import_module(self._today(fullname))
        except ModuleNotFoundError:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._today(spec.name))
        self._own[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # the import system gave the module the old name's specification
        if module.__spec__ is not None:
            module.__spec__ = self._own.pop(module.__spec__.name)

    def _today(self, fullname: str) -> str:
        parts = fullname[len(self.old) + 1 :].split(".")
        return ".".join([self.new, *[self.renamed.get(part, part) for part in parts]])
