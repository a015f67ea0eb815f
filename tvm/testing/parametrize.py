"""Parameters and fixtures as attributes of test classes and modules."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any


@dataclass(frozen=True)
class Group:
    """The sets of values of one call of `parameters`."""

    rows: Sequence[tuple[Any, ...]]
    ids: list[str] | None


@dataclass(frozen=True)
class Column:
    """Which value of each set a fixture takes."""

    group: Group
    index: int


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
        return request.param

    return fixture_of_values


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """A pytest fixture; with ``cache_return_value`` computed once for the same arguments.

    Its scope is the function either way, so that it may depend on parameters; each test gets a copy
    of what is kept.
    """
    import pytest

    def declare(function: Callable[..., Any]) -> Any:
        return pytest.fixture(_with_kept_results(function) if cache_return_value else function)

    return declare if func is None else declare(func)


def _with_kept_results(function: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[Any, Any] = {}

    @wraps(function)
    def computed_once(*instance: Any, **arguments: Any) -> Any:
        key = tuple([(name, _key(value)) for name, value in sorted(arguments.items())])
        if key not in kept:
            kept[key] = function(*instance, **arguments)
        return copy.deepcopy(kept[key])

    return computed_once


def _key(value: Any) -> Any:
    """What equal values have in common; functions inside of others are themselves."""
    try:
        return pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return value


def parameters(*value_sets: tuple[Any, ...], ids: list[str] | None = None) -> tuple[Any, ...]:
    """Fixtures that take the values of each set together; needs the plugin `tvm.testing.plugin`.

    Parameters
    ----------
    value_sets : tuple
        One test for each; a fixture for each of its values.
    ids : list of str, optional
        Names of the sets.
    """
    widths = {len(values) for values in value_sets}
    if len(widths) != 1:
        raise ValueError(f"parameters requires sets of one length, got lengths {sorted(widths)}")
    group = Group(value_sets, ids)
    return tuple([_fixture_of(Column(group, index)) for index in range(widths.pop())])


def _fixture_of(column: Column) -> Any:
    import pytest

    def fixture_of_column(*_instance: Any, request: Any) -> Any:
        return request.param

    fixture_of_column.column = column  # type: ignore[attr-defined]
    return pytest.fixture(fixture_of_column)


def exclude_targets(*targets: Any) -> Any:
    """Do not run a test on these targets; needs the plugin `tvm.testing.plugin`."""
    return pytest_mark("exclude_targets", *targets)


def known_failing_targets(*targets: Any) -> Any:
    """Expect a test to fail on these targets; needs the plugin `tvm.testing.plugin`."""
    return pytest_mark("known_failing_targets", *targets)


def skip_parameterizations(*skip_params: str, reason: str) -> Any:
    """Do not run the cases of a test with these ids; needs the plugin `tvm.testing.plugin`."""
    return pytest_mark("skip_parameterizations", *skip_params, reason=reason)


def xfail_parameterizations(*xfail_params: str, reason: str) -> Any:
    """Expect the cases of a test with these ids to fail; needs the plugin `tvm.testing.plugin`."""
    return pytest_mark("xfail_parameterizations", *xfail_params, reason=reason)


def pytest_mark(name: str, *args: Any, **kwargs: Any) -> Any:
    """A mark of pytest, which only tests have to install."""
    import pytest

    return getattr(pytest.mark, name)(*args, **kwargs)
