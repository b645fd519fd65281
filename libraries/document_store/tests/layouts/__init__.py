"""Tests of the layouts of documents: pages, leaves, components and their merges."""
