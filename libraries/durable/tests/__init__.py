"""A simulated disk that distinguishes written from synced data, for the tests of every library that stores files."""
