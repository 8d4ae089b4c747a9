// shop.test.js: tests shop.js by node:test, in transactions that are rolled back.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { sandbox } from 'tq-postgres/testing'
import { mailer, order } from './shop.js'

const pool = new pg.Pool()              // PGHOST, PGDATABASE, … of a database of tests
after(() => pool.end())

test('an order sends a mail', async (t) => {
  const box = await sandbox(pool, t)
  await order(box.client, { number: 7, to: 'ann' })
  await box.assertEnqueued('shop/mail', { payload: { order: 7 } })
  const [mail] = await box.drain('shop/mail', mailer(() => 'ok'))
  assert.deepEqual(mail.result, { sent: 'ok' })
})

test('a mail that is not taken is sent again', async (t) => {
  const box = await sandbox(pool, t)
  const answers = ['busy', 'ok']
  await order(box.client, { number: 8, to: 'ann' })
  const send = mailer(() => answers.shift())
  assert.equal((await box.drain('shop/mail', send))[0].state, 'pending')
  assert.deepEqual(await box.drain('shop/mail', send), [])
  await box.advance('6 min')
  assert.deepEqual((await box.drain('shop/mail', send)).map(({ state }) => state), ['completed'])
})

test('the question comes a day later', async (t) => {
  const box = await sandbox(pool, t)
  await order(box.client, { number: 9, to: 'ann' })
  assert.equal((await box.drain('shop/question')).length, 0)
  await box.advance('1 day')
  assert.equal((await box.drain('shop/question')).length, 1)
})

test('nothing is left of the other tests', async (t) => {
  const box = await sandbox(pool, t)
  await box.refuteEnqueued('shop/mail')
  await box.refuteEnqueued('shop/question')
})
