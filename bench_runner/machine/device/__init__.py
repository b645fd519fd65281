"""What the device under a file can do: reads of pieces, several at a time, past the page cache."""
