"""What layers above tell the kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tvm import TVMError
from tvm.ir.extension import ClassExtension, Extension


def test_an_extension_that_nothing_provided_says_what_to_import() -> None:
    extension: Extension[Callable[[], int]] = Extension("tvm.relay")
    with pytest.raises(TVMError, match=r"this requires tvm\.relay: import tvm\.relay"):
        extension.required()
    extension.provide(lambda: 4)
    assert extension.required() == 4


def test_a_class_takes_the_function_of_its_nearest_base() -> None:
    class Base: ...

    class Near(Base): ...

    class Last(Near): ...

    extension: ClassExtension[Callable[[], str]] = ClassExtension()
    extension.provide(Base, lambda: "base")
    assert extension.find(int) is None
    extension.provide(Near, lambda: "near")
    found = extension.find(Last)
    assert found is not None
    assert found() == "near"
