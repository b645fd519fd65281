"""What is stored: tables that are synthetic (seeded), standard (TPC-H), realistic, or the user's own file; and images,
generated, well-known, or the user's own.

This package imports only the base class of errors from the others. Every data set is an Arrow table; a generated one
has the same bytes on every machine, which its digest proves.
"""
