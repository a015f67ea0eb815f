"""What holds for all tuning in this process; the processes that build get a copy."""

from __future__ import annotations


class AutotvmGlobalScope:
    """The switches.

    Attributes
    ----------
    cuda_target_arch : str, optional
        The architecture that kernels are compiled for.
    in_tuning : bool
        Whether candidates are being built.
    silent : bool
        Whether missing records go unmentioned.
    """

    current: AutotvmGlobalScope

    def __init__(self) -> None:
        self.cuda_target_arch: str | None = None
        self.in_tuning = False
        self.silent = False

    def deep_copy(self, global_scope: AutotvmGlobalScope) -> None:
        """Take over all values of another scope."""
        vars(self).update(vars(global_scope))


GLOBAL_SCOPE = AutotvmGlobalScope()
AutotvmGlobalScope.current = GLOBAL_SCOPE


def reset_global_scope(global_scope: AutotvmGlobalScope) -> None:
    """Let this process have the values of another one's scope."""
    GLOBAL_SCOPE.deep_copy(global_scope)
