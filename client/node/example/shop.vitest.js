// shop.vitest.js: the same by vitest.
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { sandbox } from 'tq-postgres/testing'
import { mailer, order } from './shop.js'

const pool = new pg.Pool()
afterAll(() => pool.end())

test('an order sends a mail', async (context) => {
  const box = await sandbox(pool, context)
  await order(box.client, { number: 7, to: 'ann' })
  await box.assertEnqueued('shop/mail', { payload: { order: 7 } })
  expect((await box.drain('shop/mail', mailer(() => 'ok')))[0].result).toEqual({ sent: 'ok' })
})
