"""Numbers of LLVM's intrinsics, as calls in programs name them."""

from __future__ import annotations

# numbers stand for names only between the two functions below
_INTRINSIC_NAMES: dict[int, str] = {}


def llvm_lookup_intrinsic_id(name: str) -> int:
    """A number for an LLVM intrinsic such as ``llvm.fma``; 0 if that is none."""
    if not name.startswith("llvm."):
        return 0
    number = next((n for n, known in _INTRINSIC_NAMES.items() if known == name), None)
    if number is None:
        number = len(_INTRINSIC_NAMES) + 1
        _INTRINSIC_NAMES[number] = name
    return number


def intrinsic_of_number(number: int) -> str | None:
    """The name behind a number; None if it is no number of `llvm_lookup_intrinsic_id`."""
    return _INTRINSIC_NAMES.get(number)
