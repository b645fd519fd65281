"""The nodes on Arrow Flight: catalog and storage nodes, tokens, tickets and limits."""
