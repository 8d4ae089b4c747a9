// 07_database.mjs: the database is another than a person's name says, changes nothing of
// our settings, loses connections, does not answer, and is asked again to stop.
import { ask, cookieOf, folder, form, is, like, login, ok, open, patience, proxy, restartServer, run, session, slowly, sql, standby, startWeb, stopServer, unlike, until } from './web.mjs';

const user = role => sql(`SELECT string_agg(DISTINCT datname, ' ') FROM pg_stat_activity WHERE usename = '${role}' AND application_name LIKE 'tq-web%'`);

// The name of a database that nothing says is that of the program, and not of a person.
async function named() {
	sql('CREATE DATABASE op');
	const web = await startWeb(`host=${folder} user=postgres`);
	const answer = await login(web, 'op');
	is(answer.status, 303, 'without a name of a database a person can log in');
	is(user('op'), 'postgres', 'to that which the program uses');
	like((await ask(web, '/queues', { headers: { Cookie: cookieOf(answer) } })).text, /<title>Queues · postgres</, 'and the page says which');
	await web.stop();
}

// A connection without our settings, and so without our limits, is none.
async function unset(between) {
	between.change = text => text.replace('SET jit = off', 'SET jii = off');
	const web = await startWeb('--metrics-from', '127.0.0.1', between.conninfo);
	ok((await login(web, 'op')).status >= 400, 'a connection that does not take the settings is no login');
	is(user('op'), '', 'and is closed');
	is((await ask(web, '/metrics')).status, 503, 'nor does the program use such a one');
	like(web.lines, /does not take its settings: .*jii/, 'the log says why');
	between.change = text => text;
	is((await login(web, 'op')).status, 303, 'then it is as before');
	await web.stop();
}

// A connection of the program that was lost is made again, and the page is good.
async function lost() {
	const web = await startWeb('--as', 'reader');
	is((await ask(web, '/queues')).status, 200, 'a page');
	for (const how of ['query', 'role']) {
		sql("SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name LIKE 'tq-web%'");
		const answer = await ask(web, '/queues');
		is(answer.status, 200, `and the next, when the connection was lost: ${how}`);
		unlike(answer.text, /class="notice error"|does not answer/, 'without an error');
	}
	await web.stop();
}

// A server that takes statements and does not answer keeps no worker.
async function silent(between) {
	const web = await startWeb('--workers', '2', between.conninfo);
	const cookie = cookieOf(await login(web, 'op'));
	between.held = true;
	const begin = Date.now();
	const all = await Promise.all(Array.from({ length: 6 }, () => ask(web, '/queues', { headers: { Cookie: cookie } })));
	ok(all.every(({ status }) => status === 503 || status === 303), `a page that gets no answer says so, after ${Date.now() - begin} ms`, all.map(({ status }) => status).join());
	between.held = false;
	is((await login(web, 'op')).status, 303, 'then one can log in again');
	await web.stop();
}

