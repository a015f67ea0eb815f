"""Global functions as attributes of modules, errors by name."""

from __future__ import annotations

import sys
import types

import pytest

import tvm
from tvm._ffi import _init_api, register_func
from tvm.runtime import convert


@pytest.mark.parametrize("arguments", [("tvm.sample",), ("sample", "tvm.sample")])
def test_functions_become_attributes(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("tvm.sample")
    monkeypatch.setitem(sys.modules, "tvm.sample", module)
    register_func("sample.answer", lambda: 42, override=True)
    _init_api(*arguments)
    assert module.answer() == 42


def test_errors_registered_with_the_error_module() -> None:
    @tvm.error.register_error
    class TooManyTeapots(tvm.TVMError):
        """There are too many."""

    def fail() -> None:
        raise TooManyTeapots("five of them")

    with pytest.raises(TooManyTeapots, match="five of them") as caught:
        convert(fail)()
    assert "fail" in [entry.name for entry in caught.traceback]
