// robust.test.js: what strangers notify, errors that are not of the database, timeouts of the
// user's pool, and a stop whose cancel comes at a bad moment.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, test } from 'node:test'
import pg from 'pg'
import { tq } from 'tq-postgres'
import { isLost } from '../errors.js'
import { timeOf } from '../query.js'

const pool = new pg.Pool({ max: 4 })
after(() => {
  setTimeout(() => process.exit(1), 5000).unref()       // what is left keeps the process, and fails
  return pool.end()
})
const quiet = { signals: [], log: () => {} }
let n = 0
const own = () => `robust/t${process.pid}-${++n}`
const value = async (text, values) => Object.values((await pool.query(`SELECT ${text}`, values)).rows[0])[0]

async function until (what, condition) {
  for (const end = Date.now() + 120000; !await condition(); await sleep(20)) assert.ok(Date.now() < end, `waited in vain: ${what}`)
}

// A pool of clients that do something else with some queries.
const poolOf = (query, config) => Object.assign(new pg.Pool(config), { Client: class extends pg.Client { query (...given) { return query(super.query.bind(this), ...given) } } })
const waits = (app) => value("count(*) > 0 FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Extension'", [app])

test('a notification, which any role can send, has the worker ask, once a second', async () => {
  let asked = 0
  const queue = own()
  const spy = poolOf((query, ...given) => { if (/reclaim_task/.test(given[0])) asked++; return query(...given) })
  const reasons = []
  const worker = await tq(spy).worker(queue, (_, { signal }) => new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => { reasons.push(signal.reason.reason); reject(signal.reason) })
  }), { ...quiet, group: 'odd' })
  const task = await tq(pool).enqueue(queue)
  await until('it listens, and has asked then', () => asked > 0)
  const taken = await value("tq.status($1) #>> '{runs,0,takenUntil}'", [task])
  const [before, began] = [asked, Date.now()]
  for (let i = 0; i < 20; i++) {
    await pool.query("SELECT pg_notify(tq.worker_channel('odd', $1), jsonb_build_object('runId', 0, 'reason', 'canceled', 'taskId', $2::text, 'n', $3::int)::text)", [worker.id, task, i])
    await sleep(100)
  }
  await until('it asks', () => value("tq.status($1) #>> '{runs,0,takenUntil}' > $2", [task, taken]))
  assert.ok(asked - before <= 2 + (Date.now() - began) / 1000, `it asks ${asked - before} times`)
  assert.deepEqual(reasons, [])
  await tq(pool).call.cancelTask({ taskId: task })
  await until('the run is aborted', () => reasons.length === 1)
  assert.deepEqual(reasons, ['canceled'])
  await worker.stop()
  await spy.end()
})

test('what is a lost connection, and what is not', () => {
  const error = (message, more) => Object.assign(new Error(message), more)
  const lost = [
    error('terminating connection', { severity: 'FATAL', code: '57P01' }), error('x', { severity: 'FATAL', code: '08P01' }), error('x', { severity: 'ERROR', code: '25006' }),
    error('transaction timeout', { severity: 'FATAL', code: '25P04' }), error('too many', { severity: 'FATAL', code: '53300' }), error('x', { severity: 'ERROR', code: '40001' }),
    error('read ECONNRESET', { code: 'ECONNRESET', syscall: 'read' }), error('connect ENOENT', { code: 'ENOENT', syscall: 'connect' }), error('x', { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }),
    error('Connection terminated unexpectedly'), error('Client was closed and is not queryable'), error('Client has encountered a connection error and is not queryable'),
    error('timeout expired'), error('Query read timeout'), new AggregateError([error('x', { code: 'ECONNREFUSED' }), error('x', { code: 'EHOSTUNREACH' })]),
  ]
  const not = [
    new TypeError('Converting circular structure to JSON'), error('circular reference detected while preparing "x" for query'), new RangeError('x'), undefined, null, 'text',
    error('open', { code: 'ENOENT', syscall: 'open' }), error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'), error('x', { code: 'ERR_INVALID_ARG_TYPE' }),
    error('The server does not support SSL connections'), error('x', { code: 'SELF_SIGNED_CERT_IN_CHAIN' }), error('x', { severity: 'ERROR', code: '22P02' }), error('x', { severity: 'ERROR', code: 'TQ409' }),
    new AggregateError([error('x', { code: 'ECONNREFUSED' }), new TypeError('x')]),
  ]
  for (const one of lost) assert.equal(isLost(one), true, one.message)
  for (const one of not) assert.equal(isLost(one), false, one?.message)
})

