"""What was measured at several values of one parameter: the lines, and where their winner changes."""
