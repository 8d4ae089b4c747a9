// 10_limits.mjs: each limit of the program is reached, and whom it does not mean goes on.  Those of what is
// too large or too much to be read are in 04_hostile.mjs.
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { ask, cookieOf, form, is, like, login, ok, run, session, sql, startWeb, unlike, until } from './web.mjs';

const memory = web => Number(readFileSync(`/proc/${web.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) / 1024;
const connections = () => Number(sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tq-web%'"));
const proxied = ['--role-header', 'X-Role', '--trust', '127.0.0.1'];
const roles = ['op', 'reader', 'team', 'wall_1', 'wall_2', 'wall_3'];
const encode = encodeURIComponent;

// get(WEB, PATH, HEADERS): a connection that asks for a page; what has come, and whether it is closed.  It
// reads all, or no more than a part when pull() is called.
function get(web, path, headers, reads = true) {
	const it = { text: '', length: 0, closed: false };
	const lines = Object.entries({ Host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`).join('');
	const callback = (n, buffer) => { it.length += n; it.text = (it.text + buffer.toString('latin1', 0, n)).slice(0, 200000); return reads; };
	it.socket = net.connect({ port: web.port, host: '127.0.0.1', onread: { buffer: Buffer.alloc(16384), callback } });
	it.pull = () => it.socket.resume();
	it.socket.on('error', () => { it.closed = true; });
	it.socket.on('close', () => { it.closed = true; });
	it.socket.write(`GET ${path} HTTP/1.1\r\n${lines}\r\n`);
	return it;
}

// sleeping(FUNCTION): has it take as long as it may; returns what ends that.
function sleeping(name, body = 'PERFORM pg_sleep(600)') {
	const original = sql(`SELECT pg_get_functiondef('${name}'::regproc)`);
	sql(`${original.replace(/\n LANGUAGE [^]*$/, '')} LANGUAGE plpgsql AS $f$ BEGIN ${body}; END $f$`);
	return () => sql(original);
}

// A table that pages read is locked while they are asked for.
async function whileLocked(act) {
	const locked = session("BEGIN; LOCK TABLE tq_internal.queue IN ACCESS EXCLUSIVE MODE; SELECT 'locked'");
	await until(() => locked.text.includes('locked'), 'a table is locked');
	await act();
	await locked.end();
}

// ---- what is not read ----

// The largest page there is: an artifact, of which each character is escaped.
function artifact() {
	const id = sql("SELECT tq.enqueue('team/large')");
	sql(`SELECT tq.create_artifact(task_id, run_id, 'text', jsonb_build_object('storageType', 'inline', 'contentType', 'text/plain', 'content', repeat('<', 1000000), 'expires', now() + interval '1 day'))
		FROM tq.claim_work('team/large', 'eu', 'host-1', 1)`);
	return `/artifact?id=${id}&run=0&name=text`;
}

async function answers(web, path, team, op) {
	const before = memory(web);
	const unread = [];
	for (let i = 0; i < 12; i++) unread.push(get(web, path, team, false));
	await until(() => unread.every(it => it.length > 0), `${unread.length} answers begin`);
	const busy = unread.filter(it => it.text.startsWith('HTTP/1.1 503'));
	ok(busy.length > 4 && busy.length < 10, `of answers that one role does not read some are refused: ${busy.length}`);
	like((await ask(web, path, { headers: team })).text, /Too many answers are not read yet/, 'with the reason');
	is((await ask(web, path, { headers: op })).status, 200, 'and not those of another role');
	is((await ask(web, '/queues', { headers: team })).status, 200, 'nor a small one');
	ok(memory(web) < before + 32 * Number(process.env.TQ_WEB_MEMORY ?? 1), `memory: ${memory(web).toFixed(1)} MB, ${before.toFixed(1)} before`);
	return async () => {
		await until(async () => (await ask(web, path, { headers: team })).status === 200, 'the role is answered again when they were not read for long');
		for (const it of unread) it.socket.destroy();
	};
}

// Who reads a little now and then is there, but not without an end.
async function slowly(web, path, op) {
	const begin = Date.now();
	const it = get(web, path, op, false);
	const pull = setInterval(it.pull, 500);
	await until(() => it.closed, 'an answer that is read too slowly ends');
	clearInterval(pull);
	ok(it.length > 500000 && it.length < 4000000, `before its end: ${it.length}`);
	ok(Date.now() - begin > 20000, `and not at once: ${Date.now() - begin} ms`);
}

