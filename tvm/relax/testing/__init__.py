"""Help for tests of relax."""

from . import lib_comparator, nn, runtime_builtin, vm
