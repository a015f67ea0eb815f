"""A service in a process of its own, which ends when the process that wants it does.

service = Service(serve, options)      # runs serve(options, control=..., ready=...) there
service.port                           # what it gave to `ready`
service.terminate()
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from tvm.contrib.popen_pool import dump_object, read_message, write_message

S = TypeVar("S", bound="OwnService")

_PATIENCE = 5.0  # seconds for a service to end by itself


class Service:
    """A process that serves.

    Parameters
    ----------
    serve : function or str
        A function, or ``"module:name"`` of one that only the process imports.
        ``serve(*args, control=descriptor, ready=function)`` serves until ``control`` can be read or
        ends, and calls ``ready`` with its port when it begins.
    args :
        The first arguments.
    """

    def __init__(self, serve: Callable[..., None] | str, *args: Any) -> None:
        child_reads, self._control = os.pipe()
        answers, child_writes = os.pipe()
        program = (
            f"import sys; sys.path[:] = {sys.path!r}\n"
            f"from tvm.rpc.process import main; main({child_reads}, {child_writes})"
        )
        try:
            # Ctrl-C in a terminal is for the program, which ends its services
            self._process = subprocess.Popen(
                [sys.executable, "-c", program],
                pass_fds=(child_reads, child_writes),
                start_new_session=True,
            )
        finally:
            os.close(child_reads)
            os.close(child_writes)
        try:
            with contextlib.suppress(BrokenPipeError):
                write_message(self._control, dump_object((serve, args)))
            self.port = self._first_answer(answers)
        except BaseException:
            self.terminate()
            raise
        finally:
            os.close(answers)

    @staticmethod
    def _first_answer(answers: int) -> int:
        message = read_message(answers)
        if message is None:
            raise RuntimeError("the process of the service ended before it began to serve")
        outcome = pickle.loads(message)
        if isinstance(outcome, BaseException):
            raise outcome
        return int(outcome)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def terminate(self) -> None:
        """End the service and all that it has started."""
        if self._control < 0:
            return
        os.close(self._control)
        self._control = -1
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # modules may be gone at the end of the interpreter
            self.terminate()


class OwnService:
    """Has a process that serves, and ends it with the ``with`` block or when it is dropped itself."""

    proc: Service | None = None

    def terminate(self) -> None:
        """End the process, and what it has started."""
        if self.proc is not None:
            self.proc.terminate()
            self.proc = None

    def __del__(self) -> None:
        self.terminate()

    def __enter__(self: S) -> S:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.terminate()


def main(reader: int, writer: int) -> None:
    """The life of the process."""
    os.set_inheritable(reader, False)
    os.set_inheritable(writer, False)
    message = read_message(reader)
    if message is None:
        return

    def answer(outcome: Any) -> None:
        with contextlib.suppress(OSError):
            write_message(writer, dump_object(outcome))

    has_begun = False

    def ready(port: int) -> None:
        nonlocal has_begun
        has_begun = True
        answer(port)
        os.close(writer)

    try:
        serve, args = pickle.loads(message)
        if isinstance(serve, str):
            module, _, name = serve.partition(":")
            serve = getattr(importlib.import_module(module), name)
        serve(*args, control=reader, ready=ready)
    except Exception as error:
        if has_begun:
            raise
        answer(error)
