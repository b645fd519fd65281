"""Services (servers) from which a worker reads a stored copy, and the simulated network between worker and service.
Services are started before timing."""
