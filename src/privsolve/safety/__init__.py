"""Crash safety: a release that was paid for is never lost, and never comes out twice.

`signals`: interrupts take effect where it is known what was paid. `folder`: where releases are written, one process at a time.
`sealed`: runs that can be killed and resumed; `fingerprint` knows their question again.
"""
