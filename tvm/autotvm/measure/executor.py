"""Calls under way, as builders and runners of classic programs know them."""

from __future__ import annotations

from typing import Any


class Executor:
    """Starts calls."""

    def submit(self, func: Any, *args: Any, **kwargs: Any) -> Future:
        """Start a call.

        Parameters
        ----------
        func : function
            What to call.
        """
        raise NotImplementedError()


class Future:
    """The outcome of a call, sooner or later."""

    def done(self) -> bool:
        """Whether the call has ended."""
        raise NotImplementedError()

    def get(self, timeout: float | None = None) -> Any:
        """The result, or the exception.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait.
        """
        raise NotImplementedError()


class FutureError(RuntimeError):
    """A call has no result."""


class TimeoutError(FutureError):
    """A call took too long."""


class ExecutionError(FutureError):
    """A call raised."""
