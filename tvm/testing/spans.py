"""Whether importers say where expressions come from, for a block of a test."""

from __future__ import annotations

from typing import Any

from tvm.ir.transform import PassContext


class _SpanFilling:
    def __init__(self, is_on: bool) -> None:
        outer = PassContext.current()
        config = {**outer.config, "relay.frontend.fill_span": is_on}
        self._context = PassContext(
            outer.opt_level, outer.required_pass, outer.disabled_pass, outer.instruments, config
        )

    def __enter__(self) -> None:
        self._context.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)


class enable_span_filling(_SpanFilling):
    """Inside the block, importers say where expressions come from."""

    def __init__(self) -> None:
        super().__init__(True)


class disable_span_filling(_SpanFilling):
    """Inside the block, importers leave out where expressions come from."""

    def __init__(self) -> None:
        super().__init__(False)
