"""Crash safety: a release that was paid for is never lost, and never comes out twice.

`lock`: one process at a time. `signals`: interrupts take effect where it is known what was paid. `folder`: where releases are
written. `sealed`: runs that can be killed and resumed; `fingerprint` knows their question again, `answers` keeps their answer.
"""
