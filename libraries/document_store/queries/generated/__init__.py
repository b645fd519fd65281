"""Execution by generated source: one function per plan and set of branches, compiled and cached."""
