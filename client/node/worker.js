// worker.js: claims tasks of a queue, has a handler work on them, and reports.
//
// The main connection claims, and waits in the database where there is nothing to do.  What has
// ended is reported with the next claim.  While the main connection waits, and when a run takes
// longer than a second, a second connection reports, reclaims, and listens for what is taken
// from the worker; it is closed when nothing runs for a while.
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, Lost } from './connection.js'
import { Outcome, isCanceled, loggerOf } from './errors.js'
import { intervalOf, timeOf } from './query.js'
import { Run, textOf } from './run.js'
import { inSpan, isTraced } from './trace.js'

const parsed = (json) => { try { return JSON.parse(json) } catch { return null } }

const WAIT = '60 s'             // of a claim that finds nothing
const LINGER = 5                // ms in which what has just begun may end before a claim waits
const AHEAD = 50                // ms of work that are claimed ahead
const LONG = 1000               // ms after which a run is reclaimed and listened for
const TICK = 200                // ms
const POOLED = 5000             // ms between reclaims where notifications do not come
const IDLE = 10000              // ms that the second connection is kept
const AGAIN = 200               // ms after which a cancel is repeated, for it may come before its statement
const CANCEL = 5000             // ms that a claim which is canceled may take
const LAST_REPORTS = 10000      // ms for reports at the end, if there is no server
// The timeouts that a role has are for others: through a pooler, which has another id of the process, nothing is set.
const BEGIN = `SELECT pg_backend_pid() AS pid, quote_ident(tq.worker_channel($2, $3)) AS channel,
  (SELECT count(set_config(name, '0', false)) FROM unnest('{statement_timeout,transaction_timeout,idle_session_timeout}'::text[]) AS name
    WHERE pg_backend_pid() = $1::int AND current_setting(name, true) <> '0')`
const LASTS = '(extract(epoch FROM c.taken_until - clock_timestamp()) * 1000)::float8 AS lasts'
const COLUMNS = `c.task_id, c.run_id, c.payload, c.credentials, c.task, c.status, ${LASTS}`
const RESOLVE = 'SELECT outcome, task_id, run_id FROM tq.resolve($1::jsonb)'
const OPTIONS = { concurrency: 10, batch: 500, group: 'node', stopTimeout: 30, grace: 5, signals: ['SIGTERM', 'SIGINT'], log: undefined, id: undefined, claimFor: undefined, definition: undefined }
let workers = 0

const say = (level, text) => { if (level !== 'debug') console.error(`tq ${level}: ${text}`) }
const reasonOf = (error) => [error.message || error.code, error.detail, error.hint].filter(Boolean).join('; ')

// Returns the options with defaults; what cannot be is a TypeError, before anything has begun.
function optionsOf (handler, given) {
  const options = { ...OPTIONS, ...given, log: given.log ?? say }
  if (typeof handler !== 'function' || typeof options.log !== 'function') throw new TypeError('the handler of a worker, and its log, are functions')
  for (const name in options) if (!(name in OPTIONS)) throw new TypeError(`a worker has no option ${name}`)
  const wrong = Object.entries({ concurrency: 1, batch: 0 }).find(([name, least]) => !Number.isInteger(options[name]) || options[name] < least)
  if (wrong) throw new TypeError(`${wrong[0]} of a worker is a number from ${wrong[1]}, not ${textOf(options[wrong[0]])}`)
  for (const name of ['stopTimeout', 'grace']) timeOf(options[name])
  return { ...options, signals: options.signals || [], log: loggerOf(options.log) }
}

const signaled = new Map()      // of a signal, the workers that it stops, by one listener of the process

function stopBy (signal, worker) {
  const all = signaled.get(signal) ?? new Set()
  if (all.size === 0) process.on(signal, all.listener = () => { for (const one of all) one.stop() })
  signaled.set(signal, all.add(worker))
}

function stopNoMore (signal, worker) {
  const all = signaled.get(signal)
  if (all?.delete(worker) && all.size === 0) process.off(signal, all.listener)
}

export class Worker {
  #main; #newSide; #side = null; #sql; #handler; #options; #queue; #traced
  #all = new Map()              // every run, by its ids
  #ready = []                   // claimed, not begun
  #running = new Set()
  #ended = []                   // to be reported
  #mean = Infinity              // ms that a run takes
  #waits = false                // whether the main connection is in a claim that waits, or ended
  #claimed = false              // whether a claim has succeeded
  #reporting = null; #wake = null; #timer = null; #idle = null
  #stopping = false; #stopped = null; #looping; #pooled = false

