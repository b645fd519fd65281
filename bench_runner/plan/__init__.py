"""From suites and a request to chains, complete and checked before anything runs. Nothing is executed here."""
