"""Who paid: guarded data, the ledger that opens it, its file, budget and releases."""
