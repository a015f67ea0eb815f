"""Targets to test on, and marks for tests that need one."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from tvm.knobs import TEST_TARGETS
from tvm.runtime.device import device
from tvm.runtime.module import enabled
from tvm.target import Target


def device_enabled(target: Any) -> bool:
    """Whether programs for a target can be built and run here."""
    kind = (target if isinstance(target, Target) else Target(target)).kind.name
    return bool(enabled(kind)) and bool(device(kind).exist)


def enabled_targets() -> list[tuple[str, Any]]:
    """(target, device) of the targets that tests run on: those of ``TVM_TEST_TARGETS`` that there are here.

    These are ``llvm`` and ``cuda`` unless the variable names others, such as ``llvm;opencl``: an OpenCL device is
    often the processor once more.
    """
    targets = [name.strip() for name in TEST_TARGETS.value.split(";") if name.strip()]
    return [(name, device(name)) for name in targets if device_enabled(name)]


def parametrize_targets(*targets: Any) -> Any:
    """Run a test for each given target, or all enabled ones, as ``target``; the fixture ``dev`` of
    the plugin `tvm.testing.plugin` is its device. Given targets that are not enabled are skipped.
    """
    import pytest

    if len(targets) == 1 and callable(targets[0]) and not isinstance(targets[0], (str, Target)):
        return parametrize_targets()(targets[0])
    wanted = targets or tuple(name for name, _ in enabled_targets())
    cases = [
        pytest.param(
            target,
            id=str(target),
            marks=pytest.mark.skipif(not device_enabled(target), reason=f"{target} is not enabled"),
        )
        for target in wanted
    ]
    return pytest.mark.parametrize("target", cases)


def requires_package(*packages: str) -> Any:
    """Skip a test unless Python packages can be imported."""
    import pytest

    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"packages missing: {missing}")


def skip_if_32bit(reason: str) -> Any:
    """Skip a test where pointers have 32 bits."""
    import pytest

    return pytest.mark.skipif(sys.maxsize < 2**32, reason=reason)
