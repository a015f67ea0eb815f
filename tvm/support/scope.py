"""Scopes: state that holds inside a ``with`` block, and limits raised for one call."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

# one frame a node and a level of dispatch: chains of 50,000 nodes need some 200,000 frames
RECURSION_LIMIT = 1_000_000


class Scoped(Generic[T]):
    """A stack of values: the innermost ``with`` block's value is the current one."""

    def __init__(self, name: str) -> None:
        self._stack: ContextVar[tuple[T, ...]] = ContextVar(name, default=())

    def current(self) -> T | None:
        """The innermost value, or None outside all scopes."""
        stack = self._stack.get()
        return stack[-1] if stack else None

    def push(self, value: T) -> None:
        self._stack.set((*self._stack.get(), value))

    def pop(self) -> T:
        *rest, last = self._stack.get()
        self._stack.set(tuple(rest))
        return last

    @contextmanager
    def scope(self, value: T) -> Iterator[T]:
        """Make ``value`` current inside the block."""
        self.push(value)
        try:
            yield value
        finally:
            self.pop()


class WithScope:
    """What a ``with`` statement enters, and what is called when it is left without an error."""

    def __init__(self, enter_value: Any, exit_cb: Callable[[], None]) -> None:
        self._enter_value = enter_value
        self._exit_cb = exit_cb

    def __enter__(self) -> Any:
        return self._enter_value

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._exit_cb()


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Allow walks over chains of many thousand nodes inside the block.

    Python before 3.11 keeps a C frame for each call: there, only functions under :func:`deep` may
    go deep, since they have a stack of their own.
    """
    before = sys.getrecursionlimit()
    if before >= RECURSION_LIMIT or (FRAMES_ON_C_STACK and not _has_large_stack()):
        yield
        return
    try:
        sys.setrecursionlimit(RECURSION_LIMIT)
        yield
    finally:
        # a caller deeper than the old limit cannot have it back
        with suppress(RecursionError):
            sys.setrecursionlimit(before)


def deep(function: Callable[P, T]) -> Callable[P, T]:
    """Run ``function`` under :func:`deep_recursion`."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        if FRAMES_ON_C_STACK and not _has_large_stack():
            return _on_large_stack(wrapped, args, kwargs)
        with deep_recursion():
            return function(*args, **kwargs)

    return wrapped


FRAMES_ON_C_STACK = sys.version_info < (3, 11)
_LARGE_STACK = 1 << 30  # bytes of address space; memory is used as far as the calls go
_LARGE_STACK_NAME = "tvm-deep"


def _has_large_stack() -> bool:
    return threading.current_thread().name == _LARGE_STACK_NAME


def _on_large_stack(function: Callable[P, T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """The result of a call in a thread of its own, in the caller's context."""
    outcome: list[Any] = []
    ended = threading.Event()
    context = copy_context()

    def run() -> None:
        try:
            outcome.extend((context.run(function, *args, **kwargs), None))
        except BaseException as error:  # it is raised again in the caller's thread
            outcome.extend((None, error))
        finally:
            ended.set()

    before = threading.stack_size(_LARGE_STACK)
    try:
        thread = threading.Thread(target=run, name=_LARGE_STACK_NAME)
        thread.start()
    finally:
        threading.stack_size(before)
    is_interrupted = _wait_for(ended, thread)
    result: T
    result, error = outcome
    if error is not None:
        raise error
    if is_interrupted:
        raise KeyboardInterrupt
    return result


def _wait_for(ended: threading.Event, thread: threading.Thread) -> bool:
    """Wait for a thread, which gets the exception of Ctrl-C; whether there was one."""
    is_interrupted = False
    while not ended.is_set():
        try:
            ended.wait(0.1)  # a signal that another thread gets does not end a wait
        except KeyboardInterrupt:
            is_interrupted = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
            )
    return is_interrupted


@contextmanager
def compiling() -> Iterator[None]:
    """The scope of ``lower`` and ``build``: deep recursion and infrequent garbage collection.

    Passes allocate many small acyclic nodes; the default threshold makes them 2.5 times slower.
    """
    before = gc.get_threshold()
    try:
        gc.set_threshold(200_000, 20, 20)
        with deep_recursion():
            yield
    finally:
        gc.set_threshold(*before)
