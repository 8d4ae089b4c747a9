// testing.js: helpers for tests of code that enqueues tasks, and of its handlers.  All is done
// in one transaction, which is rolled back at the end of the test.
import { isDeepStrictEqual } from 'node:util'
import assert from 'node:assert/strict'
import { tq } from './index.js'
import { Run } from './run.js'

const CLAIM = `SELECT c.task_id, c.run_id, c.payload, c.credentials, c.task, c.status, 'infinity'::float8 AS lasts
  FROM tq.claim_work($1, 'test', 'test', 1, definition => true) c`

// Of an object the keys that are expected, at any depth.
function has (actual, expected) {
  if (expected === null || typeof expected !== 'object' || Array.isArray(expected)) return isDeepStrictEqual(actual, expected)
  return actual !== null && typeof actual === 'object' && Object.keys(expected).every((key) => has(actual[key], expected[key]))
}

class Sandbox {
  constructor (client, release) {
    Object.assign(this, { client, release, tq: tq(client), call: tq(client).call })
  }

  enqueue (queue, payload, options) { return this.tq.enqueue(queue, payload, options) }
  enqueueMany (queue, payloads, options) { return this.tq.enqueueMany(queue, payloads, options) }

  // Does the work of a run; what a handler that throws has done in the transaction is undone.
  async #work (row, queue, handler) {
    const run = new Run(row, queue, 0)
    await this.client.query('SAVEPOINT tq_run')
    let report, error
    try {
      report = run.completed(await handler(run.payload, run.context))
    } catch (fault) {
      await this.client.query('ROLLBACK TO tq_run')
      error = fault
      report = run.failed(fault)
    }
    if (error?.reason === 'defer') await this.call.deferTask({ taskId: run.taskId, runId: run.runId, after: error.retryDelay })
    else await this.call.resolve({ reports: [JSON.parse(report)] })
    const { state } = await this.call.status({ taskId: run.taskId })
    return { taskId: run.taskId, payload: run.payload, state, result: state === 'completed' ? await this.call.result({ taskId: run.taskId }) : null, error }
  }

  /** Works on all tasks of a queue that are due, and on those that come of it; returns what became of them. */
  async drain (queue, handler = () => {}, { limit = 10000 } = {}) {
    const done = []
    for (;;) {
      const { rows } = await this.client.query(CLAIM, [queue])
      if (rows.length === 0) return done
      if (done.length >= limit) throw new Error(`${queue} has more than ${limit} tasks: does a handler enqueue its own task again?`)
      done.push(await this.#work(rows[0], queue, handler))
    }
  }

  /** Lets so much time pass for tq in this transaction: delays, retries, deadlines, claims. */
  async advance (interval) {
    await this.client.query(`SELECT set_config('tq.clock_offset', round(extract(epoch FROM $1::interval + coalesce(nullif(current_setting('tq.clock_offset'), ''), '0')::interval)) || ' s', true)`,
      [typeof interval === 'number' ? `${interval} s` : interval])
    await this.call.upkeep()
  }

  /** The unresolved tasks of a queue, the first created first: taskId, payload, name, state, … */
  async enqueued (queue) {
    // Pages of a thousand, each after the last row of the one before; the newest task is found first.
    const { rows } = await this.client.query(`WITH RECURSIVE f AS (SELECT 1000::bigint AS n, NULL AS page, NULL::tq.slugid AS task_id, NULL AS state
        UNION ALL SELECT f.n + t.n, t.page, t.task_id, t.state FROM f, LATERAL (SELECT row_number() OVER () AS n, * FROM tq.find_tasks($1, f.page, 1000, '1 hour')) t WHERE f.n % 1000 = 0)
      SELECT task_id, state, tq.task(task_id) AS task FROM f WHERE task_id IS NOT NULL ORDER BY n DESC`, [{ queue, state: ['unscheduled', 'pending', 'running'] }])
    return rows.map(({ task_id: taskId, state, task }) => ({ taskId, state, name: task.metadata.name, payload: task.payload, priority: task.priority, tags: task.tags, task }))
  }

  /** Fails unless a queue has such a task; of payload and tags the keys that are given. */
  async assertEnqueued (queue, expected = {}, count) {
    const all = await this.enqueued(queue)
    const found = all.filter((task) => has(task, expected))
    if (count === undefined ? found.length === 0 : found.length !== count) {
      assert.deepEqual(all.map(({ payload, state }) => ({ payload, state })), expected, `${queue} has ${found.length} such tasks, not ${count ?? 'one'}`)
      assert.fail(`${queue} has ${found.length} such tasks, not ${count ?? 'one'}`)
    }
    return found[0]
  }

  refuteEnqueued (queue, expected = {}) { return this.assertEnqueued(queue, expected, 0) }

  /** Undoes all. */
  async rollback () {
    if (!this.release) return
    const release = this.release
    this.release = null
    await this.client.query('ROLLBACK').finally(release)
  }

  [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')] () { return this.rollback() }
}

// Begins a transaction on a client of a pool, which the end of the test rolls back: that of the
// context of node:test or of vitest, or else of await using, or rollback().
export async function sandbox (pool, context) {
  const client = await pool.connect()
  await client.query('BEGIN')
  const box = new Sandbox(client, () => client.release())
  const end = context?.after ?? context?.onTestFinished
  end?.call(context, () => box.rollback())
  return box
}
