"""Print the page: `python -m tests.validation > docs/validation.md`."""

from __future__ import annotations

import sys

from tests.validation.chapters import whole_page

if __name__ == "__main__":
    sys.stdout.write(whole_page())
