"""The servers on Arrow Flight: catalog and storage nodes, tokens, tickets and limits."""
