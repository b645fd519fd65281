"""What figures of reading near the storage mean: throughput by selectivity, rates of retrieval, and cost."""
