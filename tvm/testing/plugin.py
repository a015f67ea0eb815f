"""A plugin for pytest: tests that take ``target`` and ``dev`` run on every target there is.

# conftest.py
pytest_plugins = ["tvm.testing.plugin"]

# test_relu.py
rows, columns = tvm.testing.parameters((1, 8), (16, 3))

@tvm.testing.exclude_targets("cuda")
def test_relu(target, dev, rows, columns): ...
"""

from __future__ import annotations

from typing import Any

import pytest

from tvm.runtime.device import device
from tvm.target import Target

from .targets import enabled_targets

_MARKS = {
    "exclude_targets": "exclude_targets(*targets): targets not to run on",
    "known_failing_targets": "known_failing_targets(*targets): targets on which the test is to fail",
    "skip_parameterizations": "skip_parameterizations(ids, reason): cases not to run",
    "xfail_parameterizations": "xfail_parameterizations(ids, reason): cases that are to fail",
}


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks of this package known."""
    for line in _MARKS.values():
        config.addinivalue_line("markers", line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each target, and for each set of values of ``tvm.testing.parameters``."""
    _over_values(metafunc)
    given = [_names(mark) for mark in metafunc.definition.iter_markers("parametrize")]
    is_given = any("target" in names for names in given)
    is_fixture = "target" in metafunc._arg2fixturedefs
    if "target" in metafunc.fixturenames and not is_given and not is_fixture:
        metafunc.parametrize("target", _targets_of(metafunc.definition))


def _names(parametrize: pytest.Mark) -> list[str]:
    """The arguments that a mark gives values to: ``"extent, target"``, or a list of names."""
    names = parametrize.args[0] if parametrize.args else parametrize.kwargs["argnames"]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _targets_of(item: Any) -> list[Any]:
    excluded, failing = _kinds(item, "exclude_targets"), _kinds(item, "known_failing_targets")
    found = []
    for name, _ in enabled_targets():
        kind = Target(name).kind.name
        if kind not in excluded:
            marks = [pytest.mark.xfail(reason=f"known to fail on {kind}")] * (kind in failing)
            found.append(pytest.param(name, marks=marks))
    return found


def _kinds(item: Any, mark: str) -> set[str]:
    return {Target(t).kind.name for found in item.iter_markers(mark) for t in found.args}


def _over_values(metafunc: pytest.Metafunc) -> None:
    """The fixtures of one call of ``parameters`` take the values of the same set together."""
    groups: dict[int, dict[str, Any]] = {}
    for name in metafunc.fixturenames:
        definitions = metafunc._arg2fixturedefs.get(name, ())
        column = getattr(definitions[-1].func, "column", None) if definitions else None
        if column is not None:
            groups.setdefault(id(column.group), {})[name] = column
    for columns in groups.values():
        group = next(iter(columns.values())).group
        rows = [tuple(row[column.index] for column in columns.values()) for row in group.rows]
        metafunc.parametrize(tuple(columns), rows, ids=group.ids, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases that ``skip_parameterizations`` and ``xfail_parameterizations`` name."""
    for item in items:
        case = getattr(item, "callspec", None)
        if case is None:
            continue
        for name, mark in (("skip", pytest.mark.skip), ("xfail", pytest.mark.xfail)):
            for found in item.iter_markers(f"{name}_parameterizations"):
                if case.id in found.args:
                    item.add_marker(mark(reason=found.kwargs["reason"]))


@pytest.fixture
def dev(target: Any) -> Any:
    """The device of the target."""
    return device(Target(target).kind.name)
