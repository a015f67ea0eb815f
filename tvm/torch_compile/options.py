"""What ``torch.compile(..., mode=..., options={...})`` takes, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from tvm.error import TVMError, suggest
from tvm.target import Target

# torch's modes; calls have no overhead that could be reduced further
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
TRIALS = 64  # of each kernel, with "max-autotune"


@dataclass(frozen=True)
class Options:
    """What ``torch.compile(..., options={...})`` takes."""

    target: Any = "llvm -mcpu=native"
    opt_level: int = 3
    max_shapes: int = 16  # of each graph; the oldest is dropped
    trials: int = 0  # candidates of each kernel that AutoTVM measures; 0: the cost model decides
    tuning_records: str | None = None  # AutoTVM's records, which new ones are added to

    @staticmethod
    def of(mode: str | None, given: Mapping[str, Any] | None) -> Options:
        """The options that a mode and a dictionary stand for."""
        if mode not in (None, *MODES):
            raise TVMError(
                f"backend pytvm has the modes {', '.join(MODES)}, got {mode!r}",
                hint=suggest(str(mode), MODES),
            )
        if given is not None and not isinstance(given, Mapping):
            raise TVMError(f"backend pytvm takes options as a dictionary, got {given!r}")
        known = [field.name for field in fields(Options)]
        if unknown := [name for name in given or {} if name not in known]:
            raise TVMError(
                f"backend pytvm has the options {', '.join(known)}, got {unknown[0]!r}",
                hint=suggest(str(unknown[0]), known),
            )
        options = Options(**(given or {}))
        options._check()
        is_tuned = mode is not None and mode.startswith("max-autotune")
        return replace(options, trials=options.trials or TRIALS) if is_tuned else options

    def _check(self) -> None:
        for name, least in (("opt_level", 0), ("max_shapes", 1), ("trials", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise TVMError(
                    f"option {name} of backend pytvm must be an integer from {least} on, "
                    f"got {value!r}"
                )
        if not isinstance(self.tuning_records, (str, type(None))):
            raise TVMError(
                "option tuning_records of backend pytvm must be the path of a file, got "
                f"{self.tuning_records!r}"
            )
        Target(self.target)  # says itself what is wrong with one
