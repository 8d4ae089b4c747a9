// cases.test.js: runs client/cases.json on the server of PGHOST, in its database.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, test } from 'node:test'
import pg from 'pg'
import { Defer, InternalError, MalformedPayload, ResourceUnavailable, Retry, Terminal, tq } from 'tq-postgres'

const { cases, without } = JSON.parse(readFileSync(new URL('../../cases.json', import.meta.url)))
const pool = new pg.Pool({ max: 5 })
const PATIENCE = 50000         // less than the minute after which a client looks by itself
after(() => pool.end())

const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())
const camels = (object = {}) => Object.fromEntries(Object.entries(object).map(([key, value]) => [camel(key), value]))

async function until (what, condition) {
  for (const end = Date.now() + PATIENCE; !await condition();) {
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`)
    await sleep(20)
  }
}

// Puts what is kept in the place of $name.
function filled (value, kept) {
  if (Array.isArray(value)) return value.map((one) => filled(one, kept))
  if (value !== null && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, filled(one, kept)]))
  if (typeof value !== 'string') return value
  if (/^\$\w+$/.test(value) && value.slice(1) in kept) return kept[value.slice(1)]
  return value.replace(/\$(\w+)/g, (all, name) => name in kept ? (typeof kept[name] === 'string' ? kept[name] : JSON.stringify(kept[name])) : all)
}

// Of an object the keys that are expected.
function matches (actual, expected) {
  if (actual instanceof Date) actual = actual.toISOString()
  if (Array.isArray(expected)) return Array.isArray(actual) && actual.length === expected.length && expected.every((one, i) => matches(actual[i], one))
  if (expected !== null && typeof expected === 'object') return actual !== null && typeof actual === 'object' && Object.keys(expected).every((key) => matches(actual[key], expected[key]))
  return actual === expected
}

function handlerOf (state) {
  const aborted = (signal) => new Promise((_, reject) => {
    const fail = () => { state.saw.push('aborted'); reject(signal.reason) }
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail, { once: true })
  })
  const complete = async (payload, ctx, end) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await tq(client).enqueue(payload.then, {})
      await ctx.complete(client, payload.value)
      await client.query(end)
    } finally { client.release() }
  }
  const all = {
    return: (payload) => payload.value,
    fail: ({ message }) => { throw new Error(message) },
    retry: ({ delay }) => { throw new Retry(delay) },
    defer: ({ delay }) => { throw new Defer(delay) },
    terminal: ({ message }) => { throw new Terminal(message) },
    malformed: () => { throw new MalformedPayload('bad') },
    unavailable: () => { throw new ResourceUnavailable() },
    internal: () => { throw new InternalError() },
    hang: (_, ctx) => aborted(ctx.signal),
    stubborn: () => new Promise((resolve) => state.stubborn.push(resolve)),
    sleep: async (payload, ctx) => { await sleep(payload.seconds * 1000, null, { signal: ctx.signal }); return payload.value },
    progress: ({ done, total, message, seconds }, ctx) => { ctx.progress(done, total, message); return sleep(seconds * 1000) },
    result: ({ value }, ctx) => ctx.result(value),
    complete: (payload, ctx) => complete(payload, ctx, 'COMMIT'),
    complete_rollback: (payload, ctx) => complete(payload, ctx, 'ROLLBACK'),
    nul: () => '\0',
    large: () => 'x'.repeat(2e6),
    unserializable: () => 10n,
  }
  return (payload, ctx) => {
    state.saw.push(payload?.n)
    return all[payload?.do ?? 'return'](payload ?? {}, ctx)
  }
}

// Returns what a step returns.
async function does (step, q, kept, state) {
  const db = q.db ?? pool
  if (step.sql) return Object.values((await db.query(step.sql)).rows[0] ?? {})[0]
  if (step.until) return until(step.until, async () => Object.values((await db.query(`SELECT ${step.until}`)).rows[0])[0])
  if (step.call) return q.client.call[camel(step.call)](camels(step.args))
  if ('enqueue' in step) return q.client.enqueue(kept.q, step.enqueue, camels(step.options))
  if (step.enqueue_many) return q.client.enqueueMany(kept.q, step.enqueue_many, camels(step.options))
  if (step.wait_for) return q.client.waitFor(step.wait_for, step.timeout)
  if (step.worker) {
    state.saw.length = 0
    const config = { ...pool.options, application_name: kept.app }
    const options = { group: 'cases', id: `${kept.app}-${++state.workers}`, signals: [], log: () => {}, ...camels(step.worker) }
    return tq(config).worker(step.queues ?? kept.q, handlerOf(state), options)
  }
  if (step.subscribe) {
    const messages = []
    const subscription = await tq(pool).subscribe(kept.sub + '-s', step.subscribe, (message) => { messages.push(message) }, { transaction: step.transaction ?? false })
    await until('the subscription', async () => (await pool.query('SELECT FROM tq.subscription_overview WHERE name = $1', [kept.sub + '-s'])).rows.length > 0)
    return Object.assign(subscription, { messages })
  }
  if (step.got) return until(JSON.stringify(step.got), () => kept[step.of].messages.some((message) => matches(message, step.got)))
  if (step.stop) {
    const began = Date.now()
    await kept[step.stop].stop({ timeout: step.timeout })
    if (step.within) assert.ok(Date.now() - began < step.within * 1000, `it stops within ${step.within} s`)
    return undefined
  }
  if (step.saw) return until(`${JSON.stringify(step.saw)}, not ${JSON.stringify(state.saw)}`, () => JSON.stringify(state.saw) === JSON.stringify(step.saw))
  if (step.saw_count) return assert.deepEqual([state.saw.length, new Set(state.saw).size], [step.saw_count, step.saw_count])
  if (step.release) return state.stubborn.splice(0).forEach((release) => release())
  throw new Error(`no step is ${JSON.stringify(step)}`)
}

async function run (steps, q, kept, state) {
  for (const raw of steps) {
    if (raw.transaction && raw.end) {
      const client = await pool.connect()
      await client.query('BEGIN')
      await run(raw.transaction, { client: tq(client), db: client }, kept, state).finally(() => client.query(raw.end).finally(() => client.release()))
      continue
    }
    const step = filled(raw, kept)
    const what = JSON.stringify(step)
    if (step.error) {
      await assert.rejects(does(step, q, kept, state), (error) => { assert.equal(error.code, step.error, what); return true }, what)
      continue
    }
    const value = await does(step, q, kept, state)
    if (step.as) kept[step.as] = value instanceof Date ? value.toISOString() : value
    if ('expect' in step) assert.ok(matches(value, step.expect), `${what}\nreturns ${JSON.stringify(value)}`)
  }
}

for (const [i, one] of cases.entries()) {
  test(one.name, { skip: without.node.includes(one.name), timeout: 600000 }, async () => {
    const id = `n${i}-${process.pid}`
    const kept = { q: `cases/${id}`, app: `app-${id}`, sub: `sub-${id}` }
    const state = { saw: [], stubborn: [], workers: 0 }
    try {
      await run(one.steps, { client: tq(pool) }, kept, state)
    } finally {
      for (const value of Object.values(kept)) if (typeof value?.stop === 'function') await value.stop({ timeout: 0 })
      state.stubborn.forEach((release) => release())
    }
  })
}
