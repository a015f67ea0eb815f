"""Tables of converters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tvm.relay.frontend.converters import Converters


def test_rows_serve_all_names_of_their_keys() -> None:
    table: Converters[Callable[..., Any]] = Converters("aten::")
    table.rows({"abs prims::abs": abs})
    assert dict(table) == {"aten::abs": abs, "prims::abs": abs}


def test_an_operator_has_one_converter() -> None:
    table: Converters[Callable[..., Any]] = Converters()
    table.op("Abs")(abs)
    with pytest.raises(AssertionError, match="Abs has a converter"):
        table.op("Abs")(abs)
