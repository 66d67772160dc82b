"""Mechanisms: calibrate, draw noise, ask an oracle once, release."""
