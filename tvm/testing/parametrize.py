"""Parameters and fixtures as attributes of test classes and modules."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any


def parameter(
    *values: Any, ids: list[str] | None = None, by_dict: dict[str, Any] | None = None
) -> Any:
    """A fixture that takes each of the values in turn.

    Parameters
    ----------
    values : any
        One test for each.
    ids : list of str, optional
        Names of the values.
    by_dict : dict of str to any, optional
        Names and values together, instead of ``values`` and ``ids``.
    """
    import pytest

    if by_dict is not None:
        if values or ids:
            raise RuntimeError("parameter requires values or by_dict, got both")
        ids, values = list(by_dict), tuple(by_dict.values())

    @pytest.fixture(params=values, ids=ids)
    def fixture_of_values(*_instance: Any, request: Any) -> Any:  # of a class, if it is inside one
        return copy.deepcopy(request.param)

    return fixture_of_values


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """A pytest fixture; with ``cache_return_value`` computed once a session."""
    import pytest

    scope = "session" if cache_return_value else "function"
    return pytest.fixture(scope=scope) if func is None else pytest.fixture(scope=scope)(func)
