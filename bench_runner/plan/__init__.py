"""Create the plan of a run from suites and a request. The plan is complete and checked before anything is executed. It
consists of chains. A chain is one save followed by the operations that read the saved copy."""
