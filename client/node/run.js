// run.js: a run that a worker has: what its handler sees of it, and how it is reported.
import { Aborted, Outcome } from './errors.js'
import { intervalOf, query } from './query.js'

const STACK = 4000              // characters of a stack that are kept

/** A value as text, also one that cannot be made one. */
export const textOf = (value) => { try { return `${value}` } catch { return Object.prototype.toString.call(value) } }

const numberOf = (value) => {
  if (value === null || Number.isFinite(Number(value))) return value && Math.trunc(Number(value))
  throw new TypeError(`progress is in numbers, and not ${textOf(value)}`)
}

// Without what no text of the server has.
const clean = (text) => text.replaceAll('\0', '').replace(/\p{Surrogate}/gu, '\ufffd')

/** The run as its handler sees it. */
class Context {
  #run
  constructor (run) {
    const { taskId, runId, queue, task, status, credentials } = this.#run = run
    Object.assign(this, { taskId, runId, queue, task, status, credentials })
  }

  get signal () { return this.#run.signal }
  progress (done, total = null, message = null) { this.#run.show({ done: numberOf(done), total: numberOf(total), message: message === null ? null : textOf(message) }) }
  result (value) { this.#run.result = value }
  complete (client, result) { return this.#run.complete(client, result) }
}

export class Run {
  result = undefined            // of ctx.result()
  report = undefined            // JSON, once it has ended
  completing = false            // ctx.complete() was called
  lost = undefined              // why the claim is no longer ours
  progress = undefined          // that waits to be sent
  showing = null                // while one is sent
  shown = -Infinity             // when the last one was sent
  reclaiming = false
  asked = -Infinity             // when the database was last asked
  doubt = undefined             // why the claim may be lost, until it is asked
  abandoned = false             // given back while its handler goes on
  #controller = null

  constructor (row, queue, now, onProgress) {
    Object.assign(this, { taskId: row.task_id, runId: row.run_id, queue: row.task_queue_id ?? queue, payload: row.payload, onProgress })
    Object.assign(this, { credentials: row.credentials ?? undefined, task: row.task ?? undefined, status: row.status ?? undefined })
    this.lasts(Number(row.lasts), now)
    this.context = new Context(this)
  }

  get key () { return `${this.taskId}/${this.runId}` }

  /** When the claim is to be prolonged, or asked for: as soon as that is after a doubt, or within a time. */
  due (doubted, within) { return Math.min(this.reclaimAt, this.asked + (this.doubt === undefined ? within : doubted)) }

  lasts (milliseconds, now) { Object.assign(this, { validUntil: now + milliseconds, reclaimAt: now + milliseconds / 2 }) }

  get signal () {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.lost) this.#controller.abort(new Aborted(this.lost))
    }
    return this.#controller.signal
  }

  /** Aborts the work, for that reason. */
  lose (reason) {
    if (this.lost) return
    this.lost = reason
    this.#controller?.abort(new Aborted(reason))
  }

  show (progress) {
    this.progress = progress
    this.onProgress?.(this)
  }

  async complete (client, result = this.result) {
    this.completing = true
    await query(client, 'SELECT FROM tq.report_completed($1, $2::int, result => $3::jsonb, credentials => $4::jsonb)',
      [this.taskId, this.runId, result === undefined ? null : JSON.stringify(result), this.credentials && JSON.stringify(this.credentials)])
  }

  #json (report) {
    const { taskId, runId, credentials } = this
    return JSON.stringify({ taskId, runId, credentials, ...report })
  }

  /** The report of a handler that has returned a value. */
  completed (value = this.result) {
    // What its transaction has committed, this report cannot change; else it says what is missing.
    if (this.completing) return this.#json({ reason: 'failed', errorMessage: 'the transaction of ctx.complete() was not committed' })
    return this.#json({ result: value })
  }

  /** The report of a handler that has thrown, or of a run that is given back. */
  failed (error) {
    if (this.lost === 'worker-shutdown') return this.#json({ reason: this.lost })
    const { name, code, stack } = error ?? {}
    const { reason = 'failed', retryDelay, retriesLeft, details } = error instanceof Outcome ? error : {}
    const kept = error instanceof Outcome ? details : { name, code, stack: stack && clean(textOf(stack).slice(0, STACK)) }
    const message = error instanceof Outcome || !(error instanceof Error) ? textOf(error?.message ?? error) : textOf(error)
    try {
      return this.#json({ reason: reason === 'defer' ? 'failed' : reason, errorMessage: clean(message), error: kept, retryDelay: intervalOf(retryDelay), retriesLeft })
    } catch (fault) {
      return this.#json({ reason, errorMessage: clean(`${message} (its details: ${fault.message})`) })
    }
  }

  /** The report in place of one that the database has refused. */
  refused (error) {
    return this.#json({ reason: 'failed', errorMessage: clean(`the report was refused: ${error.message}`) })
  }
}
