from .results import CompareResult

__all__ = ["CompareResult"]