  constructor (source, queue, handler, options = {}) {
    this.#options = optionsOf(handler, options)
    this.id = options.id ?? `${hostname()}-${process.pid}-${++workers}`.replace(/[^\w.-]/g, '-').slice(-128)
    this.#queue = queue
    this.#handler = handler
    this.#traced = isTraced()
    this.#main = this.#connection(source, 'tq-worker-main', (client) => this.#begin(client))
    this.#sql = this.#statements(Array.isArray(queue))
    this.#newSide = () => this.#connection(source, 'tq-worker-side', (client) => this.#listen(client), true)
    for (const signal of this.#options.signals) stopBy(signal, this)
    this.#looping = this.#loop()
    /** Resolved when the worker has stopped; rejected where it cannot work. */
    this.done = this.#looping.then(() => this.stop(), async (error) => { await this.stop({ timeout: 0 }); throw error })
  }

  #connection ({ Client, config }, name, begin, patient) {
    return new Connection({ Client, config, name, begin, patient, waits: true, onError: (error) => this.#log('warning', reasonOf(error)) })
  }

  #statements (several) {
    const { group, claimFor, definition } = this.#options
    const own = [group, this.id]
    const last = [claimFor === undefined ? null : intervalOf(claimFor), definition ?? this.#traced]
    const claim = (wait) => (n) => [`SELECT 'claimed' AS outcome, ${COLUMNS}${several ? ', c.task_queue_id' : ''} FROM tq.claim_work($1::text${several ? '[]' : ''}, $2, $3, $4::int,
      wait => '${wait}', claim_for => $5::interval, definition => $6) c`, [this.#queue, ...own, n, ...last]]
    return {
      claim: claim('0'), wait: claim(WAIT),
      both: several ? null : (reports, n) => [`SELECT c.outcome, ${COLUMNS} FROM tq.resolve_and_claim($1::jsonb, $2, $3, $4, $5::int,
        claim_for => $6::interval, definition => $7) c`, [reports, this.#queue, ...own, n, ...last]],
    }
  }

  #log (level, text, run) { this.#options.log(level, run ? `${text} (task ${run.taskId}, run ${run.runId})` : text) }

  // ---- the loop of the main connection ----

  async #loop () {
    let pause = 0
    while (!this.#stopping) {
      try {
        if (await this.#turn()) pause = 0
      } catch (error) {
        if (error instanceof Lost || isCanceled(error)) continue          // it is made again; a wait was canceled
        if (!this.#claimed) throw error
        this.#log('error', `no task can be claimed: ${reasonOf(error)}`)
        pause = Math.min(Math.max(100, 2 * pause), 30000)
        await this.#change(pause)
      }
    }
  }

  // Reports and claims once, or waits for something to do; returns whether it has claimed.
  async #turn () {
    const room = this.#room()
    if (this.#ended.length > 0) {
      await this.#report(this.#main, room)
      return room > 0
    }
    if (room === 0) return this.#change()
    if (this.#running.size > 0) {
      await this.#change(LINGER)
      if (this.#ended.length > 0 || this.#stopping) return false
    }
    this.#waits = true
    try {
      this.#take(await this.#main.query(...this.#sql.wait(this.#room() || 1), true))
    } finally {
      this.#waits = false
    }
    return true
  }

  // How many runs to claim: what is running, and AHEAD of its time.
  #room () {
    const { concurrency, batch } = this.#options
    const capacity = Math.min(concurrency + Math.min(batch, Math.floor(concurrency * AHEAD / this.#mean)), 1000)
    const used = this.#ready.length + this.#running.size
    return this.#stopping || (this.#ready.length > 0 && used > capacity / 2) ? 0 : Math.max(capacity - used, 0)
  }

  #take (rows) {
    const now = performance.now()
    this.#claimed = true
    for (const row of rows.filter(({ outcome }) => outcome === 'claimed')) {
      const run = new Run(row, this.#queue, now, (one) => this.#progress(one))
      this.#all.set(run.key, run)
      this.#ready.push(run)
    }
    this.#fill()
    if (this.#all.size > 0 && !this.#timer) this.#timer = setInterval(() => this.#tick(), TICK)
  }

  // Resolves when something has changed, or after a time.
  async #change (milliseconds) {
    let timer
    await new Promise((resolve) => {
      this.#wake = resolve
      if (milliseconds !== undefined) timer = setTimeout(resolve, milliseconds)
    })
    clearTimeout(timer)
    return false
  }

  // ---- runs ----

  #fill () {
    while (this.#running.size < this.#options.concurrency && this.#ready.length > 0) this.#perform(this.#ready.shift()).catch((error) => this.#log('error', `a run is left to its claim: ${textOf(error)}`))
  }

  async #perform (run) {
    const began = performance.now()
    this.#running.add(run)
    try {
      const work = () => this.#handler(run.payload, run.context)
      run.report = run.completed(await (this.#traced ? inSpan(run, work) : work()))
    } catch (error) {
      if (!run.abandoned) await this.#fail(run, error)
    }
    if (run.progress || run.showing) await this.#progress(run, true)
    const took = performance.now() - began
    this.#mean = this.#mean === Infinity ? took : 0.9 * this.#mean + 0.1 * took
    this.#running.delete(run)
    this.#end(run)
    this.#fill()
  }

  async #fail (run, error) {
    run.report = run.failed(error)
    if (!(error instanceof Outcome) || error.reason !== 'defer' || run.lost) return
    await this.#second().query('SELECT FROM tq.defer_task($1, $2::int, $3::interval, credentials => $4::jsonb)',
      [run.taskId, run.runId, intervalOf(error.retryDelay), run.credentials ?? null])
      .then(() => { run.lost = 'deferred' }, (fault) => { run.report = run.refused(fault) })
  }

  // A run whose claim is lost is not reported.
  #end (run) {
    if (run.abandoned) return
    if (run.lost && run.lost !== 'worker-shutdown') this.#all.delete(run.key)
    else this.#ended.push(run)
    this.#wake?.()
    if (this.#waits) this.#flush()
  }

  #lose (run, reason) {
    run.lose(reason)
    this.#wake?.()
    const i = this.#ready.indexOf(run)
    if (i >= 0) this.#all.delete(this.#ready.splice(i, 1)[0].key)
    this.#log('debug', `the run is taken: ${reason}`, run)
  }

  // ---- reports ----

  // Reports what has ended, and claims so many; what is refused is reported alone.
  async #report (connection, room = 0) {
    const runs = this.#ended.splice(0, 1000)
    const reports = `[${runs.map((run) => run.report).join()}]`
    let rows
    try {
      rows = await connection.query(...(room > 0 && this.#sql.both ? this.#sql.both(reports, room) : [RESOLVE, [reports]]), true)
    } catch (error) {
      if (error instanceof Lost || isCanceled(error)) { this.#ended.unshift(...runs); throw error }
      for (const run of runs) await this.#reportAlone(connection, run)
      return
    }
    for (const run of runs) this.#all.delete(run.key)
    if (room > 0 && this.#sql.both) this.#take(rows)
    else if (room > 0) this.#take(await connection.query(...this.#sql.claim(room), true))
  }

  async #reportAlone (connection, run) {
    try {
      await connection.query(RESOLVE, [`[${run.report}]`])
    } catch (error) {
      this.#log('warning', `a report is refused: ${reasonOf(error)}`, run)
      await connection.query(RESOLVE, [`[${run.refused(error)}]`]).catch((fault) => this.#log('error', reasonOf(fault), run))
    }
    this.#all.delete(run.key)
  }

  #due () { return this.#waits && this.#ended.length > 0 && !this.#side?.closed }

  // Reports on the second connection while the main one waits.
  #flush () {
    return (this.#reporting ??= (async () => {
      while (this.#due()) await this.#report(this.#second()).catch((error) => { this.#log('debug', error.message); return sleep(TICK) })
    })().finally(() => { this.#reporting = null; if (this.#due()) this.#flush() }))
  }

  async #progress (run, last = false) {
    if (last) await run.showing
    else if (run.report || run.showing || performance.now() < run.shown + LONG) return
    if (!run.progress || run.lost) return
    await (run.showing = this.#show(run))
    run.showing = null
  }

  async #show (run) {
    const { done, total, message } = run.progress
    run.progress = undefined
    run.shown = performance.now()
    await this.#second().query('SELECT FROM tq.report_progress($1, $2::int, $3::bigint, $4::bigint, $5, credentials => $6::jsonb)',
      [run.taskId, run.runId, done, total, message, run.credentials ?? null])
      .catch((error) => this.#log('warning', `progress is refused: ${reasonOf(error)}`, run))
  }

  // ---- claims are kept ----

  #second () {
    clearTimeout(this.#idle)
    return (this.#side ??= this.#newSide())
  }

  #begin (client) { return client.query(BEGIN, [client.processID ?? null, this.#options.group, this.id]).then(({ rows }) => rows[0]) }

  async #listen (client) {
    const { pid, channel } = await this.#begin(client)
    if (pid !== client.processID && !this.#pooled) this.#log('warning', 'a pooler is between: a cancel is seen by the next reclaim, after 5 seconds at most')
    this.#pooled = pid !== client.processID
    if (!this.#pooled) {
      client.on('notification', ({ payload }) => this.#notified(payload))
      await client.query(`LISTEN ${channel}`)
    }
    this.#notified('')                                            // of what was taken before
  }

  // Any role may NOTIFY: what says that a run is taken has the database asked.  An empty one may be of any run.
  #notified (payload) {
    const said = parsed(payload)
    const runs = payload === '' ? [...this.#all.values()] : [this.#all.get(`${said?.taskId}/${said?.runId}`)].filter(Boolean)
    for (const run of runs) run.doubt = textOf(said?.reason ?? '')
    if (runs.length > 0) this.#tick()
  }

  #tick () {
    const now = performance.now()
    for (const run of this.#all.values()) {
      if (run.report || run.lost) continue
      if (now > run.validUntil) this.#lose(run, 'claim-expired')
      else if (!run.reclaiming && now >= run.due(LONG, this.#pooled ? POOLED : Infinity)) this.#reclaim(run)
      else if (!this.#side && now > run.reclaimAt - (run.validUntil - run.reclaimAt) + LONG) this.#second().client().catch(() => {})
      if (run.progress) this.#progress(run)
    }
    if (this.#all.size > 0) return
    clearInterval(this.#timer)
    this.#timer = null
    if (!this.#side) return
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => {
      if (this.#all.size > 0) return
      this.#side?.close()
      this.#side = null
    }, IDLE)
  }

  async #reclaim (run) {
    const { doubt } = run
    run.reclaiming = true
    run.asked = performance.now()
    run.doubt = undefined
    try {
      const rows = await this.#second().query(`SELECT ${LASTS} FROM tq.reclaim_task($1, $2::int, claim_for => $3::interval, credentials => $4::jsonb) c`,
        [run.taskId, run.runId, this.#options.claimFor === undefined ? null : intervalOf(this.#options.claimFor), run.credentials ?? null])
      run.lasts(rows[0].lasts, performance.now())
    } catch (error) {
      if (/^TQ40[49]$/.test(error.code)) this.#lose(run, run.doubt || doubt || 'claim-lost')
      else run.reclaimAt = performance.now() + (run.validUntil - performance.now()) / 2 + LONG
    }
    run.reclaiming = false
  }

  // ---- the end ----

  /** Claims no more; waits for what is running, then aborts it, and gives it back. */
  stop ({ timeout = this.#options.stopTimeout } = {}) {
    this.#stopped ??= this.#stop(timeOf(timeout))
    return this.#stopped
  }

  async #stop (timeout) {
    this.#stopping = true
    for (const signal of this.#options.signals) stopNoMore(signal, this)
    this.#wake?.()
    await this.#endClaims()
    this.#waits = true                  // reports go their own way now
    for (const run of this.#ready.splice(0)) this.#giveBack(run)
    this.#flush()
    await this.#until(() => this.#running.size === 0, timeout)
    for (const run of this.#running) run.lose('worker-shutdown')
    await this.#until(() => this.#running.size === 0, timeOf(this.#options.grace))
    for (const run of this.#running) this.#giveBack(run)
    const end = setTimeout(() => this.#side?.close(), LAST_REPORTS)
    while (this.#ended.length > 0 && !this.#side?.closed) await this.#flush()
    await this.#reporting
    clearTimeout(end)
    clearInterval(this.#timer)
    clearTimeout(this.#idle)
    await Promise.all([this.#main.close(), this.#side?.close()])
  }

  // A cancel may come before its statement, and a server may not answer.
  async #endClaims () {
    const began = performance.now()
    const cancel = () => {
      const took = performance.now() - began
      if (!this.#main.isOpen || took > (this.#waits ? CANCEL : LAST_REPORTS)) this.#main.close()
      else if (this.#waits) this.#main.cancel()
    }
    const repeated = setInterval(cancel, AGAIN)
    cancel()
    await this.#looping.catch(() => {})
    clearInterval(repeated)
  }

  #giveBack (run) {
    run.abandoned = true
    run.lose('worker-shutdown')
    run.report = run.failed()
    this.#ended.push(run)
  }

  async #until (condition, milliseconds) {
    const end = performance.now() + milliseconds
    while (!condition() && performance.now() < end) await this.#change(Math.min(end - performance.now(), 100))
  }

  [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')] () { return this.stop() }
}