async function silent(web) {
	const begin = Date.now();
	const it = get(web, '/login', { Connection: 'keep-alive' });
	await until(() => it.text.includes('</html>'), 'a page is read');
	ok(!it.closed, 'and its connection stays');
	await until(() => it.closed, 'until nothing was asked for long');
	ok(Date.now() - begin > 19000, `and not at once: ${Date.now() - begin} ms`);
}

// ---- streams ----

// A page that does not change says that it is there, and is looked at in any case.
async function quiet(web, op) {
	const id = sql("SELECT tq.enqueue('shop/quiet')");
	const stream = get(web, '/live?path=/failures', op);
	const task = get(web, `/live?path=${encode(`/task?id=${id}`)}`, op);
	await until(() => stream.text.includes('event: good') && task.text.includes('event: good'), 'two streams');
	task.text = '';
	sql(`SELECT tq.change_task_priority('${id}', 'highest')`);
	await until(() => /event: region[^]*highest/.test(task.text), 'what no counter has is seen after a while');
	stream.text = '';
	await until(() => stream.text.match(/^:\n\n/gm)?.length >= 3, 'a stream without a change has a sign of life now and then');
	unlike(stream.text, /event:/, 'and nothing else');
	ok(!stream.closed && !task.closed, 'and is not closed');
	for (const it of [stream, task]) it.socket.destroy();
}

