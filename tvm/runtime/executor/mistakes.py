"""What is said of inputs that were never set, and of names that no input has."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from tvm import knobs
from tvm._ffi.registry import register_func
from tvm.error import RuntimeValueError, suggest
from tvm.runtime.packed_func import convert_to_tvm_func

_PACKAGE = str(Path(__file__).parents[2])


def report_unset_inputs(text: str) -> None:
    """Warn before a run with inputs that were never set; raise if the knob STRICT_INPUTS is on."""
    if knobs.STRICT_INPUTS.value:
        raise RuntimeValueError(text)
    warn_user(f"{text}; TVM_STRICT_INPUTS=1 makes this an error")


register_func("runtime.ReportUnsetInputs", convert_to_tvm_func(report_unset_inputs))


def warn_of_unknown(
    who: str, unknown: Iterable[str], known: Sequence[str], *, only_similar: bool = False
) -> None:
    """Warn of names that are not among those known, with the most similar one of each.

    Parameters
    ----------
    who : str
        What has no such names: the beginning of the warning.
    unknown, known : iterable of str
        The names.
    only_similar : bool
        Whether names that resemble none of those known are passed over.
    """
    hints = {name: suggest(name, known) for name in unknown}
    shown = [
        f"{name!r} ({hint})" if hint else repr(name)
        for name, hint in hints.items()
        if hint or not only_similar
    ]
    if shown:
        warn_user(f"{who} {', '.join(shown)}")


def warn_user(text: str) -> None:
    """Warn at the innermost line that is not of this package."""
    level = 2
    while _is_ours(level):
        level += 1
    warnings.warn(text, stacklevel=level)


def _is_ours(level: int) -> bool:
    try:
        return sys._getframe(level).f_code.co_filename.startswith(_PACKAGE)
    except ValueError:  # all are
        return False
