"""An order sends a mail, and asks for an answer a day later."""

from typing import Any

import tq

app = tq.App()
sent: list[str] = []  # in the place of a server of mails


@app.task("shop/mail", retries=3)
def mail(order: int, to: str) -> dict[str, Any]:
    if to == "busy":
        raise tq.Retry("5 min")
    sent.append(to)
    return {"sent": to}


@app.task("shop/question")
def question(order: int) -> None:
    """Ask how it was."""


def order(conn: Any, number: int, to: str) -> None:
    mail.enqueue(conn, number, to)
    question.using(delay="1 day").enqueue(conn, number)
