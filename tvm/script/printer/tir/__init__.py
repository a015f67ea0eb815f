"""How the loop level is written."""
