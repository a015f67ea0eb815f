"""Results of functions kept in a file between runs, for data that tests are slow to make."""

from __future__ import annotations

import atexit
import functools
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from tvm import knobs

# values around a function that tell its calls apart
_PLAIN = (int, float, complex, str, bytes, tuple, type(None))

F = TypeVar("F", bound=Callable[..., Any])


class Cache:
    """Results by arguments, read from a file of the user's cache folder.

    Parameters
    ----------
    key : str
        Names the file.
    save_at_exit : bool
        Whether the process writes the file when it ends; else `save` does.
    """

    cache_by_key: dict[str, Cache] = {}

    def __init__(self, key: str, save_at_exit: bool) -> None:
        self.path = knobs.CACHE_DIR.value / "memoized" / f"{key}.pkl"
        self.save_at_exit = save_at_exit
        self.dirty = False
        self._cache: dict[Any, Any] | None = None

    @property
    def cache(self) -> dict[Any, Any]:
        """The results; a file that cannot be read counts as none."""
        if self._cache is None:
            self._cache = self._load()
        return self._cache

    def _load(self) -> dict[Any, Any]:
        try:
            found = pickle.loads(self.path.read_bytes())
        except (OSError, ValueError, EOFError, AttributeError, ImportError, pickle.PickleError):
            return {}
        return found if isinstance(found, dict) else {}

    def save(self) -> None:
        """Write the file if there is anything new."""
        if self.dirty:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(pickle.dumps(self.cache, protocol=4))
            self.dirty = False


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
