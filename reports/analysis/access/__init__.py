"""What reports say of reading a part of a table: which format for which use, copies that stay open, training loops, and
how near to the device."""
