"""The user's images and well-known ones: found, decoded in a confined process, checked and stored."""