// A stop that comes before the statement has begun is no less one.
async function stopped(between) {
	sql("SELECT count(tq.enqueue('shop/stop')) FROM generate_series(1, 40000)");
	sql('ANALYZE');
	for (const options of [[], ['--role-header', 'X-Role', '--trust', '127.0.0.1']]) {
		const web = await startWeb(...options, between.conninfo);
		const headers = options.length ? { 'X-Role': 'op' } : { Cookie: cookieOf(await login(web, 'op')) };
		const [, token] = (await ask(web, '/queues', { headers })).text.match(/name=token content="([0-9a-f]{128})"/);
		const post = (path, fields) => ask(web, path, { ...form({ token, ...fields }), headers: { ...form({}).headers, ...headers } });
		let release;
		const held = new Promise(resolve => { release = resolve; });
		let reached = false;
		let attempts = 0;
		between.change = async text => {
			// The second attempt to cancel it comes when the first was answered, and has done nothing.
			if (text.includes('pg_cancel_backend') && ++attempts === 2) release();
			if (text.includes('CALL tq.apply') && !text.includes('true)')) { reached = true; await held; }
			return text;
		};
		const filter = JSON.stringify({ queue: 'shop/stop', state: ['pending'] });
		const { headers: { location } } = await post('/bulk', { action: 'cancel', on: 'filter', filter, count: 40000, back: '/' });
		await until(() => reached, 'an action is about to begin');
		await post('/job', { id: location.split('=')[1] });
		await until(() => attempts >= 2, 'is interrupted, before it has');
		await until(async () => !(await ask(web, location, { headers })).text.includes('Under way'), 'and is stopped');
		like((await ask(web, location, { headers })).text, /It was stopped/, 'as it says');
		const left = Number(sql("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'shop/stop' AND state = 'pending'"));
		ok(left > 1000, `what is left stays: ${left}`);
		is((await ask(web, '/queues', { headers })).status, 200, 'and its connection is good for others');
		between.change = text => text;
		await web.stop();
	}
}

// What a stop interrupts is not refused by anyone.
async function interrupted(between) {
	const id = sql("SELECT tq.enqueue('shop/ticked')");
	const locked = session("BEGIN; LOCK TABLE tq_internal.task IN EXCLUSIVE MODE; SELECT 'locked'");
	await until(() => locked.text.includes('locked'), 'the tasks are locked');
	const web = await startWeb(between.conninfo);
	const headers = { ...form({}).headers, Cookie: cookieOf(await login(web, 'op')) };
	const [, token] = (await ask(web, '/queues', { headers })).text.match(/name=token content="([0-9a-f]{128})"/);
	let release;
	const held = new Promise(resolve => { release = resolve; });
	let reached = false;
	between.change = async text => {
		if (text.includes('tq.cancel_task(')) { reached = true; await held; }
		return text;
	};
	const { headers: { location } } = await ask(web, '/bulk', { ...form({ token, action: 'cancel', on: 'picked', pick: id, count: 1, back: '/' }), headers });
	await until(() => reached, 'a row that is ticked is about to be worked on');
	await ask(web, '/job', { ...form({ token, id: location.split('=')[1] }), headers });
	release();
	await until(async () => !(await ask(web, location, { headers })).text.includes('Under way'), 'and waits for the lock until it is stopped');
	const { text } = await ask(web, location, { headers });
	like(text, /It was stopped[^]*Done<\/dt><dd>0</, 'as its page says');
	unlike(text, /Refused/, 'which has not refused the task');
	between.change = part => part;
	await locked.end();
	is(await web.stop(), 0, 'the program ends');
}

// A program that is to end does not wait for an action whose server does not answer.
async function ended(between) {
	const web = await startWeb(between.conninfo);
	const cookie = cookieOf(await login(web, 'op'));
	const [, token] = (await ask(web, '/queues', { headers: { Cookie: cookie } })).text.match(/name=token content="([0-9a-f]{128})"/);
	const filter = JSON.stringify({ queue: 'shop/stop', state: ['pending'] });
	let reached = false;
	between.change = text => { reached ||= text.includes('CALL tq.apply'); between.held = reached; return text; };
	await ask(web, '/bulk', { ...form({ token, action: 'expire', on: 'filter', filter, count: 5, back: '/' }), headers: { ...form({}).headers, Cookie: cookie } });
	await until(() => reached, 'an action has begun');
	const begin = Date.now();
	is(await web.stop(), 0, 'SIGTERM ends the program nonetheless');
	ok(Date.now() - begin < patience, `after ${Date.now() - begin} ms`);
	between.change = text => text;
	between.held = false;
}

