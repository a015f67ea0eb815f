"""The global functions ``auto_scheduler.*``, by their names."""

from tvm._ffi._api import api_lookup

__getattr__ = api_lookup(__name__, "auto_scheduler")
