// client.mjs idle PEER N: how soon a worker has a task, N times: milliseconds,
// median, 99th percentile and longest, from when the producer had its answer,
// and then the same from when it asked.
//
// client.mjs work PEER N: N tasks are created, a thousand to a call, and then
// worked off by workers that have nothing to do but that; prints the rates.
//
// client.mjs worker PEER N: the same by the worker of each, with ten handlers at a time that do
// nothing; that of tq is client/node.
//
// graphile-worker and pg-boss are used through their own clients, set up as
// they recommend: to hear of tasks at once by LISTEN, and to claim and complete
// many at once.  tq needs none: pg, and the statement of a busy worker.
import pg from 'pg'
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { PgBoss } from 'pg-boss'

const [way, peer, count] = process.argv.slice(2)
const n = Number(count)
const payload = { command: 'x'.repeat(185) }
const logger = new Logger(() => (level, message) => { if (level === 'error') console.error(message) })
let worked			// is called for each task that a worker has

function fail(error) {
	console.error(error)
	process.exit(1)
}

// ---- the peers: create one, create many, work, end ----

async function graphile() {
	const pgPool = new pg.Pool({ max: 30 })
	pgPool.on('error', fail)
	pgPool.on('connect', (client) => client.on('error', fail))
	const utils = await makeWorkerUtils({ pgPool, logger })
	const worker = { concurrentJobs: { idle: 1, work: 24, worker: 10 }[way], maxPoolSize: 30, logger }
	if (way !== 'idle') Object.assign(worker, { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 })
	let runner
	return {
		one: () => utils.addJob('bench', payload),
		many: (k) => utils.addJobs(Array.from({ length: k }, () => ({ identifier: 'bench', payload }))),
		work: async () => {
			runner = await run({
				pgPool, noHandleSignals: true, crontab: '', taskList: { bench: () => worked(1) }, preset: { worker },
			})
		},
		end: async () => {
			await runner.stop()
			await utils.release()
			await pgPool.end()
		},
	}
}

async function pgboss() {
	const boss = new PgBoss({ host: process.env.PGHOST, max: 10, schedule: false, useListenNotify: true })
	boss.on('error', fail)
	await boss.start()
	await boss.createQueue('heard', { notify: true })
	await boss.deleteAllJobs('heard')
	const options = way === 'idle' ? {} : { batchSize: 100, localConcurrency: way === 'worker' ? 10 : 4, burstWhenBatchFull: true }
	return {
		one: () => boss.send('heard', payload),
		many: (k) => boss.insert('heard', Array.from({ length: k }, () => ({ data: payload }))),
		work: () => boss.work('heard', options, async (jobs) => { worked(jobs.length) }),
		end: () => boss.stop({ graceful: false }),
	}
}

async function tq() {
	const pool = new pg.Pool({ max: 4 })
	let ended = false
	const { rows: [{ definition }] } = await pool.query(`SELECT jsonb_build_object('taskQueueId', 'bench/client',
		'created', now(), 'deadline', now() + interval '1 day', 'payload', $1::jsonb, 'metadata', jsonb_build_object(
		'name', 'n', 'description', 'd', 'owner', 'o', 'source', 'https://example.org/')) AS definition`, [payload])
	const { rows: ids } = await pool.query('SELECT tq.slugid()::text AS id FROM generate_series(1, $1)', [n])
	let worker
	const loop = async () => {
		let done = { task: [], run: [] }
		while (!ended) {
			const { rows } = await pool.query({
				name: 'work',
				text: `WITH done AS (SELECT count(*)::int AS n FROM tq.resolve($1, $2))
					SELECT task_id, run_id, payload FROM tq.claim_work('bench/client', 'g', 'w', 100 + 0 * (SELECT n FROM done))`,
				values: [done.task, done.run],
			})
			worked(done.task.length)
			done = { task: rows.map((row) => row.task_id), run: rows.map((row) => row.run_id) }
		}
	}
	return {
		many: (k) => pool.query({
			name: 'many', text: 'SELECT tq.create_tasks($1)',
			values: [JSON.stringify(ids.splice(0, k).map(({ id }) => ({ taskId: id, task: definition })))],
		}),
		work: async () => {
			if (way === 'work') for (let i = 0; i < 4; i++) loop().catch(fail)
			else worker = await (await import('tq-postgres')).tq(pool).worker('bench/client', () => worked(1), { concurrency: 10 })
		},
		end: async () => {
			ended = true
			await worker?.stop()
		},
	}
}

// ---- what is measured ----

const now = () => performance.now()
const rest = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const places = (times) => {
	const sorted = times.toSorted((a, b) => a - b)
	return [0.5, 0.99, 1].map((p) => sorted[Math.floor(p * (sorted.length - 1))].toFixed(3)).join(' ')
}

async function idle(client) {
	const afterCommit = []
	const afterSend = []
	let had
	worked = () => had(now())
	await client.work()
	await rest(1000)
	for (let i = 0; i < n; i++) {
		const claimed = new Promise((resolve) => { had = resolve })
		const sent = now()
		await client.one()
		const committed = now()
		const at = await claimed
		afterCommit.push(at - committed)
		afterSend.push(at - sent)
		await rest(50)
	}
	console.log(places(afterCommit), places(afterSend))
}

async function work(client) {
	let left = n
	const began = now()
	for (let i = 0; i < n; i += 1000) await client.many(1000)
	const created = now()
	const done = new Promise((resolve) => {
		worked = (k) => { if ((left -= k) <= 0) resolve() }
	})
	await client.work()
	await done
	console.log(((1000 * n) / (created - began)).toFixed(0), ((1000 * n) / (now() - created)).toFixed(0))
}

const client = await { graphile, pgboss, tq }[peer]()
setTimeout(() => fail(`${peer} takes too long`), 600000).unref()
await { idle, work, worker: work }[way](client)
await client.end()
process.exit(0)
