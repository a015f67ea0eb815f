"""Search among sentences by what they mean, from many threads, with one compiled library.

searcher = Searcher(library, SENTENCES, executors=2)
searcher.search("stars", top=3)        # any thread; as many at once as there are executors
"""

from __future__ import annotations

import queue
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tvm
from tvm.contrib import graph_executor

sys.path.insert(0, str(Path(__file__).parents[1]))

from embed_sentences import (
    LENGTH,
    SENTENCES,
    compile_model,
    embed,
    load_embedder,
    load_tokenizer,
    tokenized,
)

__all__ = ["LENGTH", "SENTENCES", "Searcher", "export"]


def export(library: Path, target: str) -> None:
    """Compile the model for one sentence at a time, and write it as a library."""
    ids, mask = tokenized(load_tokenizer(), SENTENCES[:1])
    compile_model(load_embedder(), ids, mask, target).export_library(str(library))


class Searcher:
    """Sentences with their vectors, and the executors that make vectors of queries.

    Executors share the code and the weights of the library. A call has one to itself, with a tokenizer,
    which keeps state while it runs too; where all are taken it waits for one.
    """

    def __init__(self, library: Path, sentences: Sequence[str], executors: int) -> None:
        if executors < 1:
            raise ValueError(f"a Searcher requires at least one executor, got {executors}")
        if not sentences:
            raise ValueError("a Searcher requires sentences to search among, got none")
        model = tvm.runtime.load_module(str(library))
        self._free: queue.SimpleQueue[tuple[graph_executor.GraphModule, Any]] = queue.SimpleQueue()
        for _ in range(executors):
            executor = graph_executor.GraphModule(model["default"](tvm.cpu()))
            self._free.put((executor, load_tokenizer()))
        self.sentences = list(sentences)
        self._vectors = np.stack([self.embed(sentence) for sentence in sentences])

    def embed(self, text: str) -> np.ndarray:
        """The vector of a text, of which the first LENGTH tokens count; its norm is 1."""
        executor, tokenizer = self._free.get()
        try:
            ids, mask = tokenized(tokenizer, [text])
            return embed(executor, ids[0], mask[0])[0]
        finally:
            self._free.put((executor, tokenizer))

    def search(self, text: str, top: int) -> list[tuple[str, float]]:
        """The sentences nearest to a text, the nearest first, and the cosines of their angles."""
        cosines = self._vectors @ self.embed(text)
        nearest = np.argsort(-cosines, kind="stable")[:top]
        return [(self.sentences[i], float(cosines[i])) for i in nearest]
