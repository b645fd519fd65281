"""Print reports on the terminal, and write them as Markdown, JSON and CSV."""
