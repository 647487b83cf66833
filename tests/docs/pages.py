"""Pages of Markdown as tests see them: fenced blocks that run in order, and what the reader is told comes out.

A block opens with its language and, where it is a file that the reader saves, its name: ```` ```yaml mine.yaml ````.
`sh` is run line by line, `python` in one namespace per page, and `text` is what the block before it prints: its lines,
in this order, spaces apart; others may stand between them. Runs go in this process, and draw no pictures.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sim.cli import command_status

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^(```+)[ ]*(\w*)[ ]*(\S*)\n(.*?)^\1[ ]*$", re.M | re.S)
SHELL_ALONE = (". .venv/bin/activate",)
"""Lines that make the reader's shell what that of the tests is."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block: its language, the file it is saved as (or empty), its text, where it begins."""

    language: str
    file: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(language=match[2], file=match[3], text=match[4], line=text[: match.start()].count("\n") + 1)
        for match in FENCE.finditer(text)
    ]


def lines_in_order(wanted: str, said: str) -> str:
    """The first line of `wanted` that does not stand in `said` after those before it; empty where all do."""
    left = iter([" ".join(line.split()) for line in said.splitlines()])
    for line in map(" ".join, map(str.split, wanted.splitlines())):
        if line and line != "..." and not any(line in other for other in left):
            return line
    return ""


def commands_of(line: str) -> list[list[str]]:
    """The opticube commands that a line of shell runs; make says what its targets do."""
    words = shlex.split(line, comments=True)
    if words and words[0] == "make":
        for name in ("pyproject.toml", "constraints.txt"):
            Path(name).touch()
        told = subprocess.run(
            ["make", "-n", "-f", str(ROOT / "Makefile"), *words[1:]], capture_output=True, text=True, check=True
        )
        return [shlex.split(last)[1:] for last in told.stdout.splitlines() if last.startswith(".venv/bin/opticube ")]
    if not words or line in SHELL_ALONE:
        return []
    assert words[0] == "opticube", f"a line of shell that the tests do not know: {line}"
    return [words[1:]]


@dataclass
class Reader:
    """Somebody who does what a page says, in the current folder."""

    page: Path
    said: str = ""
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    ran: int = 0

    def read(self) -> None:
        """All blocks of the page in order."""
        for block in blocks_of(self.page):
            where = f"{self.page.relative_to(ROOT)}:{block.line}"
            if block.file:
                Path(block.file).write_text(block.text, encoding="utf-8")
            if block.language == "text":
                missing = lines_in_order(block.text, self.said)
                assert not missing, f"{where}: not said: {missing}\n{self.said}"
            elif block.language == "yaml":
                assert yaml.safe_load(block.text), where
            elif block.language in ("sh", "python"):
                self.said = "".join(self._shell(block) if block.language == "sh" else [self._python(block)])
                self.ran += 1
            else:
                assert block.language == "csv", f"{where}: a block of {block.language or 'no language'}"

    def _python(self, block: Block) -> str:
        said = io.StringIO()
        code = compile("\n" * block.line + block.text, str(self.page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(said):
            exec(code, self.names)
        return said.getvalue()

    def _shell(self, block: Block) -> Iterator[str]:
        for line in block.text.splitlines():
            for words in commands_of(line):
                quick = ["--workers", "1", "--set", "run.pictures=[]"] if words[0] == "run" else []
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    status = command_status([*words, *quick])
                assert status == 0, f"{self.page.name}: {line}: status {status}\n{said.getvalue()}"
                yield said.getvalue()
