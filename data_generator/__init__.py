"""What is stored: tables that are synthetic (seeded), standard (TPC-H), realistic, or the user's own file.

This room imports no other room. Every data set is an Arrow table that every machine makes with the same
bytes; its digest says so.
"""
