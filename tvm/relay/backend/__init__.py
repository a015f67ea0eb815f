"""From fused programs to libraries: kernels, memory plan, graph JSON."""
