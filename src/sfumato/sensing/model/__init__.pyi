from .site import part_of_site

__all__ = [
    "part_of_site",
]