test('an error of the driver at a report ends that run alone', { timeout: 180000 }, async () => {
  const queue = own()
  let thrown = 0
  const broken = poolOf((query, text, values) => {
    if (/resolve/.test(text) && /poison/.test(values[0])) { thrown++; return Promise.reject(new TypeError('Converting circular structure to JSON')) }
    return query(text, values)
  })
  const worker = await tq(broken).worker(queue, (payload) => payload, quiet)
  const [bad, good] = await tq(pool).enqueueMany(queue, ['poison', 'good'], { retry: 0 })
  assert.deepEqual(await tq(pool).waitFor(good, 60), { state: 'completed', result: 'good' })
  assert.equal((await tq(pool).waitFor(bad, 60)).state, 'failed')
  assert.match(await value("error ->> 'message' FROM tq.run_overview WHERE task_id = $1", [bad]), /the report was refused: Converting circular/)
  assert.ok(thrown <= 2, `it is reported ${thrown} times`)
  await worker.stop()
  await broken.end()
})

test('an error of the driver at the first claim ends the worker, later it is said', { timeout: 180000 }, async () => {
  const queue = own()
  let fail = true
  const broken = poolOf((query, text, values) => fail && /claim_work/.test(text) ? Promise.reject(new RangeError('odd')) : query(text, values))
  await assert.rejects((await tq(broken).worker(queue, () => {}, quiet)).done, RangeError)
  fail = false
  const said = []
  const worker = await tq(broken).worker(queue, () => 1, { ...quiet, log: (level, text) => { said.push(text); throw new Error('a log that throws') } })
  assert.equal((await tq(pool).waitFor(await tq(pool).enqueue(queue), 60)).state, 'completed')
  fail = true
  await tq(pool).enqueue(queue)
  await until('it says so', () => said.includes('no task can be claimed: odd'))
  await sleep(500)
  assert.ok(said.length < 6, `it says so ${said.length} times`)
  fail = false
  const last = await tq(pool).enqueue(queue)
  assert.equal((await tq(pool).waitFor(last, 60)).state, 'completed')
  await worker.stop()
  await broken.end()
})

test('timeouts of the pool, of the role and of the driver end no claim that waits', { timeout: 180000 }, async () => {
  const config = { query_timeout: 1000, statement_timeout: 1000, lock_timeout: 1000, options: '-c statement_timeout=1000 -c idle_session_timeout=1000', application_name: own() }
  const short = new pg.Pool(config)
  const said = []
  const queue = own()
  const worker = await tq(short).worker(queue, ({ seconds }) => sleep(seconds * 1000, 'done'), { ...quiet, log: (level, text) => said.push(`${level}: ${text}`) })
  await until('it waits', () => waits(config.application_name))
  const began = await value('max(query_start)::text FROM pg_stat_activity WHERE application_name = $1', [config.application_name])
  await sleep(3000)
  assert.equal(await value('max(query_start)::text FROM pg_stat_activity WHERE application_name = $1', [config.application_name]), began)
  assert.deepEqual(said, [])
  const task = await tq(pool).enqueue(queue, { seconds: 3 })
  assert.deepEqual(await tq(pool).waitFor(task, 60), { state: 'completed', result: 'done' })
  assert.deepEqual(said, [])
  await assert.rejects(short.query('SELECT pg_sleep(2)'), 'the pool keeps them')
  await worker.stop()
  await short.end()
})

