"""The slow reference for clients: patience, cancellations, limits at the door, retries with backoff."""

from __future__ import annotations

from tests.serving.naive import FAR, Naive, Replica, Request

REJECTED, TIMED_OUT, CANCELLED = 5, 6, 7


def mixed(value: int) -> int:
    """Two rounds of folding and multiplying 32 bits, folded once more."""
    for _ in range(2):
        value = (value ^ value >> 16) * 73244475 % 2**32
    return value ^ value >> 16


def draw(seed: int, number: int) -> int:
    """The hash of a seed of 53 bits and a number."""
    return mixed(mixed(seed % 2**32 ^ mixed(number)) ^ seed // 2**32)


class ClientNaive(Naive):
    """What clients do is one more kind of event: after ends of passes, before arrivals, by order of first arrival."""

    acts = True

    def send(self, request: Request, t: int) -> None:
        """One more attempt: its deadline begins, the limits are asked, then it waits."""
        self.count["attempts"] += 1
        request.attempt += 1
        request.deadline = t + self.rules.patience
        request.event = min(request.deadline, request.cancel, FAR)
        replica = self.choose(request)
        if self.is_over_limits(replica, request):
            self.end_attempt(request, t, REJECTED)
        else:
            self.wait_at(replica, request, t, by_age=False)

    def is_over_limits(self, replica: Replica | None, request: Request) -> bool:
        """Queue, outstanding, predicted time to first token."""
        rules = self.rules
        waiting = len(self.room if replica is None else replica.queue)
        outstanding = waiting if replica is None else self.outstanding(replica)
        if waiting >= rules.max_queue or outstanding >= rules.max_outstanding:
            return True
        return rules.max_ttft < FAR and self.predicted(replica, request.prompt) > rules.max_ttft

    def end_attempt(self, request: Request, t: int, reason: int) -> None:
        """Back off, or be gone."""
        rules = self.rules
        request.leaving, request.kv, request.chunk, request.blocks, request.decoding = 0, 0, 0, 0, False
        request.host = None
        if reason != CANCELLED:
            self.count["attempts_rejected" if reason == REJECTED else "attempts_timed_out"] += 1
        if reason == CANCELLED or request.attempt == rules.attempts:
            request.status, request.finish, request.event = reason, t, FAR
            self.count[{5: "rejected", 6: "timed_out", 7: "cancelled"}[reason]] += 1
            self.end_turn(request, t)
            return
        self.count["discarded_tokens"] += request.sent
        request.first, request.sent, request.redo = -1, 0, 0
        share = draw(request.seed, request.attempt) / 2**32
        wait = int(rules.backoff * 2 ** (request.attempt - 1) * (1.0 - rules.jitter / 2**32 * share))
        request.away, request.since = True, t
        request.event = max(t, min(t + max(1, wait), request.cancel))

    def client_acts(self, request: Request, t: int) -> None:
        """Leave a pass that has ended, come back, cancel, or lose patience; or send the next turn."""
        if request.thinking:
            super().client_acts(request, t)
            return
        request.event = FAR
        if request.leaving:
            self.stop(request, t)
        elif request.away:
            request.away = False
            request.book("client_backoff", t)
            if request.cancel <= t:
                self.end_attempt(request, t, CANCELLED)
            else:
                self.send(request, t)
        elif request.cancel <= t:
            self.quit(request, t, CANCELLED)
        elif self.is_overdue(request):
            self.quit(request, t, TIMED_OUT)
        else:
            request.event = request.cancel

    def is_overdue(self, request: Request) -> bool:
        """By what the client waits for."""
        runs = any(request in replica.running for replica in self.replicas)
        if self.rules.until == "admission":
            return request.first < 0 and not runs
        return request.first < 0 or self.rules.until == "answer"

    def quit(self, request: Request, t: int, reason: int) -> None:
        """What waits leaves at once, what runs at the end of the pass in flight."""
        for replica in self.replicas:
            if request in replica.running:
                request.leaving = reason
                if replica.flight is None:
                    self.stop(request, t)
                else:
                    request.event = replica.flight.end
                return
        if request in self.room:
            self.book_room(t)
            self.room.remove(request)
        for replica in self.replicas:
            if request in replica.queue:
                if replica.dead:
                    request.book("undetected_dead_replica", t)
                else:
                    self.book_queue(replica, t)
                replica.queue.remove(request)
                if replica.boundary is not None:
                    replica.boundary = min(replica.boundary, t)
        self.wake_idle(t)
        self.end_attempt(request, t, reason)

    def stop(self, request: Request, t: int) -> None:
        """No longer runs."""
        replica = next(replica for replica in self.replicas if request in replica.running)
        replica.running.remove(request)
        self.leave_prefix(replica, request)
        if not request.decoding:
            request.book("kv_blocked", t)
        self.end_attempt(request, t, request.leaving)

    def finish(self, t: int) -> None:
        """Those that are away are censored too."""
        super().finish(t)
        for request in self.requests:
            if request.away:
                request.book("client_backoff", t)
                request.finish, request.status = t, 2
