// 02_live.mjs: a page that is open changes by itself, at the cost of one reader; the
// database goes, and comes.
import http from 'node:http';
import { readFileSync } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { ask, cookieOf, form, is, like, login, ok, open, restartServer, run, sql, startWeb, stopServer, unlike, until } from './web.mjs';

const streams = [];

// read(WEB, PATH, HEADERS): a stream, with the text that has come.
function read(web, path, headers) {
	const stream = { text: '', sent: 0, ended: false };
	stream.request = http.get(`${web.url}/live?path=${encodeURIComponent(path)}`, { headers, agent: false }, answer => {
		stream.status = answer.statusCode;
		const text = answer.headers['content-encoding'] === 'gzip' ? answer.pipe(createGunzip()) : answer;
		stream.isPacked = text !== answer;
		answer.on('data', part => { stream.sent += part.length; });
		text.setEncoding('utf8').on('error', () => {});
		text.on('data', part => { stream.text = (stream.text + part).slice(-100000); });
		answer.on('close', () => { stream.ended = true; });
	});
	stream.request.on('error', () => { stream.ended = true; });
	streams.push(stream);
	return stream;
}

const commits = () => Number(sql("SELECT pg_stat_force_next_flush() IS NULL, xact_commit FROM pg_stat_database WHERE datname = 'shop'").split('|')[1]);
const memory = web => Number(readFileSync(`/proc/${web.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) / 1024;

// What is ticked stays so, and no other row is, when a row comes before it or goes.
async function rows(web, page) {
	const fail = () => sql("SELECT tq.report_failed(task_id, run_id, error_message => 'no') FROM tq.claim_work('shop/dead', 'eu', 'host-1', 1)");
	const ticked = () => page.evaluate(() => [...document.querySelectorAll('#letters input[name=pick]:checked')].map(box => `${box.value} ${box.closest('tr').textContent.match(/letter \d/)[0]}`).join());
	const shown = n => page.waitForFunction(n => document.querySelectorAll('#letters tbody tr').length === n, n);
	sql(`SELECT count(tq.enqueue('shop/dead', '{}', name => 'letter ' || i, policy => '{"deadLetter": true, "retries": 0}')) FROM generate_series(1, 4) AS i`);
	for (let i = 0; i < 3; i++) fail();
	await page.goto(`${web.url}/dead-letters`);
	await page.waitForFunction(() => document.querySelector('#live').textContent === 'Live');
	await page.locator('#letters input[name=pick]').first().check();
	const before = await ticked();
	fail();
	await shown(4);
	is(await ticked(), before, 'a row that comes before one that is ticked does not take its place');
	is(await page.evaluate(() => document.activeElement.value), before.slice(0, 22), 'nor the focus');
	sql(`SELECT tq.discard_dead_letter(task_id) FROM tq.dead_letter_overview WHERE task_id <> '${before.slice(0, 22)}' ORDER BY failed_at DESC LIMIT 1`);
	await shown(3);
	is(await ticked(), before, 'nor one after it, when a row goes');
}

async function inPlace(web) {
	const page = await open(web, { role: 'op' });
	await page.goto(`${web.url}/queues`);
	await page.waitForFunction(() => document.querySelector('#live').textContent === 'Live');
	ok(true, 'a page says that it is live');
	await page.click('summary');
	await page.uncheck('input[value=delayed]');
	await page.focus('#find');
	await page.keyboard.type('sh');
	await page.evaluate(() => { globalThis.kept = document.querySelector('#queues tbody th'); });
	sql("SELECT tq.enqueue('shop/mail') FROM generate_series(1, 1234)");
	await page.waitForFunction(() => document.querySelector('#queues').textContent.includes('1,23'));
	ok(true, 'what happens is shown');
	is(await page.evaluate(() => globalThis.kept.isConnected && document.activeElement.id + document.activeElement.value), 'findsh', 'in place: what has the focus keeps it');
	is(await page.evaluate(() => document.querySelector('details').open && !document.querySelector('input[value=delayed]').checked), true, 'and what was opened and ticked stays so');
	is(await page.evaluate(() => performance.getEntriesByType('navigation').length), 1, 'without another load');
	sql("SELECT tq.enqueue('shop/new')");
	await page.waitForSelector('#queues >> text=shop/new');
	ok(true, 'a new queue is a new row');
	is(page.problems.join('\n'), '', 'the browser has nothing to say');
	await page.goto(`${web.url}/queue?name=shop/new`);
	await page.waitForFunction(() => document.querySelector('#live').textContent === 'Live');
	sql("SELECT tq.pause_queue('shop/new')");
	await page.waitForSelector('#numbers >> text=is paused');
	ok(true, 'so is a queue by itself');
	await rows(web, page);
	const other = await open(web, { role: 'op' });
	await other.click('text=Log out');
	await page.context().close();
	await other.context().close();
}

// The times of a chart are those of the reader's zone, also after it was replaced.
async function zones(web) {
	const page = await open(web, { role: 'op', timezoneId: 'Asia/Kolkata', locale: 'en-GB' });
	for (const [range, pattern] of [['1 h', /^\d\d:\d\d$/], ['7 d', /^\d+ [A-Z][a-z]+,? (?:at )?\d\d:\d\d$/]]) {
		await page.goto(`${web.url}/queue?name=shop/new&range=${encodeURIComponent(range)}`);
		const { axis, at, hover } = await page.evaluate(() => {
			const text = document.querySelector('.chart text[data-at]');
			return { axis: text.textContent, at: text.dataset.at, hover: document.querySelector('.chart .step').textContent };
		});
		like(axis, pattern, `an axis of ${range} has times`);
		const local = new Date((Number(at) + 5.5 * 3600) * 1000).toISOString().slice(11, 16);
		ok(axis.endsWith(local), 'in the zone of the reader', `${axis} ${local}`);
		like(hover, /^\d+ [A-Z][a-z]+,? (?:at )?\d\d:\d\d GMT\+5:30\ncreated: /, 'and so has what is shown on hover');
	}
	await page.waitForFunction(() => document.querySelector('#live').textContent === 'Live');
	sql("SELECT tq.enqueue('shop/new') FROM generate_series(1, 3)");
	const before = await page.textContent('.totals');
	await page.waitForFunction(text => document.querySelector('.totals').textContent !== text, before);
	unlike(await page.innerHTML('.charts'), /UTC/, 'in what was replaced, too');
	await page.context().close();
	const { text } = await ask(web, '/queue?name=shop/new', { headers: { Cookie: cookieOf(await login(web, 'op')) } });
	like(text, /data-at=\d+>\d\d:\d\d UTC</, 'without a script they are those of UTC');
}

async function rights(web) {
	const team = cookieOf(await login(web, 'team'));
	const stream = read(web, '/queues', { Cookie: team });
	await until(() => stream.text.includes('team/report'), 'a team reads a stream of its own queues');
	unlike(stream.text, /shop\/mail/, 'and of no others');
	is((await ask(web, '/live?path=/queues')).status, 303, 'without a login there is no stream');
	for (const path of ['/login', '/metrics', '/live', '/no', '', '//evil'])
		is((await ask(web, `/live?path=${encodeURIComponent(path)}`, { headers: { Cookie: team } })).status, 404, `there is no stream of ${path}`);
	const token = (await ask(web, '/queues', { headers: { Cookie: team } })).text.match(/name=token value="([0-9a-f]+)/)[1];
	await ask(web, '/logout', { ...form({ token }), headers: { ...form({}).headers, Cookie: team } });
	await until(() => stream.ended, 'a logout ends the stream');
}

// Who takes gzip reads the same: each event is there when it has come, and none needs those before.
async function packed(web) {
	const headers = { Cookie: cookieOf(await login(web, 'op')) };
	const readers = [read(web, '/queues', headers), read(web, '/queues', { ...headers, 'Accept-Encoding': 'gzip, br' })];
	const events = stream => stream.text.split('\n\n').filter(event => /^event: region/.test(event)).slice(-2).join('\n\n');
	for (const name of ['shop/packed', 'shop/packed2']) {
		sql(`SELECT tq.enqueue('${name}')`);
		await until(() => readers.every(stream => events(stream).includes(`>${name}<`) && stream.text.endsWith('event: good\ndata:\n\n')), `${name} is read packed and plain`);
	}
	is(readers.map(stream => Boolean(stream.isPacked)).join(), 'false,true', 'one is packed');
	is(events(readers[1]), events(readers[0]), 'and has what the other has');
	ok(readers[1].sent * 3 < readers[0].sent, `in less: ${readers.map(stream => stream.sent).join(' and ')} bytes`);
	const late = read(web, '/queues', { ...headers, 'Accept-Encoding': 'gzip' });
	await until(() => events(late).includes('>shop/packed2<'), 'a reader who comes later begins with all of it');
}

// cost(STREAM): transactions for five versions of a page, and seconds, in each of which the program looks
// once whether there is a new one.
async function cost(stream) {
	const versions = () => stream.text.split('event: good').length;
	const [begin, began] = [commits(), Date.now()];
	stream.text = '';
	let i = 0;
	while (versions() < 6 && i++ < 600) {
		sql("SELECT tq.enqueue('shop/new')");
		await new Promise(resolve => setTimeout(resolve, 100));
	}
	return { transactions: commits() - begin - 2 * i, seconds: (Date.now() - began) / 1000 };
}

async function many(web) {
	const cookie = cookieOf(await login(web, 'op'));
	const first = read(web, '/queues', { Cookie: cookie });
	await until(() => first.text.includes('event: good'), 'one reader');
	const one = await cost(first);
	for (let i = 0; i < 200; i++) read(web, '/queues', { Cookie: cookie });
	await until(() => streams.slice(-200).every(stream => stream.text.includes('event: good')), '200 more');
	const all = await cost(first);
	const looks = Math.max(0, 3 * (all.seconds - one.seconds));
	ok(all.transactions < one.transactions * 1.5 + 10 + looks, `cost the database what one costs: ${one.transactions} and ${all.transactions} transactions`);
	ok(memory(web) < 64 * Number(process.env.TQ_WEB_MEMORY ?? 1), `and the program little memory: ${memory(web).toFixed(1)} MB`);
	is(sql("SELECT count(*) <= 6 FROM pg_stat_activity WHERE application_name LIKE 'tq-web%'"), 't', 'and few connections');
	for (const stream of streams) stream.request.destroy();
	await until(async () => (await ask(web, '/queues', { headers: { Cookie: cookie } })).status === 200, 'others are answered when they are gone');
}

async function failover(web) {
	const wall = await startWeb('--as', 'reader');
	const page = await open(wall);
	await page.goto(`${wall.url}/queues`);
	await page.waitForFunction(() => document.querySelector('#live').textContent === 'Live');
	const person = await open(web, { role: 'op' });
	await person.waitForFunction(() => document.querySelector('#live').textContent === 'Live');
	stopServer();
	await page.waitForFunction(() => document.querySelector('#live').textContent.startsWith('Not live'));
	like(await page.textContent('#queues'), /shop\/mail/, 'without a database a page keeps what it has, and says so');
	const answer = await ask(wall, '/queues');
	is(answer.status, 503, 'a new page says so, too');
	like(answer.text, /the database does not answer/, 'in words');
	is((await ask(wall, '/healthz')).status, 503, 'and /healthz');
	await person.waitForSelector('#live >> text=Log in again');
	ok(true, 'a person has to log in again, because no password is kept');
	restartServer();
	await page.waitForFunction(() => document.querySelector('#live').textContent === 'Live');
	ok(true, 'it comes back by itself');
	await person.click('text=Log in again');
	like(person.url(), /\/login\?next=\/queues/, 'the login leads back');
	is((await ask(wall, '/healthz')).status, 200, '/healthz is good again');
	is(await wall.stop(), 0, 'a program with readers ends');
	unlike(wall.lines, /(the database does not answer.*\n[^]*){3}/, 'and has not filled the log');
}

run(async () => {
	sql("SELECT tq.enqueue('team/report'); SELECT tq.enqueue('shop/mail')");
	const web = await startWeb();
	await inPlace(web);
	await zones(web);
	await rights(web);
	await packed(web);
	await many(web);
	await failover(web);
	is(await web.stop(), 0, 'it ends by SIGTERM');
});
