"""Define the interfaces of formats, image storages and document stores.

The interfaces cover operations, settings, capabilities, known changes to data (losses), the names of variants, and the
registry of formats. A variant is a format with its library and settings. This package imports no other package of the
project and no library that stores data, so that `format-bench list` starts fast.
"""
