"""The words that schedules are written with: storage scopes, thread tags, pragmas.

They are checked where they are written; a misspelt one would have no effect.
"""

from __future__ import annotations

import re
from typing import Any

from tvm.error import ScheduleError, similar_names, suggest
from tvm.ir.expr import PrimExpr

# a scope is one of these, or one of them with a suffix that names a special memory of a device
STORAGE_SCOPES = ("global", "shared", "warp", "local", "wmma", "m16n8k8", "metal", "amx", "texture")

_THREAD_TAG = re.compile(r"(blockIdx|threadIdx)\.[xyz]|[cv]thread(\.[xyz])?|pipeline|cop")

# what some pass acts on; more of them may be meant for passes of the user's
PRAGMAS = (
    "auto_unroll_max_step",
    "debug_skip_region",
    "import_c",
    "import_llvm",
    "loop_partition_hint",
    "parallel_barrier_when_finish",
    "parallel_launch_point",
    "parallel_stride_pattern",
    "tensor_core",
    "unroll",
    "unroll_explicit",
    "vectorize",
)
_NUMBERS = ("auto_unroll_max_step", "unroll_explicit")
_TEXTS = ("import_c", "import_llvm")


def check_scope(primitive: str, scope: Any) -> str:
    """The scope, if it is one."""
    if not isinstance(scope, str):
        raise ScheduleError(
            f"{primitive} requires the name of a storage scope, "
            f"got a value of {type(scope).__name__}",
            hint=f"scopes are {', '.join(STORAGE_SCOPES[:4])}",
        )
    if scope and re.split(r"[^a-z]", scope, maxsplit=1)[0] not in STORAGE_SCOPES:
        raise ScheduleError(
            f'{primitive} requires a known storage scope, got "{scope}"',
            hint=suggest(scope, STORAGE_SCOPES)
            or f"scopes are {', '.join(STORAGE_SCOPES[:4])}, with or without a suffix",
        )
    return str(scope)


def check_thread_tag(tag: Any) -> str:
    """The tag, if threads can have it."""
    if not isinstance(tag, str) or _THREAD_TAG.fullmatch(tag) is None:
        found = f'"{tag}"' if isinstance(tag, str) else f"a value of {type(tag).__name__}"
        raise ScheduleError(
            f"thread_axis requires a known tag, got {found}",
            hint="tags are blockIdx.x, threadIdx.x (also .y and .z), vthread, pipeline and cop",
        )
    return str(tag)


def check_pragma(name: Any, value: Any) -> str:
    """The pragma, unless it can only be a mistake."""
    if not isinstance(name, str) or not name:
        raise ScheduleError(
            f"pragma requires the name of a pragma, got {name!r}",
            hint=f"names are {', '.join(PRAGMAS[:4])}, ...",
        )
    if name not in PRAGMAS and (near := similar_names(name, PRAGMAS)):
        raise ScheduleError(
            f'pragma requires a known name, got "{name}"', hint=f"did you mean {near[0]}?"
        )
    if not (value is None or isinstance(value, (str, bool, PrimExpr)) or _is_whole(value)):
        raise ScheduleError(f"pragma {name} requires a number or a text, got {value!r}")
    if name in _TEXTS and not isinstance(value, str):
        raise ScheduleError(f"pragma {name} requires a text, got {value!r}")
    if name in _NUMBERS and not (value is None or _is_whole(value)):
        raise ScheduleError(f"pragma {name} requires an integer, got {value!r}")
    return str(name)


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") or type(getattr(value, "value", None)) is int
