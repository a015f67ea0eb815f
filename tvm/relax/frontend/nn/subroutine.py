"""Modules whose ``forward`` is a function of its own, which callers call."""

from __future__ import annotations

import functools
import re
from typing import Any

from tvm.support.later import names_from_above

# what needs modules itself: `call_subroutine`
_later = names_from_above(__name__)


class SubroutineMixin:
    """A class whose ``forward`` becomes a private function if ``define_subroutine`` is true."""

    define_subroutine: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "forward" in cls.__dict__:
            cls.forward = _as_subroutine(cls.__dict__["forward"])  # type: ignore[attr-defined]


def _as_subroutine(forward: Any) -> Any:
    @functools.wraps(forward)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.define_subroutine:
            return forward(self, *args, **kwargs)
        return _later("call_subroutine")(self, forward, args, kwargs)

    return call


def function_name(cls: type) -> str:
    """The name of the function of a class: ``MyLayer`` is ``my_layer``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()
