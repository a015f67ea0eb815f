"""What pip knows of the package is what the package says of itself."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import tvm
from tvm.error import DISTRIBUTION

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def _hinted_extras() -> set[str]:
    calls = [
        node
        for path in (ROOT / "tvm").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "install_hint"
    ]
    arguments = [call.args[0] for call in calls]
    return {arg.value for arg in arguments if isinstance(arg, ast.Constant)}


def test_the_distribution_has_the_name_that_hints_tell() -> None:
    assert _project()["name"] == DISTRIBUTION


def test_hints_name_extras_that_exist() -> None:
    assert {"onnx", "torch"} <= _hinted_extras() <= set(_project()["optional-dependencies"])


def test_extras_that_name_the_package_mean_this_one() -> None:
    own = [requirement for extra in _project()["optional-dependencies"].values() for requirement in extra
           if "tvm[" in requirement]  # fmt: skip
    assert own
    assert all(requirement.startswith(f"{DISTRIBUTION}[") for requirement in own)


def test_type_checkers_read_the_annotations() -> None:
    assert (Path(tvm.__file__).parent / "py.typed").is_file()


def test_every_supported_python_is_a_classifier() -> None:
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(_project()["classifiers"]))
    assert _project()["requires-python"] == f">={versions[0]}"
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in versions
