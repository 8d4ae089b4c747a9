// peers.mjs: jobs of graphile-worker and pg-boss, by the packages themselves: one of each that
// waits for an hour, and one that a worker has; of pg-boss two with one key, which are no duplicates
// unless the policy of their queue says so.
import pg from 'pg'
import { makeWorkerUtils } from 'graphile-worker'
import { PgBoss } from 'pg-boss'

const { PGHOST: host, PGUSER: user, PGDATABASE: database } = process.env
const pgPool = new pg.Pool({ max: 3 })
const utils = await makeWorkerUtils({ pgPool })
await utils.migrate()
await utils.addJob('send:mail', { a: 1 }, { runAt: new Date(Date.now() + 3600e3), maxAttempts: 3, priority: -5, jobKey: 'k' })
const { id } = await utils.addJob('send:mail', { a: 2 })
await pgPool.query('UPDATE graphile_worker._private_jobs SET locked_at = now() WHERE id = $1', [id])
await utils.release()

const boss = new PgBoss({ host, user, database, schedule: false, supervise: false })
await boss.start()
await boss.createQueue('send.mail')
await boss.send('send.mail', { b: 1 }, { startAfter: 3600, priority: 5, retryLimit: 4, singletonKey: 's' })
await boss.send('send.mail', { b: 3 }, { startAfter: 3600, singletonKey: 's' })
await boss.createQueue('send.short', { policy: 'short' })
await boss.send('send.short', { b: 4 }, { startAfter: 3600, singletonKey: 's' })
await boss.send('send.mail', { b: 2 })
await boss.fetch('send.mail')
await boss.stop({ graceful: false })
await pgPool.end()
