"""Records kept in a database, by target, task and configuration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from tvm.autotvm.measure.interface import MeasureInput, MeasureResult
from tvm.autotvm.record import decode, encode, measure_str_key
from tvm.error import TVMError, install_hint

logger = logging.getLogger("autotvm")

# the databases of a server of Redis, by number
REDIS_PROD = 15
REDIS_LOCA = 14
REDIS_TEST = 13
REDIS_NIGHT_TEMP = 12


class Database:
    """Where results of candidates are looked up."""

    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        """The result of a candidate, or None.

        Parameters
        ----------
        inp : MeasureInput
            The candidate.
        get_all : bool
            Whether to return the list of all results, not the latest.
        """
        raise NotImplementedError()

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        """Keep a result.

        Parameters
        ----------
        inp : MeasureInput
            The candidate.
        res : MeasureResult
            Its outcome.
        extend : bool
            Whether to keep the results of before, too.
        """
        raise NotImplementedError()


def filter_inputs(
    db: Database, measure_inputs: Sequence[MeasureInput], retry: bool = False
) -> tuple[list[MeasureResult | None], list[MeasureInput]]:
    """Look up candidates.

    Parameters
    ----------
    db : Database
        The database.
    measure_inputs : list of MeasureInput
        The candidates.
    retry : bool
        Whether failures count as not found.

    Returns
    -------
    (list of MeasureResult or None, list of MeasureInput)
        The result of each candidate, and the candidates without one.
    """
    found: list[MeasureResult | None] = []
    for inp in measure_inputs:
        res = db.load(inp)
        found.append(None if res is None or (retry and res.error_no != 0) else res)
    pairs = zip(measure_inputs, found, strict=True)
    return found, [inp for inp, res in pairs if res is None]


class RedisDatabase(Database):
    """Records in a server of Redis on this machine; needs the package ``redis``.

    Parameters
    ----------
    db_index : int
        The number of the database.
    """

    MAGIC_SPLIT = "$"

    def __init__(self, db_index: int = REDIS_PROD) -> None:
        try:
            import redis
        except ImportError as error:
            raise TVMError(
                "RedisDatabase requires the package redis", hint=install_hint("redis")
            ) from error
        self.db = redis.StrictRedis(host="127.0.0.1", port=6379, db=db_index, decode_responses=True)

    def set(self, key: str, value: str) -> None:
        """Store a text.

        Parameters
        ----------
        key, value : str
            Where, and what.
        """
        self.db.set(key, value)

    def get(self, key: str) -> str | None:
        """The text of a key, or None.

        Parameters
        ----------
        key : str
            Where.
        """
        current = self.db.get(key)
        return current.decode() if isinstance(current, bytes) else current

    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        current = self.get(measure_str_key(inp))
        if current is None:
            return None
        results = [result for _, result in self._records_in(current)]
        if get_all:
            return results
        return max(results, key=lambda result: result.timestamp, default=None)

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        key = measure_str_key(inp)
        current = self.get(key) if extend else None
        lines = [*([] if current is None else [current]), encode(inp, res)]
        self.set(key, self.MAGIC_SPLIT.join(lines))

    def _records_in(self, text: str) -> list[tuple[MeasureInput, MeasureResult]]:
        records = [decode(line) for line in text.split(self.MAGIC_SPLIT)]
        return [record for record in records if record is not None]

    def filter(self, func: Callable[..., bool]) -> list[tuple[MeasureInput, MeasureResult]]:
        """The latest record of each candidate that a function wants.

        Parameters
        ----------
        func : function
            Takes the candidate and all of its results.

        Examples
        --------
        >>> db.filter(lambda inp, results: "cuda" in inp.target.keys)
        """
        wanted = []
        for key in list(self.db.keys()):
            try:
                records = self._records_in(self.get(key) or "")
            except ValueError:  # something else is kept there
                continue
            results = [result for _, result in records]
            if records and func(records[0][0], results):
                latest = max(results, key=lambda result: result.timestamp)
                wanted.append((records[0][0], latest))
        return wanted

    def flush(self) -> None:
        """Delete everything in this database."""
        self.db.flushdb()


class DummyDatabase(RedisDatabase):
    """Records in memory, gone with the object."""

    def __init__(self) -> None:
        self.db: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self.db[key] = value

    def flush(self) -> None:
        self.db.clear()
