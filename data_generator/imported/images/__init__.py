"""Images of the user and of well-known data sets. They are decoded in a confined process, checked and stored."""
