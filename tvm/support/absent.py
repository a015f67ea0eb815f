"""Parts of the classic release that this one does not have: a sentence for each, whichever way one
asks for it. ``import tvm.contrib.msc`` raises ModuleNotFoundError, ``tvm.contrib.msc`` AttributeError.

Programs import some parts at their head and use them only on request, for a board or a device:
``from tvm import rpc`` gives a module, and ``rpc.connect`` raises; the modules of
`absent_helpers` have their functions too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tvm.support.absent_boards import BOARDS
from tvm.support.absent_helpers import HELPERS, helper_functions

_TUNED = "kernels are chosen by a cost model, and tvm.autotvm tunes them"
_IMPORTED = "models of other frameworks are imported by tvm.relay.frontend"
_SEARCHED = "tvmc tune --enable-autoscheduler searches for the kernels of a model"
_SESSIONS = "tvm.rpc has sessions with other processes and machines, each of which runs models"
_DEVICES = "code is generated for processors and GPUs, by the targets llvm, c, opencl and cuda"
_GPU_MODULES = "cuda_graph curand nvrtc spirv_utils"

# what there is instead: by package, groups of names
_INSTEAD: dict[str, dict[str, str]] = {
    "tvm": {
        "meta_schedule dlight": _TUNED,
    },
    "tvm.contrib": {
        _GPU_MODULES: _DEVICES,
        "ethosn uma_hexagon": _DEVICES,
        "cuda_graph.cuda_graph_executor": _DEVICES,
        "verilator": _DEVICES,
        "msc": _IMPORTED,
        "micro": BOARDS,
    },
    "tvm.runtime": {"disco": _SESSIONS},
    "tvm.auto_scheduler": {"testing": _SEARCHED},
    "tvm.micro": {
        "build class_factory contrib debugger GeneratedProject TemplateProject": BOARDS
    },
}  # fmt: skip
# parts that raise where they are used, rather than where they are imported
_IMPORTABLE = frozenset(
    ["tvm.meta_schedule", "tvm.dlight"]
    + [f"tvm.contrib.{name}" for name in f"{_GPU_MODULES} cuda_graph.cuda_graph_executor".split()]
)
_SENTENCES = {
    f"{package}.{name}": instead
    for package, groups in _INSTEAD.items()
    for names, instead in groups.items()
    for name in names.split()
}


def explanation(path: str) -> str | None:
    """That a part of the classic release is not there, and what there is instead; None for others."""
    instead = _SENTENCES.get(path)
    return None if instead is None else f"{path} is not in this release; {instead}"


def absent_name(module: str, name: str) -> Any:
    """What a module's ``__getattr__`` gives for a function that raises when called; others it rejects."""
    if module in HELPERS and name in HELPERS[module].functions.split():
        return helper_functions(module)[name]
    raise attribute_error(module, name)


def attribute_error(module: str, name: str) -> AttributeError:
    """What a module's ``__getattr__`` raises for a name that it does not have."""
    text = explanation(f"{module}.{name}")
    return AttributeError(text or f"module {module!r} has no attribute {name!r}")


class _AbsentParts(MetaPathFinder, Loader):
    """Asked after all others have found nothing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in HELPERS:
            return ModuleSpec(fullname, self, is_package=HELPERS[fullname].is_package)
        if fullname in _IMPORTABLE:
            # a package, so that `from part import name` asks here for the name too
            return ModuleSpec(fullname, self, is_package=True)
        package = fullname.rpartition(".")[0]
        part = package if package in _IMPORTABLE else fullname
        if (text := explanation(part)) is not None:
            # without a name: `from package import part` would hide the sentence of a part it names
            raise ModuleNotFoundError(text, path=fullname)
        return None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in HELPERS:
            module.__dict__.update(helper_functions(module.__name__))
            return
        module.__doc__ = explanation(module.__name__)
        module.__dict__["__getattr__"] = partial(_reject, module.__name__)


def _reject(part: str, name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(f"module {part!r} has no attribute {name!r}")
    raise AttributeError(explanation(part))


def install() -> None:
    """Ask here last when a module is imported."""
    if not any([isinstance(finder, _AbsentParts) for finder in sys.meta_path]):
        sys.meta_path.append(_AbsentParts())
