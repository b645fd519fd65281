"""Write the interactive site, and the pages of a publication."""