// Two servers: the first is killed, the second follows it, is promoted then, and takes its place.
async function failover() {
	const second = standby();
	const followed = () => sql('SELECT pg_last_wal_replay_lsn() >= $1'.replace('$1', `'${sql('SELECT pg_current_wal_lsn()')}'`), 'postgres', second.folder) === 't';
	await until(followed, 'a standby follows');
	const wall = await startWeb('--as', 'reader', '--metrics-from', '127.0.0.1', second.conninfo);
	const web = await startWeb(second.conninfo);
	const proxied = await startWeb('--role-header', 'X-Role', '--trust', '127.0.0.1', second.conninfo);
	const get = (path, headers) => ask(headers['X-Role'] ? proxied : web, path, { headers });
	const acted = async headers => {
		const page = await get('/queue?name=shop/mail', headers);
		const token = page.text.match(/name=token value="([0-9a-f]{128})"/)?.[1];
		const state = sql2("SELECT paused FROM tq.queue_stats WHERE task_queue_id = 'shop/mail'") === 't' ? 'resume_queue' : 'pause_queue';
		return ask(headers['X-Role'] ? proxied : web, '/do', { ...form({ token, call: state, queue: 'shop/mail', back: '/' }), headers: { ...form({}).headers, ...headers } });
	};
	let sql2 = text => sql(text);
	const person = { Cookie: cookieOf(await login(web, 'op')) };
	const named = { 'X-Role': 'op' };
	is((await acted(person)).status, 303, 'a person acts on the first');
	is((await acted(named)).status, 303, 'so does one whom a proxy names');
	const page = await open(wall);
	await page.goto(`${wall.url}/queues`);
	const live = begin => page.waitForFunction(text => document.querySelector('#live').textContent.startsWith(text), begin);
	await live('Live');
	await until(followed, 'the standby has what was done');
	stopServer();
	await live('Not live');
	like(await page.textContent('#queues'), /shop\/mail/, 'when the first is gone, a page keeps what it has, and says so');
	for (const [it, headers] of [[wall, {}], [proxied, named]]) {
		const answer = await ask(it, '/queues', { headers });
		is(answer.status, 503, 'a standby alone is no database');
		like(answer.text, /the database does not answer/, 'as the page says');
	}
	is((await ask(wall, '/metrics')).status, 503, 'as have the metrics');
	is((await ask(wall, '/healthz')).status, 503, 'and /healthz');
	is((await get('/queues', person)).status, 503, 'and the page of a session by a password');
	is((await get('/queues', person)).headers.location, '/login?next=/queues', 'which has ended then');
	const refused = await login(web, 'op');
	is(refused.status, 503, 'and none begins');
	like(refused.text, /the database does not answer/, 'which is no fault of the password');
	second.promote();
	await live('Live');
	ok(true, 'when the second is promoted, the page comes back by itself');
	sql2 = text => sql(text, 'postgres', second.folder);
	sql2("SELECT tq.enqueue('shop/after')");
	await page.waitForSelector('#queues >> text=shop/after');
	ok(true, 'and shows what happens there');
	is((await ask(wall, '/healthz')).status, 200, '/healthz is good again');
	is((await get('/queues', person)).status, 303, 'the session does not come back');
	await until(async () => (person.Cookie = cookieOf(await login(web, 'op'))) !== '', 'one can log in again');
	is((await acted(person)).status, 303, 'and act');
	is((await acted(named)).status, 303, 'one whom a proxy names goes on without a login');
	is(sql2("SELECT count(*) FROM tq.audit WHERE function IN ('pause_queue', 'resume_queue')"), '4', 'what was done before and after is there, once');
	for (const it of [wall, web, proxied]) is(await it.stop(), 0, 'the program ends');
	unlike(wall.lines, /(the database does not answer.*\n[^]*){4}/, 'and has not filled the log');
	second.stop();
	restartServer();
}

run(async () => {
	sql("SELECT tq.enqueue('shop/mail')");
	const between = await proxy();
	await named();
	await unset(between);
	await lost();
	await silent(between);
	await slowly(() => stopped(between));
	await interrupted(between);
	await ended(between);
	await failover();
	between.server.close();
});
