"""Sections about reading part of a table: the fastest format for each operation, stored copies that stay open, training
loops, and limits of the device."""
