"""Object files and shared libraries of ELF: read, made, merged and linked without a system linker."""
