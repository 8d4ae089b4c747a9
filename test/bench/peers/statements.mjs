// statements.mjs DIRECTORY: makes the schemas of graphile-worker and of pg-boss
// in the database of PGDATABASE, by their own migrations, and writes there, as
// scripts for pgbench and for drive, the very statements that their clients
// send: they are asked to create, to claim and to complete, and what they send
// is recorded.  What changes from call to call becomes a variable:
//
//	:payload	the payload of a task		:batch	1000 tasks, as that client sends them
//	:ids, :id	what the claim gave, an array or the first of it
//
// A claim is made to return one row with these, as pgbench can keep no more.
// Everything else in the statements is as it was sent.
import { EventEmitter } from 'node:events'
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { makeWorkerUtils, runMigrations } from 'graphile-worker'
import { PgBoss } from 'pg-boss'

const directory = process.argv[2]
const sizes = [1, 100, 1000]
const payload = { command: 'x'.repeat(185) }
const batch = Array.from({ length: 1000 }, () => payload)
const pool = new pg.Pool({ max: 1 })
pool.on('error', fail)
let sent = []

function fail(error) {
	throw error
}

async function query(text, values) {
	const statement = typeof text === 'object' ? text : { text, values }
	sent.push({ text: statement.text, values: statement.values ?? [] })
	return pool.query({ text: statement.text, values: statement.values })
}

// What a call sends, and what it answers.  The first call also fills caches.
async function record(call) {
	await call()
	sent = []
	const answer = await call()
	if (sent.length !== 1) throw new Error(`expected one statement, not ${sent.map((s) => s.text).join(';')}`)
	return { ...sent[0], answer }
}

function literal(value) {
	if (value === null || value === undefined) return 'NULL'
	if (typeof value === 'number' || typeof value === 'boolean') return String(value)
	if (Array.isArray(value)) return literal(`{${value.join(',')}}`)
	return `'${String(value).replaceAll("'", "''")}'`
}

// The statement with its parameters in place; those that are named in
// variables, by number, are variables.
function statement({ text, values }, variables = {}) {
	return text
		.replace(/\$(\d+)/g, (_, n) => (variables[n] ? `:${variables[n]}` : literal(values[n - 1])))
		.trim().replace(/;$/, '')
}

// A claim that returns the ids of what it has claimed.
function claiming(text) {
	const update = [...text.matchAll(/\bupdate\s+\S+\.\S+\s+(?:as\s+)?(\w+)\s+set\b/gi)].at(-1)
	const last = text.slice(update.index).replace(/\breturning \*$/i, `returning ${update[1]}.*`)
	return `${text.slice(0, update.index)}, claimed AS (${last}
)
SELECT coalesce(array_agg(id), '{}')::text AS ids, coalesce((array_agg(id))[1]::text, '0') AS id FROM claimed`
}

function write(name, ...statements) {
	writeFileSync(`${directory}/${name}.sql`, statements.join(';\n').replaceAll('\\gset;', '\\gset') + ';\n')
}

function writeAll(peer, { create, bulk, claims }) {
	write(`${peer}_create`, create)
	writeFileSync(`${directory}/${peer}_bulk.sql`, bulk.replace(/\s+/g, ' ') + '\n')
	for (const [n, [claim, complete]] of Object.entries(claims)) {
		write(`${peer}_claim_${n}`, `${claim} \\gset`, complete)
		write(`${peer}_take_${n}`, claim)
	}
	write(`${peer}_churn`, create, `${claims[1][0]} \\gset`, claims[1][1])
}

async function graphile() {
	await runMigrations({ pgPool: pool })
	const client = Object.assign(new EventEmitter(), { query, release() {} })
	const recording = Object.assign(new EventEmitter(), { query, connect: async () => client })
	recording.on('error', fail)
	client.on('error', fail)
	const utils = await makeWorkerUtils({ pgPool: recording })
	const create = await record(() => utils.addJob('bench', payload))
	const bulk = await record(() => utils.addJobs(batch.map((p) => ({ identifier: 'bench', payload: p }))))
	writeFileSync(`${directory}/graphile_batch.json`, bulk.values[0])

	// the statements of its workers are in files of their own
	const file = (name) => import(pathToFileURL(`${process.cwd()}/node_modules/graphile-worker/dist/sql/${name}.js`))
	const { batchGetJobs } = await file('getJobs')
	const { batchCompleteJobs } = await file('completeJobs')
	const withPgClient = (call) => call({ query })
	withPgClient.withRetries = withPgClient
	const options = {
		escapedWorkerSchema: '"graphile_worker"', workerSchema: 'graphile_worker', logger: console,
		resolvedPreset: { worker: { preparedStatements: true, useNodeTime: false } },
	}
	const claims = {}
	for (const n of sizes) {
		const claim = await record(() => batchGetJobs(options, withPgClient, { bench: () => {} }, 'worker', null, n))
		const jobs = claim.answer
		if (jobs.length !== n) throw new Error('graphile-worker gave too few jobs')
		const complete = await record(() => batchCompleteJobs(options, withPgClient, 'worker', jobs))
		claims[n] = [claiming(statement(claim)), statement(complete, { 1: n === 1 ? 'id' : 'ids' })]
		await utils.addJobs(batch.map((p) => ({ identifier: 'bench', payload: p })))
		await utils.addJobs(batch.map((p) => ({ identifier: 'bench', payload: p })))
	}
	writeAll('graphile', { create: statement(create, { 2: 'payload' }), bulk: statement(bulk, { 1: 'batch' }), claims })
}

async function pgboss() {
	const boss = new PgBoss({ db: { executeSql: query }, supervise: false, schedule: false })
	boss.on('error', fail)
	await boss.start()
	await boss.createQueue('bench')
	const create = await record(() => boss.send('bench', payload))
	const bulk = await record(() => boss.insert('bench', batch.map((data) => ({ data }))))
	writeFileSync(`${directory}/pgboss_batch.json`, bulk.values[0])
	writeFileSync(`${directory}/pgboss_payload.json`, create.values[0])
	const claims = {}
	for (const n of sizes) {
		const claim = await record(() => boss.fetch('bench', { batchSize: n }))
		const ids = claim.answer.map((job) => job.id)
		if (ids.length !== n) throw new Error('pg-boss gave too few jobs')
		const complete = await record(() => boss.complete('bench', n === 1 ? ids[0] : ids))
		claims[n] = [claiming(statement(claim)), statement(complete, { 2: 'ids' })]
		await boss.insert('bench', batch.map((data) => ({ data })))
		await boss.insert('bench', batch.map((data) => ({ data })))
	}
	writeAll('pgboss', { create: statement(create, { 1: 'payload' }), bulk: statement(bulk, { 1: 'batch' }), claims })
	await boss.stop({ graceful: false })
}

await graphile()
await pgboss()
await pool.end()
