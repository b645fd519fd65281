"""Documents of the user's: JSON Lines, checked line by line."""
