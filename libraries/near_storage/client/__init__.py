"""Who asks: connections, streams that go on at a replica, a Dataset for other engines."""
