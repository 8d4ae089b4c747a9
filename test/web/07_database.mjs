// 07_database.mjs: the database is another than a person's name says, changes nothing of
// our settings, loses connections, does not answer, and is asked again to stop.
import { ask, cookieOf, folder, form, is, like, login, ok, open, proxy, run, session, sql, startWeb, unlike, until } from './web.mjs';

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
	ok(Date.now() - begin < 30000, 'in time');
	between.held = false;
	is((await login(web, 'op')).status, 303, 'then one can log in again');
	await web.stop();
}

// A stop that comes before the statement has begun is no less one.
async function stopped(between) {
	sql("SELECT count(tq.enqueue('shop/stop')) FROM generate_series(1, 20000)");
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
		const { headers: { location } } = await post('/bulk', { action: 'cancel', on: 'filter', filter, count: 20000, back: '/' });
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
	locked.end();
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
	ok(Date.now() - begin < 40000, `after ${Date.now() - begin} ms`);
	between.change = text => text;
	between.held = false;
}

run(async () => {
	sql("SELECT tq.enqueue('shop/mail')");
	const between = await proxy();
	await named();
	await unset(between);
	await lost();
	await silent(between);
	await stopped(between);
	await interrupted(between);
	await ended(between);
	between.server.close();
});
