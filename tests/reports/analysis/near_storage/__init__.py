"""The model of throughput, rates of retrieval, and cost."""
