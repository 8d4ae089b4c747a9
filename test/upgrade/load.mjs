#!/usr/bin/env node
// A producer and worker by node-postgres, for rehearse, as load.py is one by psycopg.
//
// load.mjs HOST PORT DATABASE USER LEDGER STOP
import { appendFileSync, existsSync } from 'fs';
import pg from 'pg';

const [host, port, database, user, ledger, stop] = process.argv.slice(2);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const note = (...words) => appendFileSync(ledger, [(Date.now() / 1000).toFixed(6), ...words].join(' ') + '\n');
let db;

const call = async (name, text, values = []) => (await db.query({ name, text, values })).rows;

async function turn() {
	note('enqueued', (await call('enqueue', "SELECT tq.enqueue('load/q', '{}') AS id"))[0].id);
	for (const { task_id, run_id } of await call('claim', "SELECT task_id, run_id FROM tq.claim_work('load/q', 'load', 'node')")) {
		note('claimed', task_id, run_id);
		await call('report', 'SELECT tq.report_completed($1, $2)', [task_id, run_id]);
		note('completed', task_id, run_id);
	}
}

async function connect() {
	const client = new pg.Client({ host, port, database, user });

	client.on('error', () => { db = undefined; });
	client.on('end', () => { if (db === client) db = undefined; });
	await client.connect();
	db = client;
	note('connected');
}

while (!existsSync(stop)) {
	try {
		if (!db) await connect();
		await turn();
		await pause(5);
	} catch (error) {
		note('error', /^[0-9A-Z]{5}$/.test(error.code) ? error.code : '08006', error.message.replace(/\s+/g, ' '));
		await pause(50);
	}
}
process.exit();
