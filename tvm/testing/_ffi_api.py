"""The global functions ``testing.*``, by their names."""

from tvm._ffi._api import _init_api_prefix

_init_api_prefix(__name__, "testing")
