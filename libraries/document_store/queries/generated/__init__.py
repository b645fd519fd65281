"""Execution by generated Python source. One function is compiled and cached per plan and set of branches (kinds of
values)."""
