// testing.test.js: the helpers for tests of users: two hours of the clock, and what they fail for.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { Retry, tq } from 'tq-postgres'
import { sandbox } from 'tq-postgres/testing'

const pool = new pg.Pool({ max: 3 })
after(() => pool.end())
const queue = `testing/t${process.pid}`
const states = (done) => done.map(({ state }) => state)

test('two hours of the clock: delays, retries, claims, deadlines', async (t) => {
  const box = await sandbox(pool, t)
  const began = (await box.client.query("SELECT tq.status($1) #>> '{runs,0,scheduled}' AS at", [await box.enqueue(queue, 'now')])).rows[0].at
  await box.enqueue(queue, 'later', { delay: '2 hours' })
  await box.enqueue(`${queue}-r`, 'again', { retries: 5 })
  const lost = await box.enqueue(`${queue}-c`, 'lost', { retries: 5 })
  const late = await box.enqueue(`${queue}-d`, 'late', { deadline: '90 min' })
  await box.client.query("SELECT FROM tq.claim_work($1, 'g', 'w', claim_for => '1 hour')", [`${queue}-c`])
  let tries = 0
  const again = () => { tries++; throw new Retry('30 min') }
  assert.deepEqual(states(await box.drain(queue)), ['completed'])
  for (let minutes = 0; minutes < 120; minutes += 10) {
    assert.deepEqual(await box.drain(queue), [])
    await box.drain(`${queue}-r`, again)
    await box.advance('10 min')
  }
  assert.equal(tries, 4)
  assert.deepEqual((await box.drain(queue)).map(({ payload }) => payload), ['later'])
  assert.deepEqual(states(await box.drain(`${queue}-c`)), ['completed'])
  assert.equal((await box.call.status({ taskId: lost })).runs[0].reasonResolved, 'claim-expired')
  assert.equal((await box.call.status({ taskId: late })).runs.at(-1).reasonResolved, 'deadline-exceeded')
  const passed = new Date((await box.call.status({ taskId: await box.enqueue(queue) })).runs[0].scheduled) - new Date(began)
  assert.ok(passed >= 7200e3 && passed < 7260e3, `${passed} ms have passed`)
})

test('assertions fail with what the queue has', async (t) => {
  const box = await sandbox(pool, t)
  await box.enqueueMany(queue, [{ to: 'ann', n: { a: 1, b: 2 } }, { to: 'bob' }])
  assert.equal((await box.assertEnqueued(queue, { payload: { n: { a: 1 } } })).payload.to, 'ann')
  await box.assertEnqueued(queue, {}, 2)
  await assert.rejects(box.assertEnqueued(queue, { payload: { to: 'eve' } }), (error) => /has 0 such tasks/.test(error.message) && error.actual.length === 2)
  await assert.rejects(box.assertEnqueued(queue, {}, 1), /has 2 such tasks, not 1/)
  await assert.rejects(box.refuteEnqueued(queue, { payload: { to: 'bob' } }), /has 1 such tasks, not 0/)
  await box.refuteEnqueued(`${queue}-other`)
})

test('those of one millisecond are in the order of their creation', async (t) => {
  const box = await sandbox(pool, t)
  const numbers = Array.from({ length: 2500 }, (_, n) => n)
  const tasks = await box.enqueueMany(queue, numbers)
  for (const n of [0, 1100, 2200]) await box.call.changeTaskPriority({ taskId: tasks[n], priority: 'high' })
  assert.deepEqual((await box.enqueued(queue)).map(({ payload }) => payload), numbers)
})

test('what a handler does before it throws is undone, and one that never ends is found', async (t) => {
  const box = await sandbox(pool, t)
  await box.client.query('CREATE TEMP TABLE sent (n int)')
  await box.enqueue(queue, 1)
  const [failed] = await box.drain(queue, async () => { await box.client.query('INSERT INTO sent VALUES (1)'); throw new Error('no') })
  assert.deepEqual([failed.state, failed.error.message], ['failed', 'no'])
  assert.equal((await box.client.query('SELECT FROM sent')).rowCount, 0)
  await box.enqueue(queue, 2)
  await assert.rejects(box.drain(queue, () => box.enqueue(queue, 3).then(() => {}), { limit: 5 }), /more than 5 tasks/)
})

test('the end of a sandbox leaves nothing, also twice', async () => {
  const box = await sandbox(pool)
  const task = await box.enqueue(queue)
  await box[Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]()
  await box.rollback()
  await assert.rejects(tq(pool).call.status({ taskId: task }), { code: 'TQ404' })
  assert.equal(pool.idleCount, pool.totalCount)
})
