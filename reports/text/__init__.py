"""Reports for the terminal, and as Markdown, JSON and CSV."""
