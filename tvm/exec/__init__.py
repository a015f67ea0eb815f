"""Programs that are started as ``python -m tvm.exec.<name>``."""

from typing import NoReturn as _NoReturn

from tvm.support.absent import attribute_error as _attribute_error


def __getattr__(name: str) -> _NoReturn:
    raise _attribute_error("tvm.exec", name)
