"""The slow reference for tiers below the cache: two lists per replica, the most recently left last."""

from __future__ import annotations

from tests.serving.naive import Naive, Replica


class TierNaive(Naive):
    """Pieces move down as their blocks are taken, and up when they are found."""

    def demote(self, replica: Replica, number: int) -> None:
        """To the host, and what that has no room for further down."""
        for pieces in (replica.host_pieces, replica.remote_pieces):
            if number in pieces:
                pieces.remove(number)
        if self.rules.host_pieces:
            replica.host_pieces.append(number)
            self.count["pieces_to_host"] += 1
            if len(replica.host_pieces) <= self.rules.host_pieces:
                return
            number = replica.host_pieces.pop(0)
        if self.rules.remote_pieces:
            replica.remote_pieces.append(number)
            self.count["pieces_to_remote"] += 1
            if len(replica.remote_pieces) <= self.rules.remote_pieces:
                return
            replica.remote_pieces.pop(0)
        self.count["pieces_dropped"] += 1

    def finds(self, replica: Replica, number: int) -> bool:
        """In the cache, or below."""
        return super().finds(replica, number) or number in (*replica.host_pieces, *replica.remote_pieces)

    def fetch(self, replica: Replica, run: list[int]) -> None:
        """Read what is below; the pass takes so much longer."""
        taken, any_read = 0, False
        for number in run:
            if number in replica.references:
                continue
            any_read = True
            for name, pieces in (("host", replica.host_pieces), ("remote", replica.remote_pieces)):
                if number in pieces:
                    pieces.remove(number)
                    self.count[f"{name}_hits"] += 1
                    taken += self.rules.host_piece_ns if name == "host" else self.rules.remote_piece_ns
            replica.references[number] = 0
        if any_read:
            replica.extra += max(1, taken)
            self.count["tier_ns"] += max(1, taken)

    def lose(self, number: int, t: int) -> None:
        """The host dies with the replica, the remote store does not."""
        self.advance(t)
        self.replicas[number].host_pieces = []
        super().lose(number, t)
