"""The programs in the how-to pages run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"

# what a page takes for given: a model, its parameters, an input
GIVEN = {
    "low_precision.md": """
import numpy as np
import tvm
from tvm import relay

data = relay.var("data", shape=(1, 16, 8, 8))
array = np.ones((1, 16, 8, 8), "float32")
params = {"weight": tvm.nd.array(np.ones((32, 16, 3, 3), "float32"))}
weight = relay.var("weight", shape=(32, 16, 3, 3))
conv = relay.nn.conv2d(data, weight, padding=1, channels=32, kernel_size=3)
mod = tvm.IRModule.from_expr(relay.nn.relu(conv))
""",
}


def programs(page: str) -> str:
    """All Python of a page, one behind the other."""
    text = (DOCS / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return "\n".join([GIVEN.get(page, ""), *blocks])


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("add_operator.md", "my.cubed.long"),
        ("models_in_c.md", "0."),
        ("vm.md", "(2, 3)"),
        ("devices.md", "2048.0"),
        ("low_precision.md", "nn.conv2d"),
        ("tuning.md", "largest difference True"),
        ("promises.md", "True"),
        ("explain.md", "['input', 'input', 'nn.conv2d', 'nn.relu'] became "),
    ],
)
def test_programs_of_a_page_run(page: str, expected: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", programs(page)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(DOCS.parent), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert expected in done.stdout
