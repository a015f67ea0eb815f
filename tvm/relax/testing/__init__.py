"""Help for tests of relax."""

from . import lib_comparator, nn, relay_translator, runtime_builtin, transform, vm
