"""What is stored: tables that are synthetic (seeded), standard (TPC-H), realistic, or the user's own file; and images,
generated, well-known, or the user's own.

This room imports no other room. Every data set is an Arrow table; one that is generated has the same bytes on every
machine, and its digest says so.
"""
