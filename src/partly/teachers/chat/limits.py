"""Caps on calls, tokens, minutes and money. Nothing is sent that could go beyond a cap."""

from __future__ import annotations

import json
import math
import threading
import time
from dataclasses import dataclass, field

from partly.errors import SettingError

FRAME_TOKENS = 64  # added by a chat template to the texts
PICTURE_TOKENS = 4096  # upper bound for one picture
MILLION = 1e6


@dataclass(frozen=True)
class Caps:
    """Largest number of calls, tokens, minutes and money of one run; None for no cap.

    Prices are per million tokens, of prompts and of answers, in any currency.
    """

    calls: int | None = None
    tokens: int | None = None
    minutes: float | None = None
    money: float | None = None
    input_price: float | None = None
    output_price: float | None = None

    def __post_init__(self) -> None:
        wrong = [name for name, value in vars(self).items() if value is not None and not 0 <= value < math.inf]
        if wrong:
            raise SettingError(f"{', '.join(wrong)}: give numbers that are not negative.")
        if self.money is not None and None in (self.input_price, self.output_price):
            raise SettingError("A cap on money needs prices per million tokens: input_price and output_price.")

    def cost(self, tokens: tuple[int, int]) -> float:
        """Return the price of tokens of prompt and answer; 0 where no price is given."""
        prices = (self.input_price or 0.0), (self.output_price or 0.0)
        return (tokens[0] * prices[0] + tokens[1] * prices[1]) / MILLION


@dataclass
class Meter:
    """Counts the calls and tokens of a run, and reserves the most that pending requests can use."""

    caps: Caps = field(default_factory=Caps)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: int = 0  # calls with an unknown number of tokens; they count with their upper bound
    reached: str = ""  # the cap that ended the run

    def __post_init__(self) -> None:
        self._lock, self._pending = threading.Lock(), [0, 0, 0]  # reserved calls and tokens
        self._end = math.inf if self.caps.minutes is None else time.monotonic() + 60 * self.caps.minutes

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def money(self) -> float:
        return self.caps.cost((self.input_tokens, self.output_tokens))

    @property
    def seconds_left(self) -> float:
        """Seconds until the cap on minutes."""
        return self._end - time.monotonic()

    def reserve(self, most: tuple[int, int]) -> bool:
        """Reserve a call of at most `most` tokens; False if it could exceed a cap, and for every later call."""
        with self._lock:
            self.reached = self.reached or self._find_exceeded_cap(most)
            if self.reached:
                return False
            self._change(1, most)
            return True

    def settle(self, most: tuple[int, int], used: tuple[int, int] | None) -> None:
        """Replace a reservation by the tokens used; None counts the whole reservation."""
        with self._lock:
            self._change(-1, most)
            spent = most if used is None else used
            self.calls += 1
            self.input_tokens += spent[0]
            self.output_tokens += spent[1]
            self.estimated += used is None

    def release(self, most: tuple[int, int]) -> None:
        """Give back the reservation of a refused call, which costs nothing."""
        with self._lock:
            self._change(-1, most)

    def _change(self, sign: int, most: tuple[int, int]) -> None:
        self._pending = [old + sign * new for old, new in zip(self._pending, (1, *most), strict=True)]

    def _find_exceeded_cap(self, most: tuple[int, int]) -> str:
        calls, input_tokens, output_tokens = self._pending
        after = self.input_tokens + input_tokens + most[0], self.output_tokens + output_tokens + most[1]
        spending = {"calls": self.calls + calls + 1, "tokens": sum(after), "money": self.caps.cost(after)}
        for name, amount in spending.items():
            cap = getattr(self.caps, name)
            if cap is not None and amount > cap:
                return name
        return "minutes" if self.seconds_left <= 0 else ""


def most_tokens(body: bytes) -> tuple[int, int]:
    """Return upper bounds on the tokens of prompt and answer. A token of text has at least one byte."""
    content = json.loads(body)
    size = FRAME_TOKENS
    for message in content["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else [{"text": message["content"]}]
        size += sum(PICTURE_TOKENS if "image_url" in part else len(part["text"].encode()) for part in parts)
    answer = content.get("max_tokens") or content.get("max_completion_tokens") or FRAME_TOKENS
    return size, int(answer) * int(content.get("n") or 1)
