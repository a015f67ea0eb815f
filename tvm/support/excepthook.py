"""What happens to child processes when a program ends with an exception."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def tvm_wrap_excepthook(exception_hook: ExceptHook) -> ExceptHook:
    """A hook for ``sys.excepthook`` that also ends the processes which the program started.

    Parameters
    ----------
    exception_hook : function
        The hook that is called first.
    """

    def hook(
        kind: type[BaseException], value: BaseException, trace: TracebackType | None
    ) -> object:
        result = exception_hook(kind, value, trace)
        # a program that has not imported it has started no process by it
        if (multiprocessing := sys.modules.get("multiprocessing")) is not None:
            for process in multiprocessing.active_children():
                process.terminate()
        return result

    return hook
