"""Charts of measurements at several values of one parameter. They show where the best variant changes."""
