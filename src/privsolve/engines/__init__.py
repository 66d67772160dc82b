"""Exact solvers of our own."""
