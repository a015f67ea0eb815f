"""Code generators of others in front of a target: `--target "dnnl, llvm"`.

The package ``tvm.relay.contrib.<name>`` of a code generator offers ``partition_for_<name>``.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any

from tvm.driver.tvmc.errors import TVMCException, similar_or_all
from tvm.relay import contrib
from tvm.support.absent_helpers import absent_compilers

# names on the command line that are not the module's with hyphens
_NAMES = {"arm_compute_lib": "compute-library", "cmsisnn": "cmsis-nn", "ethosn": "ethos-n",
          "ethosu": "ethos-u"}  # fmt: skip
# modules of compilers that are called from Python alone
_NOT_NAMED = ("coreml", "cublas", "cudnn", "cutlass", "tensorrt")


def get_codegen_names() -> list[str]:
    """The names of code generators; those of libraries that are not there raise when asked to partition."""
    return sorted(_codegens())


def get_codegen_by_target(name: str) -> Mapping[str, Any]:
    """How a code generator takes its part of a model.

    Returns
    -------
    ``pass_pipeline``, its ``partition_for_...``; and ``config_key``, the option of `PassContext` that
    takes what is said behind its name on the command line, or None if the function takes it.
    """
    found = _codegens()
    if name not in found:
        raise TVMCException(f"{name} is not defined in TVMC: {similar_or_all(name, found)}")
    return found[name]


def _codegens() -> dict[str, Mapping[str, Any]]:
    modules = [info.name for info in pkgutil.iter_modules(contrib.__path__)]
    modules += absent_compilers()
    found: dict[str, Mapping[str, Any]] = {}
    for name in [name for name in modules if name not in _NOT_NAMED]:
        module = getattr(contrib, name)
        if partition := getattr(module, f"partition_for_{name}", None):
            known_as = _NAMES.get(name, name.replace("_", "-"))
            found[known_as] = {"config_key": None, "pass_pipeline": partition}
    return found
