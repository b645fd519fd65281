"""What lies on disk, durably: a node's partitions and the catalog's tables."""
