// subscribe.js: reads a durable subscription, and acknowledges what its handler has done.
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, Lost } from './connection.js'
import { isLost, loggerOf } from './errors.js'
import { query } from './query.js'
import { textOf } from './run.js'

const LOOK = 60000              // ms after which it looks without a notification
const PUBLISHED = 'SELECT id, exchange, routing_key, cc, payload, published FROM tq.fetch($1, $2)'

export class Subscription {
  #connection; #stop = new AbortController(); #news = null; #seen = false; #options

  constructor ({ Client, config }, name, patterns, handler, options = {}) {
    if (typeof handler !== 'function') throw new TypeError('the handler of a subscription is a function')
    this.name = name
    this.#options = { max: 100, transaction: false, ...options, log: loggerOf(options.log ?? ((level, text) => console.error(`tq ${level}: ${text}`))) }
    const list = Array.isArray(patterns) ? patterns.map((exchange) => [exchange, '#']) : Object.entries(patterns)
    const begin = (client) => this.#begin(client, list.flatMap(([exchange, some]) => [some].flat().map((pattern) => [exchange, pattern])))
    this.#connection = new Connection({ Client, config, name: 'tq-subscription', begin, onError: (error) => this.#options.log('warning', error.message || error.code) })
    /** Resolved when it has stopped; rejected where it cannot begin. */
    this.done = this.#loop(handler).finally(() => this.#connection.close())
  }

  async #begin (client, bindings) {
    const { rows: [{ pid }] } = await client.query('SELECT pg_backend_pid() AS pid')
    if (pid !== client.processID && this.#options.poll === undefined) {
      throw Object.assign(new Error('a pooler is between, through which no notification comes'),
        { severity: 'ERROR', code: '0A000', hint: 'Connect to the server itself, or give poll: seconds between two looks.' })
    }
    client.on('notification', () => this.#wake())
    for (const [exchange, pattern] of bindings) {
      await query(client, 'SELECT FROM tq.subscribe($1, $2, $3)', [this.name, exchange, pattern])
      if (pid === client.processID) await client.query(`LISTEN tq_${exchange.replace(/.*\//, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`).replaceAll('-', '_')}`)
    }
    this.#wake()
  }

  #wake () {
    this.#seen = true
    this.#news?.abort()
  }

  async #loop (handler) {
    let pause = 100
    let ever = false
    while (!this.#stop.signal.aborted) {
      let fetched = false
      try {
        this.#seen = false
        const rows = await this.#connection.query(PUBLISHED, [this.name, this.#options.max])
        fetched = ever = true
        for (const row of rows) await this.#handle(handler, { ...row, id: Number(row.id) })
        pause = 100
        if (rows.length === 0 && !this.#seen) await this.#rest((this.#options.poll ?? LOOK / 1000) * 1000)
      } catch (error) {
        if (error instanceof Lost || this.#stop.signal.aborted) continue
        if (!fetched && !isLost(error) && (!ever || /^(0A|TQ4|42|3F)/.test(error.code))) throw error
        this.#options.log('error', `${fetched ? 'a message is handled again' : 'no message can be fetched'}: ${textOf(error?.message ?? error)}`)
        await this.#rest(pause)
        pause = Math.min(2 * pause, 30000)
      }
    }
  }

  // In one transaction with its acknowledgement, if that is wanted.
  async #handle (handler, message) {
    this.#stop.signal.throwIfAborted()
    const client = await this.#connection.client()
    const { transaction } = this.#options
    try {
      if (transaction) await client.query('BEGIN')
      await handler(message, client)
      await client.query('SELECT FROM tq.ack($1, $2)', [this.name, message.id])
      if (transaction) await client.query('COMMIT')
    } catch (error) {
      if (transaction) await client.query('ROLLBACK').catch(() => {})
      throw error
    }
  }

  async #rest (milliseconds) {
    if (this.#stop.signal.aborted) return
    this.#news = new AbortController()
    await sleep(milliseconds, null, { signal: this.#news.signal }).catch(() => {})
    this.#news = null
  }

  /** Ends the reading; the subscription stays. */
  async stop () {
    this.#stop.abort()
    this.#news?.abort()
    await Promise.race([this.done.catch(() => {}), sleep(5000, null, { ref: false })])
    await this.#connection.close()
  }

  [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')] () { return this.stop() }
}
