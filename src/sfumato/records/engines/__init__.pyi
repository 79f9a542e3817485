from .databases import connected
from .duckdb import arrow_table, duckdb_engine
from .protocol import Files, RowEngine
from .registry import engine_named, engine_names, register_engine, unregister_engine
from .spark import spark_engine

__all__ = [
    "Files",
    "RowEngine",
    "arrow_table",
    "connected",
    "duckdb_engine",
    "engine_named",
    "engine_names",
    "register_engine",
    "spark_engine",
    "unregister_engine",
]
