"""Who is at work on a study: signs of life in the study itself, wherever it is kept.

Each process that works on a study has an attribute of it with a number that it raises every few
seconds. A number that has not changed for a minute, by the watch of whoever looks, is of a dead
process: clocks of machines are never compared. On its own machine a death is seen at once.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from threading import Event, Thread
from typing import Any

from optuna import Study

from ihgnn_cli.jobs.alive import this_process, who_from_plain

HEARTBEAT = 10.0
"""Seconds from one sign of life to the next."""
STALE = 60.0
"""Seconds after which a process without a sign of life is dead."""
_PREFIX = "worker-"


class Presence:
    """The signs of life of this process, and what it knows of others.

    Signs are given while the object is entered.
    """

    def __init__(self, study: Study, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = secrets.token_hex(4)
        """What others know this process by."""
        self._study = study
        self._clock = clock
        self._who = asdict(this_process())
        self._seen: dict[str, tuple[object, float]] = {}
        self._ended = Event()
        self._thread = Thread(target=self._beat, name="signs of life", daemon=True)

    def __enter__(self) -> "Presence":
        self._sign(0)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(Exception):  # where the study is out of reach, others will see for themselves
            self._study.set_user_attr(f"{_PREFIX}{self.token}", None)

    def dead(self, tokens: Mapping[str, str | None]) -> list[str]:
        """Of these pieces of work, each with the token of who has it, those of dead processes.

        A piece without a token, whose process died before it could sign, is dead after a while.
        """
        signs = self._study.user_attrs
        found = []
        for piece, token in tokens.items():
            sign = signs.get(f"{_PREFIX}{token}") if token else None
            if self._is_dead(token or f"unsigned {piece}", sign, signed=token is not None):
                found.append(piece)
        return found

    def _is_dead(self, key: str, sign: Any, *, signed: bool) -> bool:
        if signed and sign is None:
            return True  # it has left, and said so
        with suppress(ValueError, KeyError, TypeError):
            lives = who_from_plain(sign).lives() if sign else None
            if lives is not None:
                return not lives
        beat = sign.get("beat") if isinstance(sign, dict) else None
        before, since = self._seen.get(key, (None, 0.0))
        if key not in self._seen or beat != before:
            self._seen[key] = beat, self._clock()
            return False
        return self._clock() - since >= STALE

    def _beat(self) -> None:
        number = 0
        while not self._ended.wait(HEARTBEAT):
            number += 1
            with suppress(Exception):  # a network that is away for a moment
                self._sign(number)

    def _sign(self, number: int) -> None:
        self._study.set_user_attr(f"{_PREFIX}{self.token}", {**self._who, "beat": number})
