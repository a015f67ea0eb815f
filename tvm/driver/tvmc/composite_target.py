"""Code generators of others in front of a target: `--target "dnnl, llvm"`.

The package ``tvm.relay.op.contrib.<name>`` of a code generator offers ``partition_for_<name>``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

from tvm.driver.tvmc.errors import TVMCException, near_or_all

_PACKAGE = "tvm.relay.op.contrib"
# names on the command line that are no Python names
_MODULES = {"compute-library": "arm_compute_lib"}


def get_codegen_names() -> list[str]:
    """The code generators there are."""
    return sorted(_partitioners())


def get_codegen_by_target(name: str) -> Mapping[str, Any]:
    """How a code generator takes its part of a model: ``{"pass_pipeline": partition_for_...}``."""
    found = _partitioners()
    if name not in found:
        raise TVMCException(f"{name} is not defined in TVMC: {near_or_all(name, found)}")
    return {"config_key": None, "pass_pipeline": found[name]}


def _partitioners() -> dict[str, Callable[..., Any]]:
    try:
        package = importlib.import_module(_PACKAGE)
    except ImportError:
        return {}
    names = {module: name for name, module in _MODULES.items()}
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{_PACKAGE}.{info.name}")
        if partition := getattr(module, f"partition_for_{info.name}", None):
            found[names.get(info.name, info.name.replace("_", "-"))] = partition
    return found
