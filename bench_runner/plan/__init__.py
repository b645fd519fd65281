"""Turning suites and a request into chains, which are complete and checked before anything runs. Nothing is executed
here."""
