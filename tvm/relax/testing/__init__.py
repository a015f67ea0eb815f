"""Help for tests of relax."""
