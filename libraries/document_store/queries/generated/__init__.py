"""Ways of execution that write source: one function for each plan and each set of branches, compiled and kept."""
