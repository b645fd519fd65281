"""Durable storage on disk: a node's partitions and the catalog's tables."""
