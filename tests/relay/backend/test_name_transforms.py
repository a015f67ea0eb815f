"""Names of generated functions, variables and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tvm
from tvm.relay.backend import name_transforms as names
from tvm.runtime.name_transforms import sanitize_name


def test_styles_of_c() -> None:
    name = names.prefix_generated_name(["default", "run"])
    assert name == "TVMGen_default_run"
    assert names.to_c_function_style(name) == "TVMGenDefaultRun"
    assert names.to_c_variable_style(name) == "tvmgen_default_run"
    assert names.to_c_constant_style(name) == "TVMGEN_DEFAULT_RUN"
    assert names.prefix_name("a-b") == "TVM_a_b"


@pytest.mark.parametrize(
    ("style", "kind"),
    [
        (names.to_c_function_style, "Function"),
        (names.to_c_variable_style, "Variable"),
        (names.to_c_constant_style, "Constant"),
    ],
)
def test_styles_require_the_prefix(style: Callable[[str], str], kind: str) -> None:
    with pytest.raises(tvm.TVMError, match=f"{kind} name is empty"):
        style("")
    with pytest.raises(tvm.TVMError, match=f"{kind} not TVM prefixed"):
        style("Default_run")


@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (names.prefix_name, [], "Name segments empty"),
        (names.prefix_generated_name, "", "Name segments empty"),
        (names.prefix_name, ["", ""], "Name segments empty"),
        (names.prefix_generated_name, [""], "Name segments empty"),
        (sanitize_name, "", "Name is empty"),
    ],
)
def test_names_are_not_empty(function: Callable[[Any], str], argument: Any, message: str) -> None:
    with pytest.raises(tvm.TVMError, match=message):
        function(argument)
