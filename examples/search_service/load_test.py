"""Ask the service from many clients at once: are the answers right, and how fast do they come?

usage: python load_test.py [--clients 1 2 4 8] [--requests 200] [--executors 2] [--threads 1]

Starts service.py as a process of its own, with a library that it compiles first. Every answer is
compared, bit for bit, with that of one thread in this process. Ends with 1 if one differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table
from search import SENTENCES, Searcher, export

QUERIES = [
    "food at noon",
    "the markets went down",
    "music",
    "I cannot log in",
    "an animal asleep",
    "pictures of the night sky",
    "bad weather",
    "programming languages",
]
TOP = 3


@dataclass(frozen=True)
class Request:
    """A request, and the bytes of its right answer's numbers with the right sentences."""

    path: str
    params: dict[str, str | int]
    expected: tuple[bytes, tuple[str, ...]]

    def is_answered_by(self, body: list[float] | list[dict[str, str | float]]) -> bool:
        """Whether an answer has the same sentences, and each number the same bits."""
        if self.path == "/embed":
            return (np.array(body, "float32").tobytes(), ()) == self.expected
        return answer_of([(hit["sentence"], hit["similarity"]) for hit in body]) == self.expected


@dataclass(frozen=True)
class Result:
    """What one number of clients saw."""

    clients: int
    seconds: float
    latencies: list[float]
    wrong: int


def main() -> int:
    arguments = parse_arguments()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "minilm.so"
        with console.status("compiling all-MiniLM-L6-v2 ..."):
            export(library, arguments.target)
        requests = right_answers(library)
        with console.status("running ..."), running_service(library, arguments) as url:
            results = [load(url, requests, n, arguments.requests) for n in arguments.clients]
    show(console, results, arguments)
    answers = sum([len(result.latencies) for result in results])
    wrong = sum([result.wrong for result in results])
    console.print(f"{answers - wrong} of {answers} answers are bit for bit those of one thread")
    return 1 if wrong else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--requests", type=int, default=200, help="for each number of clients")
    parser.add_argument("--executors", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--threads", type=int, default=1, help="of a kernel, in the service")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    return parser.parse_args()


def right_answers(library: Path) -> list[Request]:
    """Requests of both kinds, answered here by one executor, one after the other."""
    searcher = Searcher(library, SENTENCES, executors=1)
    found: list[Request] = []
    for text in QUERIES:
        vector = searcher.embed(text).astype("float32")
        found.append(Request("/embed", {"text": text}, (vector.tobytes(), ())))
        hits = answer_of(searcher.search(text, TOP))
        found.append(Request("/search", {"text": text, "top": TOP}, hits))
    return found


def answer_of(hits: list[tuple[str, float]]) -> tuple[bytes, tuple[str, ...]]:
    """The bytes of the numbers, and the sentences."""
    return np.array([cosine for _, cosine in hits]).tobytes(), tuple([text for text, _ in hits])


@contextmanager
def running_service(library: Path, arguments: argparse.Namespace) -> Iterator[str]:
    """The address of the service, which ends with the scope."""
    command = [
        sys.executable, str(Path(__file__).with_name("service.py")), "--port", "0",
        "--library", str(library), "--executors", str(arguments.executors),
    ]  # fmt: skip
    environment = {**os.environ, "TVM_NUM_THREADS": str(arguments.threads)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as service:
        try:
            line = service.stdout.readline() if service.stdout is not None else ""
            if not line.startswith("listening on "):
                raise RuntimeError(f"{' '.join(command)} ended with {service.wait()}")
            yield line.split()[-1]
        finally:
            service.terminate()


def load(url: str, requests: list[Request], clients: int, count: int) -> Result:
    """Send requests, in turn, from so many clients at once."""
    shares = [range(client, count, clients) for client in range(clients)]

    def ask(numbers: range) -> list[tuple[float, bool]]:
        seen: list[tuple[float, bool]] = []
        with httpx.Client(base_url=url, timeout=60) as client:
            for number in numbers:
                request = requests[number % len(requests)]
                start = time.perf_counter()
                answer = client.get(request.path, params=request.params).raise_for_status()
                seconds = time.perf_counter() - start
                seen.append((seconds, request.is_answered_by(answer.json())))
        return seen

    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        seen = [row for rows in pool.map(ask, shares) for row in rows]
    seconds = time.perf_counter() - start
    return Result(clients, seconds, [s for s, _ in seen], sum([not right for _, right in seen]))


def show(console: Console, results: list[Result], arguments: argparse.Namespace) -> None:
    """Requests a second and percentiles of latency, a row for each number of clients."""
    title = f"{arguments.executors} executors, {arguments.threads} threads a kernel"
    table = Table("clients", "requests", "a second", "p50 ms", "p90 ms", "p99 ms", title=title)
    for column in table.columns:
        column.justify = "right"
    for result in results:
        percentiles = 1e3 * np.percentile(result.latencies, [50, 90, 99])
        count = len(result.latencies)
        table.add_row(
            str(result.clients), str(count), f"{count / result.seconds:.1f}",
            *[f"{value:.1f}" for value in percentiles],
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
