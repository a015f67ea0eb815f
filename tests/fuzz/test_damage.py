"""Damaged files of each kind raise one clear error: no crash, no hang, no huge allocation."""

from __future__ import annotations

import pytest

from tests.fuzz.damage import run_apart

# in all at least 100,000 cases, in less than a minute
CASES = {
    "params": 63_000,
    "graph": 30_000,
    "library": 5_000,
    "embedded": 1_500,
    "linked": 1_000,
    "foreign": 1_000,
    "objects": 200,
    "static_library": 300,
    "ir_json": 500,
    "relay_text": 500,
    "script": 200,
    "pickled": 1_500,
    "archive": 60,
    "onnx_model": 300,
    "tuning_log": 1_000,
    "search_log": 300,
}


@pytest.mark.parametrize("kind", CASES)
def test_damaged_content_is_rejected(kind: str) -> None:
    done = run_apart(kind, CASES[kind], seed=1)
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    rejected = int(done.stdout.split()[-2])
    assert rejected > CASES[kind] // 10
