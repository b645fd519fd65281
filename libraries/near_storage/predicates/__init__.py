"""Filters: their tree, their JSON form, binding to a schema, and evaluation on rows."""
