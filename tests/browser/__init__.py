"""The site in a Chromium."""
