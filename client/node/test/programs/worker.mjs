// worker.mjs QUEUE CLAIM_FOR: a worker that is ended from outside; says what it begins.
import { setTimeout as sleep } from 'node:timers/promises'
import { tq } from 'tq-postgres'

const [queue, claimFor] = process.argv.slice(2)
const worker = await tq().worker(queue, async (payload, ctx) => {
  console.log('begin', payload.n)
  await sleep(payload.seconds * 1000, null, { signal: ctx.signal })
}, { claimFor, concurrency: 4, stopTimeout: 0 })
console.log('ready')
await worker.done
console.log('end')
