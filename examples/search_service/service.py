"""Serve the search over HTTP.

usage: python service.py [--library minilm.so] [--sentences file] [--executors 2] [--port 8000]

    curl "localhost:8000/search?text=photographs+of+the+night+sky&top=3"

The library is compiled first where there is none. Port 0 takes a free one.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Query
from pydantic import BaseModel
from search import SENTENCES, Searcher, export

Text = Annotated[str, Query(min_length=1, max_length=10_000)]


class Hit(BaseModel):
    """A sentence, and the cosine of its angle to the query."""

    sentence: str
    similarity: float


def make_app(searcher: Searcher) -> FastAPI:
    """The service. Its functions are plain ones, which FastAPI runs in threads."""
    app = FastAPI(title="Sentence search")

    @app.get("/search")
    def search(text: Text, top: Annotated[int, Query(ge=1, le=100)] = 5) -> list[Hit]:
        """The sentences nearest to the text, the nearest first."""
        return [Hit(sentence=s, similarity=c) for s, c in searcher.search(text, top)]

    @app.get("/embed")
    def embed(text: Text) -> list[float]:
        """The vector of the text, the value of each float32 exactly."""
        return searcher.embed(text).tolist()

    return app


def main() -> int:
    arguments = parse_arguments()
    if not arguments.library.exists():
        export(arguments.library, arguments.target)
    sentences = SENTENCES
    if arguments.sentences is not None:
        lines = arguments.sentences.read_text(encoding="utf8").splitlines()
        sentences = [line.strip() for line in lines if line.strip()]
    app = make_app(Searcher(arguments.library, sentences, arguments.executors))
    with socket.create_server(("127.0.0.1", arguments.port)) as listener:
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=Path, default=Path("minilm.so"))
    parser.add_argument("--sentences", type=Path, help="a file with a sentence a line")
    parser.add_argument(
        "--executors", type=int, default=os.cpu_count() or 1, help="runs at the same time"
    )
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
