"""The client: connections, streams that resume at a replica, and a Dataset for other engines."""
