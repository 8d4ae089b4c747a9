"""Tests of shop.py in transactions that are rolled back: python3 -m unittest, or pytest."""

import unittest

import psycopg
import shop
from tq.testing import AsyncSandbox, Sandbox

import tq


class ShopTest(unittest.TestCase):
    def setUp(self) -> None:
        conn = self.enter(psycopg.connect())  # PGHOST, … of a database of tests
        self.box = self.enter(Sandbox(conn))

    def enter(self, block):
        self.addCleanup(block.__exit__, None, None, None)
        return block.__enter__()

    def test_an_order_sends_a_mail(self) -> None:
        shop.order(self.box.connection, 7, "ann")
        self.box.assert_enqueued("shop/mail", payload={"order": 7})
        [mail] = self.box.drain("shop/mail", shop.app.work)
        self.assertEqual(mail.result, {"sent": "ann"})

    def test_a_mail_that_is_not_taken_is_sent_again(self) -> None:
        shop.order(self.box.connection, 8, "busy")
        [mail] = self.box.drain("shop/mail", shop.app.work)
        self.assertEqual(mail.state, "pending")
        self.assertEqual(self.box.drain("shop/mail", shop.app.work), [])
        self.box.advance("6 min")
        self.assertEqual(len(self.box.drain("shop/mail", shop.app.work)), 1)

    def test_the_question_comes_a_day_later(self) -> None:
        shop.order(self.box.connection, 9, "ann")
        self.assertEqual(self.box.drain("shop/question", shop.app.work), [])
        self.box.advance("1 day")
        self.assertEqual(len(self.box.drain("shop/question", shop.app.work)), 1)

    def test_what_a_handler_that_fails_has_done_is_undone(self) -> None:
        def handler(payload, ctx):
            tq.enqueue(self.box.connection, "shop/bill", {"order": 7})
            raise RuntimeError("no paper")

        tq.enqueue(self.box.connection, "shop/print", {"order": 7})
        [done] = self.box.drain("shop/print", handler)
        self.assertEqual((done.state, str(done.error)), ("failed", "no paper"))
        self.box.refute_enqueued("shop/bill")

    def test_nothing_is_left_of_the_others(self) -> None:
        self.box.refute_enqueued("shop/mail")
        self.box.refute_enqueued("shop/question")


class AsyncTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_same_with_asyncio(self) -> None:
        async def handler(payload, ctx):
            return payload["order"] * 10

        async with await psycopg.AsyncConnection.connect() as conn, AsyncSandbox(conn) as box:
            await tq.enqueue(conn, "shop/remind", {"order": 7}, delay="2 hours")
            await box.assert_enqueued("shop/remind", payload={"order": 7}, count=1)
            await box.advance("2 hours")
            [done] = await box.drain("shop/remind", handler)
            self.assertEqual(done.result, 70)


if __name__ == "__main__":
    unittest.main()
