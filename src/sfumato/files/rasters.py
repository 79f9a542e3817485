"""Images of users' own: rasters alone, of bounded size, as RGB on white."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
"""No others are read, whatever a file is called: PostScript would be run, by Ghostscript."""


def raster_size(
    file: str | Path | IO[bytes], *, called: str | Path, undone: str
) -> tuple[int, int]:
    """Width and height of an image; its pixels are not read.

    Args:
        file: A path, or bytes.
        called: Its name, for messages.
        undone: What was not done if it is none, for messages.

    Returns:
        Width and height in pixels.

    Raises:
        InvalidInput: It is no raster that can be read, or has more pixels than any screen.
    """
    from PIL import Image

    try:
        with Image.open(file, formats=FORMATS) as image:
            return image.size
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {called}; {undone}") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise InvalidInput(f"cannot read {called} as an image; {undone}") from None


def flat_raster(
    file: str | Path | IO[bytes], *, longest: int, called: str | Path, undone: str
) -> Image:
    """An image as RGB on white, shrunk until no side is above `longest`.

    It is shrunk first and put on white then: a small file may hold 2**27 pixels.

    Args:
        file: A path, or bytes.
        longest: Pixels along the longer side at most.
        called: Its name, for messages.
        undone: What was not done if it is none, for messages.

    Returns:
        An image of Pillow.

    Raises:
        InvalidInput: It is no raster that can be read, or has more pixels than any screen.
    """
    from PIL import Image

    try:
        with Image.open(file, formats=FORMATS) as image:
            clear = "A" in image.getbands() or "transparency" in image.info
            plain = image.convert("RGBA" if clear else "RGB")
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {called}; {undone}") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise InvalidInput(f"cannot read {called} as an image; {undone}") from None
    if max(plain.size) > longest:
        plain.thumbnail((longest, longest))
    if not clear:
        return plain
    white = Image.new("RGBA", plain.size, "white")
    return Image.alpha_composite(white, plain).convert("RGB")
