"""Sections about reading part of a table: best format for each use, open copies, training loops, and device limits."""
