"""Services that serve a stored copy while it is measured, and the network between: started outside any clock."""
