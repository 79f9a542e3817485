from .field_sensors import rows_without

__all__ = [
    "rows_without",
]
