"""Arrays as payloads: which nodes values are stored as, and the bytes of each."""
