"""The service of examples/search_service gives clients that ask at once the answers of one thread."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "search_service"

# examples take torchvision away from transformers: not in this process
WRONG_ANSWERS = """
import numpy as np
from load_test import Request, answer_of

vector = np.array([0.1, 0.2], "float32")
embed = Request("/embed", {}, (vector.tobytes(), ()))
assert embed.is_answered_by(vector.tolist())
assert not embed.is_answered_by(np.nextafter(vector, np.float32(1)).tolist())
search = Request("/search", {}, answer_of([("a", 0.5), ("b", 0.25)]))
right = [{"sentence": "a", "similarity": 0.5}, {"sentence": "b", "similarity": 0.25}]
assert search.is_answered_by(right)
assert not search.is_answered_by(right[::-1])
assert not search.is_answered_by(right[:1])
assert not search.is_answered_by([right[0], {"sentence": "c", "similarity": 0.25}])
"""
BAD_REQUESTS = """
import asyncio
import httpx
from search import SENTENCES
from service import make_app

class Fake:
    def search(self, text, top):
        return [(SENTENCES[0], 0.5)][:top]

async def main():
    transport = httpx.ASGITransport(make_app(Fake()))
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        for query, status in (("text=x", 200), ("text=", 422), ("", 422), ("text=x&top=0", 422)):
            assert (await client.get(f"/search?{query}")).status_code == status, query

asyncio.run(main())
"""


def run(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(FOLDER)])}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_answers_under_load_are_those_of_one_thread() -> None:
    arguments = ("--clients", "1", "6", "--requests", "32", "--executors", "2")
    printed = run(str(FOLDER / "load_test.py"), *arguments)
    assert "64 of 64 answers are bit for bit those of one thread" in printed
    rows = re.findall(r"│\s+(\d+) │\s+(\d+) │\s+([\d.]+) │\s+([\d.]+) │", printed)
    assert [row[:2] for row in rows] == [("1", "32"), ("6", "32")]


def test_wrong_answers_are_noticed() -> None:
    run("-c", WRONG_ANSWERS)


def test_bad_requests_are_rejected() -> None:
    run("-c", BAD_REQUESTS)
