"""Global functions ``rpc.*`` as attributes of this module."""

from tvm._ffi._api import api_lookup

__getattr__ = api_lookup(__name__, "rpc")
