"""Each error class is on its page, and the programs there raise what they stand under."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import tvm.error
from tvm.te.prim_func import UnsupportedOperationError

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "errors.md").read_text(encoding="utf8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
KIN = (
    UnsupportedOperationError, tvm.ir.pass_context.OptionsTypeError, tvm.ir.pass_context.PassConfigError,
    tvm.target.kind.MissingTargetError, tvm.target.kind.TargetError, tvm.te.schedule.schedule.ScheduleKeyError,
)  # fmt: skip


def programs() -> dict[str, str]:
    """The Python of each section that has some, after what the page begins with."""
    block = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
    found = {name: block.search(text) for name, text in SECTIONS.items()}
    return {"": block.search(PAGE).group(1)} | {  # type: ignore[union-attr]
        name: match.group(1) for name, match in found.items() if match
    }


def test_every_public_class_has_a_section() -> None:
    own = {
        name
        for name, value in vars(tvm.error).items()
        if isinstance(value, type) and issubclass(value, tvm.error.TVMError) and value.__module__ == "tvm.error"
    }  # fmt: skip
    assert own - {"TVMError"} | {cls.__name__ for cls in KIN} == set(SECTIONS)


def test_builtin_bases_are_the_ones_that_are_told() -> None:
    classes = {**vars(tvm.error), **{cls.__name__: cls for cls in KIN}}
    for name, text in SECTIONS.items():
        if told := re.match(r"\s*An? `(\w+)`", text):
            assert told[1] in [base.__name__ for base in classes[name].__mro__], name


def test_programs_raise_the_error_of_their_section() -> None:
    given: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, program in programs().items():
            if not name:
                exec(program, given)
                continue
            with pytest.raises(tvm.TVMError) as caught:
                exec(program, given)
            assert type(caught.value).__name__ == name, f"{name}: {caught.value!r}"
