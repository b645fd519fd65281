"""The user's images and the known ones: found, decoded in a process that is confined, checked and kept."""
