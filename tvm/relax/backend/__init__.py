"""Back ends of relax."""
