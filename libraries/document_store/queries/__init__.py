"""How the store executes plans of `libraries.document_queries`: by indexes, over rows and over columns."""
