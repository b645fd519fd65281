"""The user's documents: JSON Lines, checked line by line."""
