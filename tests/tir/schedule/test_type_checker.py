"""Arguments are checked against annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

import pytest

from tvm.tir.schedule._type_checker import type_checked


@type_checked
def takes(
    count: int,
    names: List[str],  # noqa: UP006
    sizes: Dict[str, Tuple[int, float]],  # noqa: UP006
    either: Union[int, List[Optional[int]], None] = None,  # noqa: UP007, UP006, UP045
    call: Callable[..., Any] | None = None,
    *rest: str,
) -> str:
    return f"{count} {len(names)} {rest}"


def test_right_arguments_pass() -> None:
    assert takes(1, ["a"], {"k": (1, 2.0)}) == "1 1 ()"
    assert takes(1, [], {}, [None, 2], len, "r") == "1 0 ('r',)"
    assert takes(1, (), sizes={}, either=3) == "1 0 ()"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((1.5, [], {}), "takes requires count of type int, got a float"),
        ((1, "ab", {}), "names of type List[str], got a str"),
        ((1, ["a", 2], {}), r"names[1] of type str, got a int"),
        ((1, [], {2: (1, 2.0)}), "a key of sizes of type str, got a int"),
        ((1, [], {"k": (1,)}), "sizes['k'] of type Tuple[int, float], got a tuple"),
        ((1, [], {"k": (1, "x")}), "sizes['k'][1] of type float, got a str"),
        ((1, [], {}, 1.5), "either of type int or List[Optional[int]] or None, got a float"),
        ((1, [], {}, None, 3), "call of type "),
        ((1, [], {}, None, None, "r", 4), "rest[1] of type str, got a int"),
    ],
)
def test_other_arguments_are_rejected(args: tuple[Any, ...], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        takes(*args)
    assert text in str(caught.value)
