"""Write the page of claims: `python -m sim.claims > docs/claims.md`."""

from __future__ import annotations

import sys

from sim.claims.page import claims_page

if __name__ == "__main__":
    sys.stdout.write(claims_page())
