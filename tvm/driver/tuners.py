"""Which tuners take part in building models."""

from __future__ import annotations

from tvm.ir.pass_context import PassContext

_AUTO_SCHEDULER = "relay.backend.use_auto_scheduler"


def is_auto_scheduler_enabled() -> bool:
    """Whether ``relay.backend.use_auto_scheduler`` is on."""
    return bool(PassContext.current().config.get(_AUTO_SCHEDULER, False))
