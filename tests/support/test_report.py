"""The description of an installation."""

import pytest

from tvm.support import describe, libinfo


def test_build_options_are_strings() -> None:
    info = libinfo()
    assert info["USE_LLVM"] == "ON" and all(isinstance(value, str) for value in info.values())
    assert info["USE_PROFILER"] == "ON" and info["USE_CUDA"] == info["USE_BYODT_POSIT"] == "OFF"


def test_description_names_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    describe()
    text = capsys.readouterr().out
    assert "numpy" in text and "LLVM_VERSION" in text
