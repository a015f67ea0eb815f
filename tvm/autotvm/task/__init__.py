"""Tasks, their configuration spaces, and which configuration holds where."""

import importlib as _importlib
from typing import Any as _Any

from .code_hash import attach_code_hash, attach_code_hash_to_arg
from .dispatcher import (
    ApplyConfig,
    ApplyFixedConfig,
    ApplyGraphBest,
    ApplyHistoryBest,
    DispatchContext,
    FallbackContext,
    clear_fallback_cache,
)
from .space import ConfigEntity, ConfigSpace
from .task import (
    Task,
    args_to_workload,
    compute_flop,
    create,
    deserialize_args,
    get_config,
    serialize_args,
    template,
)
from .topi_integration import (
    TaskExtractEnv,
    get_workload,
    register_topi_compute,
    register_topi_schedule,
)

# from relay, which is built on this package
_OF_RELAY = ("extract_from_multiple_program", "extract_from_program")


def __getattr__(name: str) -> _Any:
    if name == "relay_integration" or name in _OF_RELAY:
        module = _importlib.import_module("tvm.autotvm.task.relay_integration")
        return module if name == "relay_integration" else getattr(module, name)
    raise AttributeError(f"module 'tvm.autotvm.task' has no attribute {name!r}")
