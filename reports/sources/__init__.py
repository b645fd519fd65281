"""Our figures beside what others have published, one module a source."""
