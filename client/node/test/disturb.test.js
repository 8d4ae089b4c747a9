// disturb.test.js: workers and servers that are killed, a pooler, a failover, memory.  PG_CONFIG
// names the installation, of which servers are started in a folder of their own.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { tq } from 'tq-postgres'

const { PG_CONFIG } = process.env
const skip = PG_CONFIG ? false : 'PG_CONFIG is not set'
const pooler = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find(existsSync)
const openssl = ['/usr/bin/openssl', '/bin/openssl'].find(existsSync)
const folder = mkdtempSync(join(tmpdir(), 'tq-'))
const bin = skip ? '' : execFileSync(PG_CONFIG, ['--bindir'], { encoding: 'utf8' }).trim()
const conf = readFileSync(new URL('../../../test/tq.conf', import.meta.url), 'utf8')
for (const name of Object.keys(process.env)) if (/^PG(?!_)/.test(name)) delete process.env[name]
Object.assign(process.env, { PGUSER: 'postgres', PGDATABASE: 'postgres', PGHOST: join(folder, 'a') })
const children = new Set()
let pool

const command = (name, ...args) => execFileSync(join(bin, name), args, { stdio: ['ignore', 'ignore', 'pipe'] })
const ctl = (name, ...args) => {
  const log = join(folder, `${name}.log`)
  try {
    command('pg_ctl', '-s', '-w', '-D', join(folder, name), '-l', log, ...args)
  } catch (error) {
    throw new Error(readFileSync(log, 'utf8').slice(-2000), { cause: error })
  }
}
const settings = (name) => writeFileSync(join(folder, name, 'postgresql.auto.conf'), `${conf}\nlisten_addresses = ''\nunix_socket_directories = '${join(folder, name)}'\njit = off\n`)
const sql = async (text, values) => Object.values((await pool.query(text, values)).rows[0] ?? {})[0]

async function until (text, values) {
  for (const end = Date.now() + 180000; ; await sleep(50)) {
    if (await sql(`SELECT ${text}`, values).catch(() => false)) return
    if (Date.now() > end) throw new Error(`waited in vain: ${text}`)
  }
}

// A program of test/programs; what it prints comes as lines.
function begin (name, args, options = []) {
  const child = spawn(process.execPath, [...options, fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url)), ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = []
  children.add(child)
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)))
  const said = async (line) => { for (const end = Date.now() + 180000; !lines.includes(line); await sleep(20)) assert.ok(Date.now() < end, `it does not say ${line}`) }
  return { child, lines, ended, said }
}

const quiet = { signals: [], log: () => {} }

before(async () => {
  if (skip) return
  command('initdb', '-D', join(folder, 'a'), '-U', 'postgres', '-A', 'trust', '-N', '--locale=C.UTF-8')
  settings('a')
  ctl('a', 'start')
  pool = new pg.Pool({ max: 5 }).on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  await pool.query('CREATE EXTENSION tq')
})

after(async () => {
  for (const child of children) child.kill('SIGKILL')
  await pool?.end()
  for (const name of ['a', 'b', 'c']) if (existsSync(join(folder, name, 'postmaster.pid'))) ctl(name, 'stop', '-m', 'immediate')
  rmSync(folder, { recursive: true, force: true })
})

test('a worker that is killed loses its claim, and another has the run', { skip }, async () => {
  const task = await tq(pool).enqueue('kill/it', { n: 1, seconds: 600 })
  const worker = begin('worker', ['kill/it', '2 s'])
  await worker.said('begin 1')
  worker.child.kill('SIGKILL')
  await worker.ended
  const other = await tq(pool).worker('kill/it', () => 'done', quiet)
  await until("tq.status($1) ->> 'state' = 'completed'", [task])
  assert.equal(await sql("SELECT tq.status($1) #>> '{runs,0,reasonResolved}'", [task]), 'claim-expired')
  await other.stop()
})

test('SIGTERM gives back, and ends the worker', { skip }, async () => {
  const task = await tq(pool).enqueue('term/it', { n: 1, seconds: 600 })
  const worker = begin('worker', ['term/it', '60 s'])
  await worker.said('begin 1')
  worker.child.kill('SIGTERM')
  assert.equal(await worker.ended, 0)
  assert.equal(worker.lines.at(-1), 'end')
  assert.equal(await sql("SELECT tq.status($1) #>> '{runs,0,reasonResolved}'", [task]), 'worker-shutdown')
})

