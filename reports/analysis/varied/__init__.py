"""Charts of measurements at several values of one parameter, and where the best variant changes."""
