// connection.js: a connection that is kept, and made again when it is lost: after 0.1 to 10
// seconds, longer each time, of which a part is random so that not all clients come at once.
import { setTimeout as sleep } from 'node:timers/promises'
import { errorOf, isLost } from './errors.js'

const FIRST = 100
const LAST = 10000
const CANCEL = 5000             // ms that a request to cancel may take, or the end of a session

/** The connection was lost before it had answered, or is closed. */
export class Lost extends Error {}

// Ends a client; one whose server does not answer, after a time.
function end (client) {
  const late = setTimeout(() => client.connection?.stream?.destroy(), CANCEL)
  return client.end().catch(() => {}).finally(() => clearTimeout(late))
}

/** Returns hosts and ports of a list as libpq has it: 'a,b:5433'. */
function hostsOf (config) {
  const list = config.hosts ?? config.host ?? (config.connectionString ? undefined : process.env.PGHOST)
  const hosts = Array.isArray(list) ? list : String(list ?? '').split(',').filter(Boolean)
  return hosts.length < 2 ? [Array.isArray(list) && list.length === 1 ? { host: list[0] } : {}] : hosts.map((host) => {
    const [, name, port] = /^(.*?)(?::(\d+))?$/.exec(host)
    return port ? { host: name, port: Number(port) } : { host: name }
  })
}

export class Connection {
  closed = false
  #client = null
  #connecting = null            // a client that is to be the next
  #opening = null
  #pause = 0; #host = 0
  #last = Promise.resolve()     // the statement before
  #stop = new AbortController()

  // begin(client) is done with each new connection, before any query.  One that waits has no timeout
  // of the driver, whatever the pool has; one that is patient is tried again after any error.
  constructor ({ Client, config, name, onError, begin, waits = false, patient = false }) {
    Object.assign(this, { Client, hosts: hostsOf(config), onError, begin, waits, patient })
    this.config = { keepAlive: true, connectionTimeoutMillis: 10000, ...config, password: config.password, application_name: config.application_name ?? name }
  }

  get isOpen () { return this.#client !== null }

  async #connect () {
    const host = this.hosts[this.#host % this.hosts.length]
    const client = this.#connecting = new this.Client({ ...this.config, ...host })
    if (this.waits && client.connectionParameters) Object.assign(client.connectionParameters, { query_timeout: 0, statement_timeout: 0 })
    client.on('error', () => {})
    try {
      await client.connect()
      if (this.hosts.length > 1) {
        const { rows } = await client.query('SHOW transaction_read_only')
        if (rows[0].transaction_read_only === 'on') throw new Lost(`${client.host}:${client.port} is read-only`)
      }
      await this.begin?.(client)
      client.once('end', () => this.#drop(client, new Lost('the connection is lost')))
      return client
    } catch (error) {
      end(client)
      throw error
    } finally {
      this.#connecting = null
    }
  }

  // Waits before it connects where the last time was in vain.
  async #open () {
    while (!this.closed) {
      try {
        if (this.#pause) await sleep(this.#pause * (0.5 + Math.random() / 2), null, { signal: this.#stop.signal })
        const client = await this.#connect()
        if (this.closed) end(client)
        else this.#client = client
        this.patient = true
        return
      } catch (error) {
        if (this.closed) return
        if (!this.patient && !(error instanceof Lost) && !isLost(error) && !/^28|^3D/.test(error.code)) throw error
        this.#fault(error)
      }
    }
  }

  #fault (error) {
    this.#host++
    this.#pause = Math.min(Math.max(FIRST, 2 * this.#pause), LAST)
    this.onError(error)
  }

  #drop (client, error) {
    if (this.#client !== client) return
    this.#client = null
    end(client)
    if (this.closed) return
    this.#fault(error)
    this.client().catch(() => {})       // at once: notifications are missed meanwhile
  }

  /** Returns the client of pg, as soon as there is one. */
  async client () {
    while (!this.#client) {
      if (this.closed) throw new Lost('the connection is closed')
      this.#opening ??= this.#open().finally(() => { this.#opening = null })
      await this.#opening
    }
    return this.#client
  }

  /** Returns the rows of a statement, which is repeated until it is answered unless it is once.  A client has one at a time. */
  query (text, values, once = false) {
    const rows = this.#last.then(() => this.#query(text, values, once))
    this.#last = rows.catch(() => {})
    return rows
  }

  async #query (text, values, once) {
    for (;;) {
      const client = await this.client()
      try {
        const { rows } = await client.query(text, values)
        this.#pause = 0
        return rows
      } catch (error) {
        if (!isLost(error)) throw errorOf(error)
        this.#drop(client, error)
        if (once || this.closed) throw new Lost(error.message, { cause: error })
      }
    }
  }

  /** Asks the server to cancel what the connection is waiting for; that may be nothing yet. */
  cancel () {
    const client = this.#client
    if (!client?.processID) return
    const { connection } = new this.Client({ ...this.config, host: client.host, port: client.port })
    const cancel = () => connection.cancel(client.processID, client.secretKey)
    const end = setTimeout(() => connection.stream.destroy(), CANCEL)
    connection.on('error', () => {})
    connection.on('end', () => clearTimeout(end))
    connection.on('connect', () => connection.ssl ? connection.sslNegotiation === 'direct' || connection.requestSsl() : cancel())
    connection.on('sslconnect', cancel)
    if (client.host?.startsWith('/')) connection.connect(`${client.host}/.s.PGSQL.${client.port}`)
    else connection.connect(client.port, client.host)
  }

  close () {
    const client = this.#client
    this.closed = true
    this.#client = null
    this.#stop.abort()
    this.#connecting?.connection?.stream?.destroy()
    return client ? end(client) : Promise.resolve()
  }
}