test('a report that is canceled comes again', { timeout: 180000 }, async () => {
  const queue = own()
  let canceled = 0
  const odd = poolOf((query, text, values) => /resolve/.test(text) && canceled++ < 3 ? query("DO $$ BEGIN RAISE query_canceled; END $$") : query(text, values))
  const worker = await tq(odd).worker(queue, () => 7, quiet)
  const task = await tq(pool).enqueue(queue, {}, { retry: 0 })
  assert.deepEqual(await tq(pool).waitFor(task, 60), { state: 'completed', result: 7 })
  await worker.stop()
  await odd.end()
})

test('a stop whose cancel comes before its statement ends it by a cancel all the same', { timeout: 180000 }, async () => {
  let begin
  const began = new Promise((resolve) => { begin = resolve })
  const app = own()
  const ends = []
  const late = poolOf(async (query, text, values) => {
    if (/claim_work/.test(text)) { begin(); await sleep(500) }
    return query(text, values).catch((error) => { ends.push(error.code); throw error })
  }, { application_name: app })
  const worker = await tq(late).worker(own(), () => {}, quiet)
  await began
  await worker.stop()
  assert.deepEqual(ends, ['57014'])
  await until('no session is left', () => value('count(*) = 0 FROM pg_stat_activity WHERE application_name = $1', [app]))
  await late.end()
})

test('a worker that cannot connect is stopped at once', { timeout: 180000 }, async () => {
  const { createServer } = await import('node:net')
  const sockets = []
  const deaf = createServer((socket) => sockets.push(socket)).listen(0)
  await until('the deaf server', () => deaf.address() !== null)
  const worker = await tq({ host: '127.0.0.1', port: deaf.address().port }).worker(own(), () => {}, quiet)
  await until('it connects', () => sockets.length > 0)
  const at = Date.now()
  await worker.stop()
  assert.ok(Date.now() - at < 8000, `it takes ${Date.now() - at} ms, as long as a connection may take`)
  deaf.close()
  for (const socket of sockets) socket.destroy()
})

test('a server that answers no more does not keep a stop', { timeout: 180000 }, async () => {
  const { connect, createServer } = await import('node:net')
  let silent = false
  const sockets = new Set()
  const proxy = createServer({ allowHalfOpen: true }, (socket) => {
    const { PGHOST: host = '/var/run/postgresql', PGPORT: port = 5432 } = process.env
    const other = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
    for (const [one, end] of [[socket, other], [other, socket]]) sockets.add(one.on('error', () => {}).on('data', (data) => silent || end.write(data)))
  }).listen(0, '127.0.0.1')
  await until('the proxy', () => proxy.address() !== null)
  const queue = own()
  const worker = await tq({ ...pool.options, host: '127.0.0.1', port: proxy.address().port }).worker(queue, () => sleep(1500), quiet)
  assert.equal((await tq(pool).waitFor(await tq(pool).enqueue(queue), 60)).state, 'completed')
  silent = true                       // there is a second session, which is kept for 10 seconds
  const stopped = worker.stop().then(() => 'stopped')
  assert.equal(await Promise.race([stopped, sleep(40000, 'it waits for an answer', { ref: false })]), 'stopped')
  for (const socket of sockets) socket.destroy()
  proxy.close()
})

test('a connection has one statement at a time, and progress is shown in whole numbers', { timeout: 180000 }, async () => {
  const queue = own()
  const warnings = []
  const warn = (warning) => warnings.push(warning.message)
  process.on('warning', warn)
  let running = 0
  let most = 0
  const spy = poolOf(async (query, text, values) => {
    most = Math.max(most, ++running)
    return query(text, values).finally(() => { running-- })
  })
  const worker = await tq(spy).worker(queue, async (_, ctx) => { ctx.progress(33.4, 100n, 'a third'); await sleep(1500) }, quiet)
  const tasks = await tq(pool).enqueueMany(queue, [1, 2, 3, 4])
  for (const task of tasks) assert.equal((await tq(pool).waitFor(task, 60)).state, 'completed')
  assert.deepEqual((await pool.query('SELECT DISTINCT done::int, total::int FROM tq.run_overview WHERE task_id = ANY ($1)', [tasks])).rows, [{ done: 33, total: 100 }])
  await worker.stop()
  process.off('warning', warn)
  assert.deepEqual(warnings, [])
  assert.ok(most <= 2, `${most} statements at a time on two connections`)
  await spy.end()
})

