// What compiles, and what does not.
import { expectError, expectType } from 'tsd'
import pg from 'pg'
import { Context, Retry, Worker, tq } from '../index.js'

const q = tq(new pg.Pool())
expectType<Promise<string>>(q.enqueue('a/b', { n: 1 }, { delay: '5 min', priority: 'high', runAt: new Date() }))
expectType<Promise<string[]>>(q.enqueueMany('a/b', [1, { n: 2 }, null]))
expectType<Promise<Worker>>(q.worker('a/b', async (payload: { n: number }, ctx) => { expectType<Context>(ctx); expectType<number>(payload.n); throw new Retry('5 min') }, { concurrency: 10 }))
expectType<Promise<number>>(q.call.purge({ taskQueueId: 'a/b', olderThan: 60 }))
expectType<number>((await q.call.claimWork({ taskQueueId: 'a/b', wait: 5 }))[0].run_id)
tq(new pg.Client()).enqueue('a/b')
tq({ hosts: ['a', 'b'] })
expectError(q.enqueue(7))
expectError(q.enqueue('a/b', () => 1))
expectError(q.enqueue('a/b', {}, { delay: new Date() }))
expectError(q.enqueue('a/b', {}, { priority: 'soon' }))
expectError(q.enqueue('a/b', {}, { runat: new Date() }))
expectError(q.call.cancelTask({ task: 'x' }))
expectError(q.call.reportCompleted({ taskId: 'x' }))
expectError(q.worker('a/b', async () => {}, { concurrency: 'ten' }))
expectError(q.worker('a/b', async () => () => 1))
expectError(q.subscribe('s', { 'task-done': '#' }, () => {}))
expectError(new Retry())
