"""A simulated disk that distinguishes written from synced data. The tests of every library that stores files use it."""
