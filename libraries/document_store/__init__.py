"""A store of documents that change their shape: an LSM tree of columns or rows, usable alone.

It imports no other package of ours but `libraries.durable`. What users call is `DocumentStore`; the modules below know
one thing each.
"""
