"""Draw the pictures of the pages anew: `python -m tests.docs`."""

from __future__ import annotations

from tests.docs.pictures import write_pictures

if __name__ == "__main__":
    write_pictures()
