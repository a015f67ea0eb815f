"""Which configuration holds: the innermost ``with`` block that knows one decides."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from tvm.autotvm.env import GLOBAL_SCOPE
from tvm.autotvm.task.space import ConfigEntity, ConfigSpace, FallbackConfigEntity
from tvm.support.scope import Scoped

logger = logging.getLogger("autotvm")

Workload = tuple[Any, ...]
_CURRENT: Scoped[DispatchContext] = Scoped("autotvm.DispatchContext")


class _Innermost:
    """The class attribute ``current``: the innermost context, or the outermost of all."""

    def __get__(self, instance: Any, owner: Any) -> DispatchContext:
        return _CURRENT.current() or ROOT


class DispatchContext:
    """Tells the configuration of each workload inside a ``with`` block.

    Attributes
    ----------
    current : DispatchContext
        Of the innermost block.
    """

    current = _Innermost()

    def __init__(self) -> None:
        self._old_ctx: DispatchContext = DispatchContext.current
        self.rejected: set[tuple[str, Workload]] = (
            set()
        )  # targets and workloads that were warned of

    def around(self) -> Iterator[DispatchContext]:
        """This context and those of the blocks around it, the outermost fallback apart."""
        context = self
        while not isinstance(context, FallbackContext):
            yield context
            context = context._old_ctx

    def query_inside(self, target: Any, workload: Workload | None) -> ConfigSpace | None:
        """The configuration that this block itself has; None too if it has other tasks alone.

        Parameters
        ----------
        target : tvm.target.Target
            The target.
        workload : tuple
            The name of the task and its arguments.
        """
        try:
            return self._query_inside(target, workload)
        except RuntimeError:  # it has other tasks alone, or needs a target
            return None

    def query(self, target: Any, workload: Workload | None) -> ConfigSpace:
        """The configuration of a workload, from the blocks around if this one has none.

        Parameters
        ----------
        target, workload :
            As of :meth:`query_inside`.
        """
        found = self._query_inside(target, workload)
        return self._old_ctx.query(target, workload) if found is None else found

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        """Give a workload another configuration.

        Parameters
        ----------
        target, workload :
            As of :meth:`query_inside`.
        cfg : ConfigSpace
            The configuration.
        """
        raise NotImplementedError()

    def _query_inside(self, target: Any, workload: Workload | None) -> ConfigSpace | None:
        """The configuration that this context has itself."""
        raise NotImplementedError()

    def __enter__(self) -> Any:
        self._old_ctx = DispatchContext.current
        _CURRENT.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        _CURRENT.pop()


class ApplyConfig(DispatchContext):
    """One configuration for whatever asks.

    Parameters
    ----------
    config : ConfigSpace or ConfigEntity
        The configuration.
    """

    def __init__(self, config: ConfigSpace) -> None:
        super().__init__()
        self._config = config
        self.workload: Workload | None = None

    def _query_inside(self, target: Any, workload: Workload | None) -> ConfigSpace:
        self.workload = workload
        return self._config

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        self.workload = workload
        self._config = cfg


class FallbackContext(DispatchContext):
    """Where nothing else holds: every workload gets a :class:`FallbackConfigEntity` of its own."""

    def __init__(self) -> None:
        # the outermost context is made before there is a current one
        self._old_ctx = self
        self.rejected = set()
        self.memory: dict[tuple[str, Workload | None], ConfigSpace] = {}

    def _query_inside(self, target: Any, workload: Workload | None) -> ConfigSpace:
        key = (str(target), workload)
        if key not in self.memory:
            if not GLOBAL_SCOPE.silent and workload is not None:
                logger.debug(
                    "Cannot find config for target=%s, workload=%s: the template's own choice is used",
                    target,
                    workload,
                )
            self.memory[key] = FallbackConfigEntity()
        return self.memory[key]

    def clear_cache(self, target: Any, workload: Workload) -> None:
        """Forget the configuration of a workload.

        Parameters
        ----------
        target, workload :
            As of :meth:`DispatchContext.query_inside`.
        """
        self.memory.pop((str(target), workload), None)

    def update(self, target: Any, workload: Workload, cfg: ConfigSpace) -> None:
        self.memory[(str(target), workload)] = cfg


ROOT = FallbackContext()


def clear_fallback_cache(target: Any, workload: Workload) -> None:
    """Forget what the :class:`FallbackContext` around has chosen for a workload.

    Parameters
    ----------
    target, workload :
        As of :meth:`DispatchContext.query_inside`.
    """
    context = DispatchContext.current
    while not isinstance(context, FallbackContext):
        context = context._old_ctx
    context.clear_cache(target, workload)


__all__ = [
    "ApplyConfig",
    "ConfigEntity",
    "DispatchContext",
    "FallbackContext",
    "Workload",
    "clear_fallback_cache",
]
