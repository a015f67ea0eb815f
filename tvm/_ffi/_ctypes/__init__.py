"""The classic modules of the binding; there is one binding here, these are its names."""
