"""Tests of what lies on disk, over the disk that loses what was not synced (libraries/durable/tests)."""
