"""What kernels are chosen for: ``PassContext(config={"relay.backend.optimize_for": "size"})``."""

from __future__ import annotations

from tvm.error import TVMError, suggest
from tvm.ir.pass_context import PassContext, register_pass_config

KEY = "relay.backend.optimize_for"
_AIMS = ("speed", "size")
register_pass_config(KEY, str)  # speed: weights may grow for faster kernels; size: not


def is_for_size() -> bool:
    """Whether weights must not grow."""
    aim = str(PassContext.current().config.get(KEY, _AIMS[0]))
    if aim not in _AIMS:
        raise TVMError(f"{KEY} is {' or '.join(_AIMS)}, got {aim!r}", hint=suggest(aim, _AIMS))
    return aim == "size"
