"""Reports for a terminal, as Markdown, JSON and CSV."""
