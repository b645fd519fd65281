"""What the pages take from the code and from the reference run; `python -m docs._generate` renews it."""
