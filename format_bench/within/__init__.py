"""Find the settings of one format that suit a table: `recommend --within parquet`.

A study stores the table, and for Parquet each of its columns, under many settings in memory, and proposes few variants.
The race of `recommend` then measures these like any others.
"""
