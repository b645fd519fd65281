"""Define the interfaces of formats, image storages and document stores.

They cover operations, settings, capabilities, declared losses, the spelling of variants and the registry. This package
imports no other package of the project and no library that stores data, so that `format-bench list` starts fast.
"""
