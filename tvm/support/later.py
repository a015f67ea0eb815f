"""Names that a package has by classic use, and that a layer above it defines.

    provide("tvm.relay.expr", {"bind": "tvm.relay.traverse:bind"})     # whoever knows both
    __getattr__ = names_from_above(__name__)                           # in tvm.relay.expr

The lower package so names nothing above itself, and the higher one is imported at the first use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tvm.support.absent import attribute_error

# package -> name -> "module", or "module:attribute"
_PATHS: dict[str, Mapping[str, str]] = {}


def provide(package: str, paths: Mapping[str, str]) -> None:
    """Tell where the names are that a package does not define itself."""
    _PATHS[package] = paths


def names_from_above(package: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: finds the names that `provide` was told of, once each."""

    def find(name: str) -> Any:
        path_of_name = _PATHS.get(package, {}).get(name)
        if path_of_name is None:
            raise attribute_error(package, name)
        path, _, attribute = path_of_name.partition(":")
        module = import_module(path)
        found = getattr(module, attribute) if attribute else module
        return vars(sys.modules[package]).setdefault(name, found)

    return find