// Live pages leave workers to others.
async function made() {
	const web = await startWeb(...proxied);
	const streams = roles.flatMap(role => [1, 2].map(i => get(web, `/live?path=${encode(`/queues?x=${i}`)}`, { 'X-Role': role })));
	await until(() => streams.every(it => it.text.includes('event: good')), '12 live pages');
	await whileLocked(async () => {
		const waiting = () => Number(sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tq-web%' AND wait_event_type = 'Lock'"));
		const seen = [];
		await until(() => seen.push(waiting()) && seen.at(-1) >= 4, 'four are made at a time');
		is((await ask(web, '/do?call=pause_queue&queue=shop/mail', { headers: { 'X-Role': 'op' } })).status, 200, 'beside which another page is answered');
		for (let i = 0; i < 20; i++) seen.push(waiting());
		ok(Math.max(...seen) <= 5, `and not more, but for the counters: ${Math.max(...seen)}`);
	});
	for (const it of streams) it.text = '';
	sql("SELECT tq.enqueue('team/after')");
	await until(() => streams.every(it => it.text.includes('team/after')), 'all go on then');
	for (const it of streams) it.socket.destroy();
	is(await web.stop(), 0, 'the program ends');
}

// ---- connections ----

// The program keeps not all connections that a rush has made.
async function kept() {
	const web = await startWeb(...proxied, '--workers', '24');
	await whileLocked(async () => {
		const all = roles.flatMap(role => Array.from({ length: 4 }, () => ask(web, '/queues', { headers: { 'X-Role': role } })));
		await until(() => connections() > 16, 'a rush makes more connections');
		ok((await Promise.all(all)).every(({ status }) => status === 200), 'and all are answered');
	});
	await until(() => connections() === 16, 'of which 16 are kept');
	is((await ask(web, '/queues', { headers: { 'X-Role': 'op' } })).status, 200, 'that are good');
	is(await web.stop(), 0, 'the program ends');
}

// ---- statements that take long ----

async function statements(web, op, token) {
	const wakes = [sleeping('tq.pause_queue'), sleeping('tq.health')];
	const post = (path, fields) => ask(web, path, { ...form({ token, ...fields }), headers: { ...form({}).headers, ...op } });
	let begin = Date.now();
	let answer = await ask(web, '/health', { headers: op });
	like(`${answer.status} ${answer.text}`, /^200 [^]*canceling statement due to statement timeout/, `a statement of a page ends: ${Date.now() - begin} ms`);
	begin = Date.now();
	answer = await post('/do', { call: 'pause_queue', queue: 'shop/mail', back: '/' });
	like(`${answer.status} ${answer.text}`, /^409 [^]*Pause queue: not done[^]*canceling statement due to statement timeout/, 'so does one of a form');
	ok(Date.now() - begin > 9900, `later: ${Date.now() - begin} ms`);
	for (const wake of wakes) wake();
	is((await post('/do', { call: 'pause_queue', queue: 'shop/mail', back: '/' })).status, 303, 'and is done by its connection when it can be');
}

async function dryRun(web, op, token) {
	const begin = Date.now();
	const answer = await ask(web, '/bulk', { ...form({ token, action: 'cancel', on: 'filter', filter: '{"queue": "shop/mail"}', back: '/' }), headers: { ...form({}).headers, ...op } });
	like(answer.text, /Cancel: not done[^]*canceling statement due to statement timeout/, 'a dry run ends');
	ok(Date.now() - begin > 59000, `after longer: ${Date.now() - begin} ms`);
	is((await ask(web, '/queues', { headers: op })).status, 200, 'and its connection is good');
}

// ---- actions ----

async function actions(wake) {
	const web = await startWeb(...proxied, '--connections', '16');
	const tokens = {};
	for (const role of ['op', 'team']) [, tokens[role]] = (await ask(web, '/login?', { headers: { 'X-Role': role } })).text.match(/name=token content="([0-9a-f]{128})"/) ?? (await ask(web, '/messages', { headers: { 'X-Role': role } })).text.match(/name=token content="([0-9a-f]{128})"/);
	const post = (path, fields, role = 'op') => ask(web, path, { ...form({ token: tokens[role], ...fields }), headers: { ...form({}).headers, 'X-Role': role } });
	const begin = role => post('/bulk', { action: 'cancel', on: 'filter', filter: '{"queue": "shop/mail"}', count: 5, back: '/' }, role);
	const page = async url => (await ask(web, url, { headers: { 'X-Role': 'op' } })).text;
	const all = [];
	for (let i = 0; i < 8; i++) all.push((await begin()).headers.location);
	ok(all.every(url => /^\/job\?id=/.test(url)), 'eight actions are under way', all.join(' '));
	for (const role of ['op', 'team']) {
		const answer = await begin(role);
		like(`${answer.status} ${answer.text}`, /^503 [^]*Others are being done/, `one more is not begun, of ${role}`);
	}
	like(await page(all[0]), /Under way/, 'beside which pages are answered');
	await post('/job', { id: all[0].split('=')[1] });
	await until(async () => /It was stopped/.test(await page(all[0])), 'one is stopped');
	all.push((await begin()).headers.location);
	like(all[8] ?? '', /^\/job\?id=/, 'which makes room for another');
	for (const url of all) await post('/job', { id: url.split('=')[1] });
	for (const url of all) await until(async () => /It was stopped/.test(await page(url)), 'all are stopped');
	wake();

	const tasks = sql("SELECT tq.enqueue('shop/reasons') FROM generate_series(1, 10)").split('\n');
	const end = sleeping('tq.cancel_task', "RAISE 'reason %', $1");
	const fields = new URLSearchParams({ token: tokens.op, action: 'cancel', on: 'picked', count: 10, back: '/' });
	for (const id of tasks) fields.append('pick', id);
	const { location } = (await ask(web, '/bulk', { method: 'POST', body: fields.toString(), headers: { ...form({}).headers, 'X-Role': 'op' } })).headers;
	await until(async () => !/Under way/.test(await page(location)), 'ten tasks are refused');
	is([...(await page(location)).matchAll(/<li>1: reason /g)].length, 7, 'for reasons of which seven are named');
	like(await page(location), /<li>3: other reasons/, 'and the others counted');
	end();

	const done = [];
	for (let i = 0; i < 65; i++) {
		done.push((await post('/bulk', { action: 'cancel', on: 'picked', count: 1, pick: tasks[0], back: '/' })).headers.location);
		for (let text = ''; !text.includes('Done in');) text = await page(done[i]);
	}
	is((await ask(web, location, { headers: { 'X-Role': 'op' } })).status, 404, 'of actions that have ended the oldest are forgotten');
	is((await ask(web, done[1], { headers: { 'X-Role': 'op' } })).status, 200, 'and the 64 last are not');
	is(await web.stop(), 0, 'the program ends');
}

run(async () => {
	for (const role of roles.slice(3)) sql(`CREATE ROLE ${role} IN ROLE tq_reader`);
	sql("SELECT tq.enqueue('shop/mail') FROM generate_series(1, 50)");
	const path = artifact();
	await kept();
	await made();
	const web = await startWeb();
	const [op, team] = [{ Cookie: cookieOf(await login(web, 'op')) }, { Cookie: cookieOf(await login(web, 'team')) }];
	const [, token] = (await ask(web, '/queues', { headers: op })).text.match(/name=token content="([0-9a-f]{128})"/);
	const again = await answers(web, path, team, op);
	const wake = sleeping('tq.apply');
	await Promise.all([again(), slowly(web, path, op), silent(web), quiet(web, op), statements(web, op, token), dryRun(web, op, token)]);
	await actions(wake);
	is(await web.stop(), 0, 'it ends by SIGTERM');
	unlike(web.lines, /Sanitizer|runtime error/, 'and nothing was wrong');
});
