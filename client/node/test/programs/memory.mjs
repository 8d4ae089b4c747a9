// memory.mjs QUEUE N...: works off so many tasks, time after time; prints the heap after each, in kB.
import { once, EventEmitter } from 'node:events'
import pg from 'pg'
import { tq } from 'tq-postgres'

const [queue, ...counts] = process.argv.slice(2)
const pool = new pg.Pool({ max: 2 })
const done = new EventEmitter()
let left = 0
const worker = await tq(pool).worker(queue, () => { if (--left === 0) done.emit('all') }, { concurrency: 10 })
for (const n of counts.map(Number)) {
  left = n
  const all = once(done, 'all')
  for (let i = 0; i < n; i += 1000) await tq(pool).enqueueMany(queue, Array.from({ length: 1000 }, (_, k) => i + k))
  await all
  await tq(pool).call.statuses({ taskIds: [] })
  globalThis.gc()
  console.log(Math.round(process.memoryUsage().heapUsed / 1024))
}
await worker.stop()
await pool.end()
