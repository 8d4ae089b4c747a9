// trace.test.js: spans of OpenTelemetry, if its packages are there; errors of a worker and of a
// subscription that cannot begin.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { tq } from 'tq-postgres'

const pool = new pg.Pool({ max: 4 })
after(() => pool.end())
const queue = `trace/t${process.pid}`
const quiet = { signals: [], log: () => {} }

let api, sdk, hooks
try {
  api = await import('@opentelemetry/api')
  sdk = await import('@opentelemetry/sdk-trace-base')
  hooks = await import('@opentelemetry/context-async-hooks')
} catch {}

test('a run is a span, the child of the producer; of a retry one that links to it', { skip: hooks ? false : 'OpenTelemetry is missing' }, async () => {
  const exporter = new sdk.InMemorySpanExporter()
  api.trace.setGlobalTracerProvider(new sdk.BasicTracerProvider({ spanProcessors: [new sdk.SimpleSpanProcessor(exporter)] }))
  api.context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable())
  const tracer = api.trace.getTracer('test')
  const task = await tracer.startActiveSpan('order', async (span) => {
    const id = await tq(pool).enqueue(queue, {}, { policy: { retries: 1, retryOn: ['failed'] } })
    span.end()
    return id
  })
  const worker = await tq(pool).worker(queue, (_, ctx) => {
    api.trace.getActiveSpan().setAttribute('seen', ctx.runId)
    if (ctx.runId === 0) throw new Error('once')
  }, quiet)
  assert.equal((await tq(pool).waitFor(task, 20)).state, 'completed')
  await worker.stop()
  const [order, first, second] = exporter.getFinishedSpans()
  assert.equal(first.name, `process ${queue}`)
  assert.equal(first.spanContext().traceId, order.spanContext().traceId)
  assert.equal(first.status.code, api.SpanStatusCode.ERROR)
  assert.equal(first.attributes.seen, 0)
  assert.notEqual(second.spanContext().traceId, order.spanContext().traceId)
  assert.equal(second.links[0].context.spanId, order.spanContext().spanId)
})

test('what cannot begin says why', async () => {
  const worker = await tq(pool).worker('no such/queue/name', () => {}, quiet)
  await assert.rejects(worker.done, { code: 'TQ400' })
  const subscription = await tq(pool).subscribe('none', { 'no-exchange': '#' }, () => {})
  await assert.rejects(subscription.done, { code: 'TQ400' })
  await assert.rejects(tq(new pg.Client()).worker(queue, () => {}), TypeError)
  await assert.rejects(tq({ hosts: ['a', 'b'] }).enqueue(queue), TypeError)
  await assert.rejects(tq(pool).call.cancelTask({ task: 'x' }), { message: 'cancelTask() has no argument task' })
})

test('a message whose handler fails comes again', async () => {
  const name = `again-${process.pid}`
  const seen = []
  let done
  const twice = new Promise((resolve) => { done = resolve })
  const subscription = await tq(pool).subscribe(name, ['task-defined'], async (message, client) => {
    if (!JSON.stringify(message.payload).includes(queue)) return
    seen.push(message.id)
    if (seen.length === 1) await client.query('SELECT no_such_column')
    done()
  }, { transaction: true, log: () => {} })
  while ((await pool.query('SELECT FROM tq.subscription_overview WHERE name = $1', [name])).rows.length === 0);
  await tq(pool).enqueue(queue, {})
  await twice
  await subscription.stop()
  assert.equal(seen.length, 2)
  assert.equal(seen[0], seen[1])
  await tq(pool).call.unsubscribe({ name })
})

test('what a handler throws has a text, and what is notified need not be JSON', async () => {
  const jobs = { text: async () => { throw Object.create(null) }, symbol: async () => { throw Symbol('odd') }, loop: async (ctx) => { const loop = {}; loop.loop = loop; ctx.progress(loop, 2) }, slow: async (ctx) => { await new Promise((resolve) => { setTimeout(resolve, 3000); ctx.signal.addEventListener('abort', resolve) }) } }
  const worker = await tq(pool).worker(queue, (payload, ctx) => jobs[payload.job](ctx), { ...quiet, group: 'odd' })
  for (const job of ['text', 'symbol', 'loop']) {
    const id = await tq(pool).enqueue(queue, { job }, { retry: 0 })
    assert.equal((await tq(pool).waitFor(id, 20)).state, 'failed', job)
  }
  const slow = await tq(pool).enqueue(queue, { job: 'slow' })
  const ended = tq(pool).waitFor(slow, 20)
  for (let i = 0; i < 20; i++) {
    await pool.query('SELECT pg_notify(tq.worker_channel($1, $2), $3)', ['odd', worker.id, i % 2 ? 'not json' : 'null'])
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.equal((await ended).state, 'completed')
  await worker.stop()
})
