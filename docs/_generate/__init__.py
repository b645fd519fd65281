"""Write the tables of the pages that come from the code and the reference run: `python -m docs._generate`."""
