"""A mapping from texts to plain dictionaries, one JSON file each, in the user's cache folder: routes that took long.

The folder is named after a digest of the sources that made the values, so that none outlives its code. A file that can
not be read or written is as good as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

from topology.compilation import cache_root, source_digest

ROUTES_MODULE = "topology.routing.degraded"


class JsonFolder(MutableMapping[str, dict[str, Any]]):
    """Values by text in a folder; safe for several processes at once: each file is written whole, then renamed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, key: str) -> dict[str, Any]:
        try:
            stored = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise KeyError(key) from None
        if not isinstance(stored, dict) or stored.get("key") != key or not isinstance(stored.get("value"), dict):
            raise KeyError(key)
        value: dict[str, Any] = stored["value"]
        return value

    def __setitem__(self, key: str, value: dict[str, Any]) -> None:
        text = json.dumps({"key": key, "value": value})
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).replace(self._path(key))
        except OSError:
            return

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._path(key).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[str]:
        for path in sorted(self._folder.glob("*.json")):
            try:
                stored = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(stored, dict) and isinstance(stored.get("key"), str):
                yield stored["key"]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _path(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.json"


def routes_cache() -> MutableMapping[str, dict[str, Any]]:
    """The cache of routes around faults; one that forgets where no folder can be written."""
    root = cache_root()
    return {} if root is None else JsonFolder(root.parent / "routes" / source_digest(ROUTES_MODULE))
