"""Operations on values of many tuples at once, in numpy and pyarrow, used by generated code over columns."""
