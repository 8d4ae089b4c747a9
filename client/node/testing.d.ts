import type { Pool, PoolClient } from 'pg'
import type { Calls, EnqueueManyOptions, EnqueueOptions, Handler, Interval, Json, Queue, State } from './index.js'

export interface Drained { taskId: string, payload: any, state: State, result: any, error: any }
export interface Enqueued { taskId: string, state: State, name: string, payload: any, priority: string, tags: any, task: any }

/** One transaction, which the end of the test rolls back. */
export interface Sandbox extends AsyncDisposable {
  /** The client of the transaction, for the code under test. */
  readonly client: PoolClient
  readonly tq: Queue
  readonly call: Calls
  enqueue (queue: string, payload?: Json, options?: EnqueueOptions): Promise<string>
  enqueueMany (queue: string, payloads: readonly Json[], options?: EnqueueManyOptions): Promise<string[]>
  /** Works on all tasks of a queue that are due, and on those that come of it. */
  drain<P = any> (queue: string, handler?: Handler<P>, options?: { limit?: number }): Promise<Drained[]>
  /** Lets so much time pass for tq in this transaction. */
  advance (interval: Interval): Promise<void>
  /** The unresolved tasks of a queue. */
  enqueued (queue: string): Promise<Enqueued[]>
  /** Fails unless a queue has such a task; of payload and tags the keys that are given. */
  assertEnqueued (queue: string, expected?: Partial<Enqueued>, count?: number): Promise<Enqueued>
  refuteEnqueued (queue: string, expected?: Partial<Enqueued>): Promise<void>
  rollback (): Promise<void>
}

/** The context of a test of node:test (after) or of vitest (onTestFinished). */
export type TestContext = { after (end: () => Promise<void>): unknown } | { onTestFinished (end: () => Promise<void>): unknown }

export function sandbox (pool: Pool, context?: TestContext): Promise<Sandbox>
