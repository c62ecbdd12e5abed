"""Run a program on the stock event loop, as the measure of the others' speed."""

from __future__ import annotations

import asyncio

from cases import Case, yield_once
from driving import Found, Question, drive


class Stock:
    """It has one order, and no strategies."""

    one_search = True

    def find(self, case: Case, question: Question) -> Found:
        program = case.whole(yield_once)
        for _ in range(question.cap):
            asyncio.run(program())
        return Found(question.cap)


if __name__ == "__main__":
    drive(Stock())
