"""Experiments that can be repeated with one command."""
