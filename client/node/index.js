// index.js: a client of tq, the task queue inside PostgreSQL.
import { createRequire } from 'node:module'
import { Calls, query } from './query.js'
import { Subscription } from './subscribe.js'
import { withParent } from './trace.js'
import { Worker } from './worker.js'

export { Aborted, ArtifactError, BadInput, Conflict, Defer, Forbidden, Gone, InternalError, MalformedPayload, NotFound, Outcome, ResourceUnavailable, Retry, Terminal, TqError } from './errors.js'
export { Worker, Subscription }

const isPool = (db) => typeof db?.connect === 'function' && db.options !== undefined && typeof db.totalCount === 'number'

// The packages of Debian are found by require() alone.
const driver = () => import('pg').then((found) => found.default, () => createRequire(import.meta.url)('pg'))

class Queue {
  #db; #config; #own = null

  constructor (db) {
    if (typeof db?.query === 'function') this.#db = db
    else this.#config = typeof db === 'string' ? { connectionString: db } : db ?? {}
  }

  async #pool () {
    if (this.#db) return this.#db
    if (this.#config.hosts) throw new TypeError('pg connects to one host: give a pool for these calls, hosts are for workers and subscriptions')
    const pg = await driver()
    this.#own ??= new pg.Pool(this.#config).on('error', () => {})
    return this.#own
  }

  // What a worker connects with, by connections of its own.
  async #source (what) {
    if (this.#config) return { Client: (await driver()).Client, config: this.#config }
    if (isPool(this.#db)) return { Client: this.#db.Client, config: { ...this.#db.options, password: this.#db.options.password } }
    throw new TypeError(`${what} needs a pool, or what to connect to, for it has connections of its own`)
  }

  /** The functions of schema tq, with their arguments by name. */
  get call () {
    const calls = new Calls(this.#db ?? { query: async (...given) => (await this.#pool()).query(...given) })
    Object.defineProperty(this, 'call', { value: calls })
    return calls
  }

  enqueue (queue, payload = {}, options = {}) {
    return this.call.enqueue({ ...options, taskQueueId: queue, payload, tags: withParent(options.tags) })
  }

  enqueueMany (queue, payloads, options = {}) {
    return this.call.enqueueTasks({ ...options, taskQueueId: queue, payloads, tags: withParent(options.tags) })
  }

  /** Waits for the end of a task, on a connection that it has until then. */
  async waitFor (task, timeout) {
    const { result: state } = await this.call.waitForTask({ taskId: task, wait: timeout })
    return { state, result: state === 'completed' ? await this.call.result({ taskId: task }) : null }
  }

  async worker (queue, handler, options) { return new Worker(await this.#source('a worker'), queue, handler, options) }

  async subscribe (name, patterns, handler, options) { return new Subscription(await this.#source('a subscription'), name, patterns, handler, options) }

  query (text, values) { return this.#pool().then((db) => query(db, text, values)) }

  /** Ends the pool that it has made itself. */
  async end () { await this.#own?.end() }

  [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')] () { return this.end() }
}

/** A client of the database of a pool, a client, the caller's transaction, or what pg connects to. */
export const tq = (db) => new Queue(db)
