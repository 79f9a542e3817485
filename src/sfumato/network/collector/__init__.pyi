from .store import StoredPacket, StoredRound, open_store, read_rounds

__all__ = ["StoredPacket", "StoredRound", "open_store", "read_rounds"]