test('a server that is killed is waited for', { skip }, async () => {
  await tq(pool).call.setQueue({ taskQueueId: 'restart/it', settings: { claimTimeout: 5 } })
  await tq(pool).enqueueMany('restart/it', Array.from({ length: 2000 }, (_, n) => n))
  let worked = 0
  const worker = await tq(pool).worker('restart/it', async () => { await sleep(20); worked++ }, quiet)
  await until('(SELECT count(*) > 50 FROM tq.task_overview WHERE state = \'completed\')')
  ctl('a', 'restart', '-m', 'immediate')
  ctl('a', 'restart', '-m', 'fast')
  const session = "(SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tq-worker%' LIMIT 1)"
  let victim
  for (const end = Date.now() + 180000; !victim; await sleep(10)) {
    assert.ok(Date.now() < end, 'it connects again')
    victim = await sql(`SELECT ${session}`).catch(() => null)
  }
  process.kill(victim, 'SIGKILL')                     // the server ends all sessions, and begins again
  await until(`${session} <> ${victim}`)
  const [pid] = readFileSync(join(folder, 'a', 'postmaster.pid'), 'utf8').split('\n')
  process.kill(Number(pid), 'SIGKILL')
  for (const end = Date.now() + 180000; ; await sleep(100)) {
    try { ctl('a', 'start'); break } catch (error) { assert.ok(Date.now() < end, error.message) }      // sessions of the old one may be there
  }
  await until("NOT EXISTS (SELECT FROM tq.task_overview WHERE task_queue_id = 'restart/it' AND state IN ('pending', 'running'))")
  assert.ok(worked >= 500)
  await worker.stop()
  assert.equal(await sql("SELECT count(*)::int FROM tq.task_overview WHERE task_queue_id = 'restart/it' AND state <> 'completed'"), 0)
})

test('through PgBouncer in transaction mode', { skip: skip || !pooler && 'there is no pgbouncer' }, async () => {
  writeFileSync(join(folder, 'bouncer.ini'), `[databases]\npostgres = host=${join(folder, 'a')}\n[pgbouncer]\npool_mode = transaction\nlisten_addr =
    unix_socket_dir = ${folder}\nlisten_port = 6432\nauth_type = any\nlogfile = ${join(folder, 'bouncer.log')}\nmax_client_conn = 50\ndefault_pool_size = 10\n`.replace('postgres = host', 'postgres = user=postgres host').replace(/^ +/gm, ''))
  const child = spawn(pooler, [join(folder, 'bouncer.ini')], { stdio: 'ignore' })
  children.add(child)
  const through = new pg.Pool({ host: folder, port: 6432, max: 3 }).on('error', () => {})
  for (const end = Date.now() + 120000; ; await sleep(50)) {
    if (await through.query('SELECT 1').then(() => true, () => false)) break
    assert.ok(Date.now() < end, 'PgBouncer answers')
  }
  const said = []
  const worker = await tq(through).worker('pooled/it', async ({ long }, ctx) => {
    if (long) await sleep(600000, null, { signal: ctx.signal }).catch(() => { said.push('aborted'); throw ctx.signal.reason })
    return 1
  }, { ...quiet, log: (level, text) => said.push(`${level}: ${text}`) })
  const client = await through.connect()
  await client.query('BEGIN')
  const quick = await tq(client).enqueue('pooled/it', {})
  await client.query('COMMIT')
  client.release()
  assert.deepEqual(await tq(through).waitFor(quick, 60), { state: 'completed', result: 1 })
  const long = await tq(through).enqueue('pooled/it', { long: true })
  await until("tq.status($1) ->> 'state' = 'running'", [long])
  await tq(through).call.cancelTask({ taskId: long })
  for (const end = Date.now() + 60000; !said.includes('aborted'); await sleep(50)) assert.ok(Date.now() < end, 'a cancel is seen by a reclaim')
  assert.equal(said.filter((text) => /^warning: a pooler is between/.test(text)).length, 1)
  const began = Date.now()
  await worker.stop()
  assert.ok(Date.now() - began < 20000, 'a claim that waits is canceled through it')
  const subscription = await tq(through).subscribe('pooled', ['task-completed'], () => {})
  await assert.rejects(subscription.done, { code: '0A000', hint: /Connect to the server itself/ })
  const messages = []
  const polled = await tq(through).subscribe('pooled', ['task-completed'], (message) => { messages.push(message.payload.status.taskId) }, { poll: 0.2, transaction: true, log: () => {} })
  await until("EXISTS (SELECT FROM tq.subscription_overview WHERE name = 'pooled')")
  const other = await tq(through).worker('pooled/it', () => 2, quiet)
  const last = await tq(through).enqueue('pooled/it', {})
  for (const end = Date.now() + 120000; !messages.includes(last); await sleep(50)) assert.ok(Date.now() < end, 'a subscription that polls has the message')
  await polled.stop()
  await other.stop()
  await through.end()
  child.kill('SIGTERM')
})

// Starts something at a free port, which another process may take just before.
async function startAt (start) {
  for (let tries = 5; ; tries--) {
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address()
    free.close()
    await once(free, 'close')
    try { start(port); return port } catch (error) { if (tries === 1) throw error }
  }
}

