"""Tests of stored data, on a simulated disk that loses what was not synced (libraries/durable/tests)."""
