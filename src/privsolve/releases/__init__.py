"""What a mechanism gives back: a release to publish, and diagnostics that stay with the curator."""

from privsolve.releases.release import NOT_PRIVATE, Diagnostics, Release, Run

__all__ = ["NOT_PRIVATE", "Diagnostics", "Release", "Run"]
