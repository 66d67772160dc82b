"""Randomness: bits of the operating system, noise of full relative precision, exact coins."""
