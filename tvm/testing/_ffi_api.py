"""The global functions ``testing.*``, by their names."""

from typing import TYPE_CHECKING, Any

from tvm._ffi._api import _init_api_prefix

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_init_api_prefix(__name__, "testing")
