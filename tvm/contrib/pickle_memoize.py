"""Results of functions kept in a file between runs, for data that tests are slow to make."""

from __future__ import annotations

import atexit
import functools
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tvm.codegen.cache import user_folder
from tvm.ir import pickles
from tvm.support.files import write_bytes

# values around a function that tell its calls apart
_PLAIN = (int, float, complex, str, bytes, tuple, type(None))

F = TypeVar("F", bound=Callable[..., Any])


class Cache:
    """Results by arguments, read from a file of the user's cache folder.

    The file keeps plain values, arrays and nodes; other results last as long as the process.

    Parameters
    ----------
    key : str
        Names the file.
    save_at_exit : bool
        Whether the process writes the file when it ends; else `save` does.
    """

    cache_by_key: dict[str, Cache] = {}

    def __init__(self, key: str, save_at_exit: bool) -> None:
        self.key = key
        self.save_at_exit = save_at_exit
        self.dirty = False
        self._cache: dict[Any, Any] | None = None

    @property
    def path(self) -> Path | None:
        """The file; None if there is no folder that only this user can write to."""
        folder = user_folder(f"pkl_memoize_py{sys.version_info.major}")
        return None if folder is None else folder / f"{self.key}.pkl"

    @property
    def cache(self) -> dict[Any, Any]:
        """The results; a file that cannot be read counts as none."""
        if self._cache is None:
            self._cache = self._load()
        return self._cache

    def _load(self) -> dict[Any, Any]:
        path = self.path
        try:
            found = {} if path is None else pickles.loads(path.read_bytes())
        except (OSError, ValueError, EOFError, AttributeError, ImportError, pickle.PickleError):
            return {}
        return found if isinstance(found, dict) else {}

    def save(self) -> None:
        """Write the file if there is anything new."""
        if self.dirty and (path := self.path) is not None:
            kept = {given: result for given, result in self.cache.items() if self._is_kept(result)}
            write_bytes(path, pickle.dumps(kept, protocol=4))
            self.dirty = False

    def _is_kept(self, result: Any) -> bool:
        try:
            pickles.loads(pickle.dumps(result, protocol=4))
        except pickle.UnpicklingError as error:
            warnings.warn(f"a result of {self.key!r} is not kept: {error}", stacklevel=2)
            return False
        return True


@atexit.register
def _save_all() -> None:
    for cache in Cache.cache_by_key.values():
        if cache.save_at_exit:
            cache.save()


def memoize(key: str, save_at_exit: bool = False) -> Callable[[F], F]:
    """A decorator: call the function once for each tuple of arguments.

    Parameters
    ----------
    key : str
        Names the file of the results.
    save_at_exit : bool
        Keep them for the next run. Two functions of one key, or a function whose code changed,
        have results of their own.
    """

    def decorate(func: F) -> F:
        cache = Cache.cache_by_key.setdefault(key, Cache(key, save_at_exit))
        code = func.__code__
        version = (func.__qualname__, code.co_filename, code.co_code, repr(code.co_consts))
        around = [cell.cell_contents for cell in func.__closure__ or ()]
        read = [value for value in around if isinstance(value, _PLAIN)]

        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            given = pickle.dumps((version, read, args, sorted(kwargs.items())), protocol=4)
            if given not in cache.cache:
                cache.cache[given] = func(*args, **kwargs)
                cache.dirty = True
            return cache.cache[given]

        return wrapped  # type: ignore[return-value]

    return decorate
