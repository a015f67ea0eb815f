"""The global functions ``target.*``, by their names."""

from tvm._ffi._api import api_lookup

__getattr__ = api_lookup(__name__, "target")
