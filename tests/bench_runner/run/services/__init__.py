"""Services that are measured: started, watched, and ended with the run."""
