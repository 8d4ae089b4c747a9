import type { Client, ClientBase, ClientConfig, Pool, PoolConfig, QueryResult } from 'pg'
import type { Calls, Interval, Json } from './calls.js'
export type { Calls, Duration, Interval, Json } from './calls.js'

/** What runs a statement: a pool, a client, or the client of a transaction of the caller's. */
export type Database = Pool | ClientBase | { query (text: string, values?: any[]): Promise<QueryResult<any>> }

/** To connect with; of several hosts the one that is no standby is taken by workers. */
export type Connect = (PoolConfig & { hosts?: string[] }) | string

export type Priority = 'highest' | 'very-high' | 'high' | 'medium' | 'low' | 'very-low' | 'lowest'

export type Requires = 'all-completed' | 'all-resolved'
export type Overlap = 'allow' | 'skip' | 'replace'
export type Access = 'produce' | 'work' | 'read' | 'manage' | 'join' | 'depend' | 'unique'
export type ExceptionReason = 'worker-shutdown' | 'intermittent-task' | 'malformed-payload' | 'resource-unavailable' | 'internal-error'

export type EnqueueOptions = Omit<Parameters<Calls['enqueue']>[0], 'taskQueueId' | 'payload'>
export type EnqueueManyOptions = Omit<Parameters<Calls['enqueueTasks']>[0], 'taskQueueId' | 'payloads'>

export type State = 'unscheduled' | 'pending' | 'running' | 'completed' | 'failed' | 'exception'

export interface Context {
  readonly taskId: string
  readonly runId: number
  readonly queue: string
  /** The definition and the status of the task, if the option definition asks for them. */
  readonly task: any
  readonly status: any
  readonly credentials: any
  /** Aborted, with an Aborted as reason, when the task is canceled, the claim is lost, or the worker ends. */
  readonly signal: AbortSignal
  progress (done: number, total?: number | null, message?: string | null): void
  /** Keeps a result, for a handler that returns none. */
  result (value: Json): void
  /** Completes the run in the caller's transaction. */
  complete (client: Database, result?: Json): Promise<void>
}

export type Handler<P = any> = (payload: P, ctx: Context) => Json | void | Promise<Json | void>

export type Log = (level: 'debug' | 'warning' | 'error', text: string) => void

export interface WorkerOptions {
  /** Handlers at a time, 10. */
  concurrency?: number
  /** Runs that are claimed ahead at most, 500; of long ones none are. */
  batch?: number
  /** Name of the group of the worker, and of itself: no two have the same. */
  group?: string
  id?: string
  /** How long a claim lasts unless it is prolonged. */
  claimFor?: Interval
  /** Whether the context has task and status. */
  definition?: boolean
  /** How long stop() waits for handlers, 30 s, and after it has aborted their signals, 5 s. */
  stopTimeout?: Interval
  grace?: Interval
  /** Signals of the process that stop the worker, SIGTERM and SIGINT. */
  signals?: NodeJS.Signals[] | false
  log?: Log
}

export class Worker implements AsyncDisposable {
  readonly id: string
  /** Resolved when the worker has stopped; rejected where it cannot work. */
  readonly done: Promise<void>
  stop (options?: { timeout?: Interval }): Promise<void>
  [Symbol.asyncDispose] (): Promise<void>
}

export type Exchange = 'task-defined' | 'task-pending' | 'task-running' | 'artifact-created' | 'task-completed' | 'task-failed' | 'task-exception' |
  'task-group-resolved' | 'task-group-sealed' | 'task-priority-changed' | 'task-group-priority-changed' | 'task-alert' | 'task-progress'

export interface Message { id: number, exchange: Exchange, routing_key: string, cc: string[], payload: any, published: Date }

export interface SubscribeOptions {
  /** Whether the handler and the acknowledgement are one transaction, that of the client that it gets. */
  transaction?: boolean
  /** Messages that are fetched at a time, 100. */
  max?: number
  /** Seconds between two looks, for a connection through a pooler. */
  poll?: number
  log?: Log
}

export class Subscription implements AsyncDisposable {
  readonly name: string
  readonly done: Promise<void>
  stop (): Promise<void>
  [Symbol.asyncDispose] (): Promise<void>
}

export interface Queue extends AsyncDisposable {
  /** Every function of schema tq, with its arguments by name. */
  readonly call: Calls
  enqueue (queue: string, payload?: Json, options?: EnqueueOptions): Promise<string>
  enqueueMany (queue: string, payloads: readonly Json[], options?: EnqueueManyOptions): Promise<string[]>
  waitFor (task: string, timeout?: Interval): Promise<{ state: State | 'blocked' | 'unresolved', result: any }>
  worker<P = any> (queue: string | string[], handler: Handler<P>, options?: WorkerOptions): Promise<Worker>
  subscribe (name: string, patterns: Exchange[] | { [exchange in Exchange]?: string | string[] }, handler: (message: Message, client: ClientBase) => unknown,
    options?: SubscribeOptions): Promise<Subscription>
  query (text: string, values?: any[]): Promise<any[]>
  end (): Promise<void>
  [Symbol.asyncDispose] (): Promise<void>
}

/** A client of the database of a pool, a client, the caller's transaction, or what pg connects to. */
export function tq (db?: Database | Connect): Queue

export class TqError extends Error { readonly code: string; readonly detail?: string; readonly hint?: string }
export class BadInput extends TqError {}
export class Forbidden extends TqError {}
export class NotFound extends TqError {}
export class Conflict extends TqError {}
export class Gone extends TqError {}
export class ArtifactError extends TqError {}

export interface OutcomeOptions { retryDelay?: Interval, retriesLeft?: number, details?: Json, cause?: unknown }
/** Ends a run as its reason says. */
export class Outcome extends Error {
  constructor (reason: string, message?: string, options?: OutcomeOptions)
  readonly reason: string
}
/** The run is tried again after that time, while there are retries. */
export class Retry extends Outcome { constructor (delay: Interval, message?: string, options?: OutcomeOptions) }
/** The run is put back for that time; that is no attempt. */
export class Defer extends Outcome { constructor (delay: Interval) }
/** The run has failed, and is not tried again, whatever its policy says. */
export class Terminal extends Outcome { constructor (message?: string, options?: OutcomeOptions) }
export class MalformedPayload extends Outcome { constructor (message?: string, options?: OutcomeOptions) }
export class ResourceUnavailable extends Outcome { constructor (message?: string, options?: OutcomeOptions) }
export class InternalError extends Outcome { constructor (message?: string, options?: OutcomeOptions) }
/** Why the signal of a run is aborted. */
export class Aborted extends Error { readonly reason: string }

