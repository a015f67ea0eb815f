"""What annotation counts while it walks through a network."""

from __future__ import annotations

from typing import Any

from tvm.relay.expr import Call
from tvm.relay.op.registry import ops
from tvm.relay.quantize.config import current_qconfig
from tvm.support import Scoped


class QuantizeContext:
    """The convolutions seen so far, the values quantised already, and whether to go on.

    Used in a `with` statement; `quantize_context()` is the innermost one.
    """

    def __init__(self) -> None:
        self.made: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        self._convolutions = 0
        self._is_stopped = False

    def check_to_skip(self, ref_call: Call) -> bool:
        """Whether the options leave a call as it is; convolutions are counted."""
        config = current_qconfig()
        if self._is_stopped or not config.guard(ref_call):
            return True
        if ref_call.op is ops.nn.dense:
            return config.skip_dense_layer
        if ref_call.op is not ops.nn.conv2d:
            return False
        self._convolutions += 1
        return self._convolutions - 1 in [int(i) for i in config.skip_conv_layers or ()]

    def stop_quantize(self) -> None:
        """Leave all that follows as it is."""
        self._is_stopped = True

    def reset(self) -> None:
        """Begin another network."""
        self.__init__()  # type: ignore[misc]

    def __enter__(self) -> QuantizeContext:
        self.reset()
        _CURRENT.push(self)
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.pop()


_CURRENT: Scoped[QuantizeContext] = Scoped("relay.quantize.context")


def current_context() -> QuantizeContext | None:
    """The innermost context, if there is one."""
    return _CURRENT.current()


def quantize_context() -> QuantizeContext:
    """The innermost context; a new one outside of `with` statements."""
    return _CURRENT.current() or QuantizeContext()