// A proxy that lets none pass but those who begin with a request for TLS.
async function tlsOnly (port) {
  const refused = []
  const server = createServer((socket) => socket.once('data', (first) => {
    if (first.readUInt32BE(4) !== 80877103) { refused.push(first); socket.destroy(); return }
    const other = connect(port, '127.0.0.1', () => { other.write(first); socket.pipe(other).pipe(socket) })
    for (const one of [socket, other]) one.on('error', () => {}).on('close', () => { socket.destroy(); other.destroy() })
  })).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, refused, port: server.address().port }
}

test('by TLS, also what cancels a claim that waits', { skip: skip || !openssl && 'there is no openssl' }, async () => {
  const files = ['server.key', 'server.crt'].map((name) => join(folder, 'a', name))
  execFileSync(openssl, ['req', '-new', '-x509', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-newkey', 'rsa:2048', '-keyout', files[0], '-out', files[1]], { stdio: 'ignore' })
  chmodSync(files[0], 0o600)
  command('pg_basebackup', '-h', join(folder, 'a'), '-U', 'postgres', '-D', join(folder, 'c'), '-X', 'stream', '-c', 'fast')
  settings('c')
  const port = await startAt((port) => ctl('c', 'start', '-o', `-c ssl=on -c listen_addresses=127.0.0.1 -c port=${port}`))
  const proxy = await tlsOnly(port)
  const config = { host: '127.0.0.1', port: proxy.port, ssl: { rejectUnauthorized: false } }
  const other = new pg.Pool({ ...config, max: 2 }).on('error', () => {})
  const codes = []
  const spy = Object.assign(new pg.Pool(config), { Client: class extends pg.Client {
    query (...given) { return super.query(...given).catch((error) => { codes.push(error.code); throw error }) }
  } })
  const worker = await tq(spy).worker('tls/it', () => 5, { ...quiet })
  assert.deepEqual(await tq(other).waitFor(await tq(other).enqueue('tls/it'), 60), { state: 'completed', result: 5 })
  const waits = async () => (await other.query("SELECT FROM pg_stat_activity WHERE application_name = 'tq-worker-main' AND wait_event_type = 'Extension'")).rowCount > 0
  for (const end = Date.now() + 120000; !await waits(); await sleep(20)) assert.ok(Date.now() < end, 'it waits')
  await worker.stop()
  assert.deepEqual(codes, ['57014'])
  await spy.end()
  assert.equal(proxy.refused.length, 0)
  await assert.rejects((await tq({ ...config, ssl: true }).worker('tls/it', () => 5, quiet)).done, { code: /SIGNED|CERT/ })
  await other.end()
  proxy.server.close()
  ctl('c', 'stop', '-m', 'immediate')
})

test('a failover to the second host', { skip }, async () => {
  command('pg_basebackup', '-h', join(folder, 'a'), '-U', 'postgres', '-D', join(folder, 'b'), '-R', '-X', 'stream', '-c', 'fast')
  rmSync(join(folder, 'b', '.s.PGSQL.5432.lock'), { force: true })
  const [, conninfo] = /^(primary_conninfo.*)$/m.exec(readFileSync(join(folder, 'b', 'postgresql.auto.conf'), 'utf8'))
  settings('b')
  writeFileSync(join(folder, 'b', 'postgresql.auto.conf'), `${readFileSync(join(folder, 'b', 'postgresql.auto.conf'), 'utf8')}\n${conninfo}\n`)
  ctl('b', 'start')
  const worker = await tq({ hosts: [join(folder, 'b'), join(folder, 'a')] }).worker('over/it', () => 1, quiet)
  const first = await tq(pool).enqueue('over/it', {})
  assert.equal((await tq(pool).waitFor(first, 60)).state, 'completed')
  await until('(SELECT bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication)')
  await pool.end()
  ctl('a', 'stop', '-m', 'immediate')
  ctl('b', 'promote')
  pool = new pg.Pool({ host: join(folder, 'b'), max: 5 }).on('error', () => {})
  const second = await tq(pool).enqueue('over/it', {})
  assert.equal((await tq(pool).waitFor(second, 60)).state, 'completed')
  await worker.stop()
})

test('memory does not grow with the tasks that were done', { skip }, async () => {
  process.env.PGHOST = existsSync(join(folder, 'b', 'postmaster.pid')) ? join(folder, 'b') : join(folder, 'a')
  const program = begin('memory', ['memory/it', '20000', '200000'], ['--expose-gc'])
  assert.equal(await program.ended, 0)
  const [few, many] = program.lines.map(Number)
  assert.ok(many < few + 2048, `${few} kB after 20,000 tasks, ${many} kB after 200,000 more`)
})
