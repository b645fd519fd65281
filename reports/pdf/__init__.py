"""Write the report as a PDF."""
