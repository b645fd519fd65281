"""Image storages, which are ways of storing images. There is one module for each, listed in the registry."""
