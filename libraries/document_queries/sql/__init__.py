"""SQL over documents: parse it, resolve its names, and translate it to a plan. Needs sqlglot."""
