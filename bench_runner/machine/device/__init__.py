"""The limits of the device under a file: reads of pieces, several at a time, bypassing the page cache."""
