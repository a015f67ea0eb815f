from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime import native_library
from tvm.runtime.module import Module, load_module


@pytest.fixture(scope="session")
def library_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the library of C functions."""
    return native_library.build(Path(tmp_path_factory.mktemp("native")))


@pytest.fixture(scope="session")
def library(library_path: str) -> Module:
    """The library of C functions, loaded."""
    return load_module(library_path)
