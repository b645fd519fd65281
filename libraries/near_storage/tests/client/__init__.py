"""Tests of the client, with servers on loopback."""
