"""Find the settings of one format that suit a table: `recommend --within parquet`.

A study stores the table in memory under many settings; for Parquet, it also stores each column alone. The study
proposes a few variants. `recommend` then measures these variants in rounds, as it does for variants of several formats.
"""
