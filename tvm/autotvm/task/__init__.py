"""Tasks, their configuration spaces, and which configuration holds where."""

from tvm.support.later import names_from_above as _names_from_above

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

__getattr__ = _names_from_above(__name__)
