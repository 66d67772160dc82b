"""Bridges to other privacy libraries; each module needs its own optional dependency."""