test('options that cannot be are refused, and leave nothing', async () => {
  const before = process.listenerCount('SIGTERM')
  for (const options of [{ concurrency: '10' }, { concurrency: 0 }, { concurrency: 1.5 }, { batch: -1 }, { stopTimeout: 'soon' }, { grace: {} }, { log: 'stderr' }, { concurency: 5 }]) {
    await assert.rejects(tq(pool).worker(own(), () => {}, options), TypeError, JSON.stringify(options))
  }
  await assert.rejects(tq(pool).worker(own(), 'handler'), TypeError)
  await assert.rejects(tq(pool).subscribe('s', ['task-completed']), TypeError)
  await assert.rejects(tq(pool).enqueue(own(), () => 1), TypeError)
  await assert.rejects(tq(pool).enqueueMany(own(), [1, undefined]), TypeError)
  assert.equal(process.listenerCount('SIGTERM'), before)
})

test('times that the client itself waits', () => {
  const times = { 3: 3000, '500 ms': 500, '500ms': 500, '1.5 s': 1500, '5 min': 300000, '5 mins': 300000, '2 hours': 7200000, '1 day': 86400000 }
  for (const [text, milliseconds] of Object.entries(times)) assert.equal(timeOf(text === '3' ? 3 : text), milliseconds, text)
  for (const wrong of ['', 'soon', '5', '1 month', '-1 s', null, undefined, {}]) assert.throws(() => timeOf(wrong), TypeError, `${wrong}`)
})

test('many workers of a process have one listener of a signal, which stops all', async () => {
  const before = process.listenerCount('SIGUSR2')
  const queue = own()
  const workers = await Promise.all(Array.from({ length: 15 }, () => tq(pool).worker(queue, () => {}, { log: () => {}, signals: ['SIGUSR2'] })))
  assert.equal(process.listenerCount('SIGUSR2'), before + 1)
  process.emit('SIGUSR2')
  await Promise.all(workers.map((worker) => worker.done))
  assert.equal(process.listenerCount('SIGUSR2'), before)
})

test('what a handler does after its end opens nothing', async () => {
  const queue = own()
  const app = own()
  let late
  const worker = await tq({ ...pool.options, application_name: app }).worker(queue, (_, ctx) => { late = ctx }, quiet)
  const task = await tq(pool).enqueue(queue)
  assert.equal((await tq(pool).waitFor(task, 60)).state, 'completed')
  await worker[Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]()
  await worker.done
  late.progress(1, 2)
  await sleep(300)
  assert.equal(await value('count(*)::int FROM pg_stat_activity WHERE application_name = $1', [app]), 0)
})

test('a subscription whose driver fails says so, and one is stopped at any moment', { timeout: 180000 }, async () => {
  const broken = poolOf((query, text, values) => /tq.fetch/.test(text) ? Promise.reject(new RangeError('odd')) : query(text, values))
  await assert.rejects((await tq(broken).subscribe(`robust-${process.pid}`, ['task-completed'], () => {}, { log: () => { throw new Error('log') } })).done, RangeError)
  for (const wait of [0, 1, 5, 20, 50]) {
    const one = await tq(pool).subscribe(`robust-${process.pid}`, ['task-completed'], () => {}, { log: () => {} })
    await sleep(wait)
    const at = Date.now()
    await one.stop()
    await one.done
    assert.ok(Date.now() - at < 20000, `${wait} ms`)
  }
  await tq(pool).call.unsubscribe({ name: `robust-${process.pid}` })
  await broken.end()
})
