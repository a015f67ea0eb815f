"""The other side of :class:`tvm.contrib.popen_pool.PopenWorker`.

    python -m tvm.exec.popen_worker <descriptor to read> <descriptor to write>

Reads calls, tells when each begins, and answers with the result or the exception, until the pipe ends.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
import threading
import time
import traceback
from typing import Any

from tvm.contrib.popen_pool import (
    StatusKind,
    dump_object,
    kill_child_processes,
    read_message,
    write_message,
)


def main() -> None:
    """Serve the calls."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tvm.exec.popen_worker <read descriptor> <write descriptor>")
    reader, writer = int(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=_end_with, args=(os.getppid(), reader), daemon=True).start()
    try:
        while (message := read_message(reader)) is not None:
            write_message(writer, _answer(message, writer))
    except BrokenPipeError:  # nobody waits for the answer any more
        kill_child_processes(os.getpid())


def _end_with(parent: int, reader: int) -> None:
    """End this process when the one that started it was killed, also in the middle of a call."""
    poller = select.poll()
    poller.register(reader, 0)  # wakes up at the end of the pipe only
    poller.poll()
    # who closes the pipe and lives lets the last call finish
    while os.getppid() == parent:
        time.sleep(0.2)
    kill_child_processes(os.getpid())
    os._exit(1)


def _answer(message: bytes, writer: int) -> bytes:
    try:
        # this imports what the call needs, which does not count against its timeout
        function, args, kwargs = pickle.loads(message)
    except Exception as error:
        _tell_start(writer)
        return _failure(error, traceback.format_exc())
    _tell_start(writer)
    try:
        return dump_object((StatusKind.COMPLETE, function(*args, **kwargs), ""))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        return _failure(error, traceback.format_exc())


def _tell_start(writer: int) -> None:
    write_message(writer, pickle.dumps((StatusKind.RUNNING, time.monotonic(), "")))


def _failure(error: BaseException, text: str) -> bytes:
    try:
        message = dump_object((StatusKind.EXCEPTION, error, text))
        pickle.loads(message)  # some exceptions are written and cannot be read
        return message
    except Exception:
        plain: Any = RuntimeError(f"{type(error).__name__}: {error}")
        return dump_object((StatusKind.EXCEPTION, plain, text))


if __name__ == "__main__":
    main()
