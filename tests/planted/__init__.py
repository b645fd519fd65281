"""Plant faults in the code on purpose, to check that the tests find them."""
