"""Services that serve a stored copy while it is measured, and the network in between. They are started before
timing."""
