// errors.js: errors of the database by their SQLSTATE, and what a handler throws to end its run
// in another way than as failed.

/** An error of tq, with its SQLSTATE as code, and the detail and the hint of the server. */
export class TqError extends Error {
  constructor (error) {
    super(error.message, { cause: error })
    const { code, detail, hint, severity } = error
    Object.assign(this, { name: new.target.name, code, detail, hint, severity })
  }
}
export class BadInput extends TqError {}
export class Forbidden extends TqError {}
export class NotFound extends TqError {}
export class Conflict extends TqError {}
export class Gone extends TqError {}
export class ArtifactError extends TqError {}

const classes = { TQ400: BadInput, TQ403: Forbidden, TQ404: NotFound, TQ409: Conflict, TQ410: Gone, TQ424: ArtifactError }

/** Returns the error that a client of tq sees for one of the driver. */
export const errorOf = (error) => error?.code in classes ? new classes[error.code](error) : error

const LOST = /^(08|25006|25P0[34]|40|53|57P|58)/       // of the server, or of a pooler
const LOST_CODES = /^(ECONN(RESET|REFUSED|ABORTED)|EPIPE|ETIMEDOUT|E(HOST|NET)(UNREACH|DOWN)|ENETRESET|EADDRNOTAVAIL|ENOTFOUND|EAI_AGAIN|ERR_STREAM_\w+|ERR_SOCKET_\w+|ERR_SSL_\w+)$/
const LOST_TEXTS = /^(Connection terminated|Client (was closed|has encountered a connection error)|timeout (expired|exceeded)|Query read timeout|There was an error establishing)/

/** Whether an error says that the connection, or a primary at its other end, is lost: no fault of a program. */
export function isLost (error) {
  if (typeof error?.severity === 'string') return LOST.test(error.code)
  if (error?.errors?.length > 0) return error.errors.every(isLost)
  return LOST_CODES.test(error?.code) || (error?.code === 'ENOENT' && error.syscall === 'connect') || LOST_TEXTS.test(error?.message)
}

/** Whether a statement was canceled, or did not get a lock in time: it may be repeated. */
export const isCanceled = (error) => error?.code === '57014' || error?.code === '55P03'

/** Returns a function for the log, which does not throw. */
export const loggerOf = (log) => (...given) => { try { log(...given) } catch (error) { console.error('tq: the log throws', error) } }

// ---- what a handler throws ----

/** Ends a run as its reason says; options are those of a report: retryDelay, retriesLeft, details. */
export class Outcome extends Error {
  constructor (reason, message, { retryDelay, retriesLeft, details, cause } = {}) {
    super(message ?? reason, { cause })
    Object.assign(this, { name: new.target.name, reason, retryDelay, retriesLeft, details })
  }
}

/** The run is tried again after that time, while there are retries. */
export class Retry extends Outcome { constructor (delay, message, options) { super('intermittent-task', message, { retryDelay: delay, ...options }) } }
/** The run is put back for that time; that is no attempt. */
export class Defer extends Outcome { constructor (delay) { super('defer', `put back for ${delay}`, { retryDelay: delay }) } }
/** The run has failed, and is not tried again, whatever its policy says. */
export class Terminal extends Outcome { constructor (message, options) { super('failed-terminal', message, options) } }
export class MalformedPayload extends Outcome { constructor (message, options) { super('malformed-payload', message, options) } }
export class ResourceUnavailable extends Outcome { constructor (message, options) { super('resource-unavailable', message, options) } }
export class InternalError extends Outcome { constructor (message, options) { super('internal-error', message, options) } }

/** Why the signal of a run is aborted: canceled, claim-expired, deleted, worker-shutdown, … */
export class Aborted extends Error {
  constructor (reason) {
    super(`the run was ended: ${reason}`)
    Object.assign(this, { name: 'AbortError', reason })
  }
}
