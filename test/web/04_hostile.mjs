// 04_hostile.mjs: what is too large, too slow, too much or no HTTP stops neither the
// program nor others.
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { ask, cookieOf, form, is, like, login, ok, run, session, sql, startWeb, unlike, until } from './web.mjs';

const memory = web => Number(readFileSync(`/proc/${web.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) / 1024;
const factor = Number(process.env.TQ_WEB_MEMORY ?? 1);	// more with a sanitizer

// raw(WEB, TEXT): a connection that has sent a text; what comes back, and whether it is closed.
function raw(web, text = '') {
	const socket = net.connect(web.port, '127.0.0.1');
	const state = { socket, text: '', closed: false };
	socket.on('data', part => { state.text += part.toString('latin1').slice(0, 2000); });
	socket.on('error', () => { state.closed = true; });
	socket.on('close', () => { state.closed = true; });
	if (text) socket.write(text);
	return state;
}

async function others(web, cookie, what) {
	const begin = Date.now();
	let answer;
	for (let i = 0; i < 20 && answer?.status !== 200; i++) answer = await ask(web, '/queues', { headers: { Cookie: cookie } }).catch(() => undefined);
	is(answer?.status, 200, `others are answered: ${what}, after ${Date.now() - begin} ms`);
}

async function large(web, cookie) {
	let it = raw(web, `POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${2 ** 30}\r\n\r\n`);
	await until(() => it.text.startsWith('HTTP/1.1 413'), 'a POST of 1 GB is refused before it is sent');
	it.socket.destroy();
	it = raw(web, 'POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n');
	const chunk = `10000\r\n${'a'.repeat(0x10000)}\r\n`;
	let sent = 0;
	while (!it.closed && sent++ < 16384) if (!it.socket.write(chunk)) await new Promise(resolve => { it.socket.once('drain', resolve); it.socket.once('close', resolve); });
	ok(it.closed && sent < 1000, `one that does not say how large it is ends early, after ${sent * 64} kB`);
	it = raw(web, `GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: ${'a'.repeat(2 ** 20)}\r\n\r\n`);
	await until(() => it.closed || /^HTTP\/1.1 4/.test(it.text), 'a header of 1 MB is refused');
	it = raw(web, `GET /${'a'.repeat(2 ** 20)} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
	await until(() => it.closed || /^HTTP\/1.1 4/.test(it.text), 'so is a line of 1 MB');
	const fields = { method: 'POST', headers: form({}).headers, body: 'a=b&'.repeat(50000) };
	is((await ask(web, '/login', { ...fields, headers: { ...fields.headers, Origin: web.url } })).status, 413, 'a login is small');
	is((await ask(web, '/do', { ...fields, headers: { ...fields.headers, Cookie: cookie } })).status, 400, 'a form of 50,000 fields is refused');
	await others(web, cookie, 'after what is large');
}

// What is sent without a session is not kept, and what a role sends is bounded.
async function unkept(web, cookie) {
	const before = memory(web);
	const size = 250000;
	const send = (path, more) => { const it = raw(web, `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${more}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${size}\r\n\r\n`); it.sent = new Promise(resolve => { it.socket.write('a'.repeat(size - 1), resolve); it.socket.on('close', resolve); }); return it; };
	let all = Array.from({ length: 400 }, () => send('/do', ''));
	await Promise.all(all.map(it => it.sent));
	await others(web, cookie, 'while 100 MB come without a session');
	ok(memory(web) < before + 32 * factor, `which are not kept: ${memory(web).toFixed(1)} MB, ${before.toFixed(1)} before`);
	all[0].socket.write('a');
	await until(() => /^HTTP\/1.1 303[^]*Location: \/login/.test(all[0].text), 'and lead to the login when they have come');
	for (const it of all) it.socket.destroy();
	const team = cookieOf(await login(web, 'team'));
	all = Array.from({ length: 400 }, () => send('/do', `Cookie: ${team}\r\n`));
	await Promise.all(all.map(it => it.sent));
	await until(() => all.some(it => it.text.startsWith('HTTP/1.1 503')), 'of one role not all are taken');
	const pause = { token: await tokenOf(web, cookie), call: 'pause_queue', queue: 'shop/mail', more: 'x'.repeat(200000) };
	is((await ask(web, '/do', { ...form(pause), headers: { ...form({}).headers, Cookie: cookie } })).status, 303, 'and another role may send as before');
	ok(memory(web) < before + 64 * factor, `with ${memory(web).toFixed(1)} MB`);
	for (const it of all) it.socket.destroy();
}

const tokenOf = async (web, cookie) => (await ask(web, '/queues', { headers: { Cookie: cookie } })).text.match(/name=token content="([0-9a-f]{128})"/)[1];

// What one role begins ends nothing of others.
async function shares(web, cookie) {
	const status = async it => (await ask(web, '/queues', { headers: { Cookie: it } })).status;
	const mine = [];
	for (let i = 0; i < 103; i++) mine.push(cookieOf(await login(web, 'team')));
	is(await status(mine[0]), 303, 'a role that logs in again and again loses its oldest sessions');
	is(await status(mine[102]), 200, 'and not the newest');
	is(await status(cookie), 200, 'nor one of another role');
	const stream = it => raw(web, `GET /live?path=/queues HTTP/1.1\r\nHost: localhost\r\nCookie: ${it}\r\n\r\n`);
	const all = [];
	for (let i = 0; i < 3010; i++) {
		all.push(stream(mine[102]));
		if (i % 100 === 0) await until(() => all.at(-1).text !== '', `${i} readers of a role`);
	}
	await until(() => all.at(-1).text.includes('too many'), 'a role that has too many readers gets no more');
	const other = stream(cookie);
	await until(() => other.text.includes('event: region'), 'which leaves room for others');
	for (const it of [...all, other]) it.socket.destroy();
	await others(web, cookie, 'after readers that are too many');
}

// What one role does not read, or has open, is bounded.
async function unread(web, cookie) {
	sql(`SELECT count(tq.enqueue('team/qq-' || i || repeat('q', 30), '{}')) FROM generate_series(1, 300) AS i`);
	const team = cookieOf(await login(web, 'team'));
	const before = memory(web);
	const get = path => raw(web, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nCookie: ${team}\r\n\r\n`);
	const { text } = await ask(web, '/queues', { headers: { Cookie: team } });
	const all = [];
	for (let i = 0; i < 500; i++) {
		all.push(get('/queues'));
		all.at(-1).socket.pause();
		if (i % 50 === 49) await ask(web, '/queues', { headers: { Cookie: team } });
	}
	await others(web, cookie, `beside 500 answers of ${text.length >> 10} kB that are not read`);
	ok(memory(web) < before + 40 * factor, `with ${memory(web).toFixed(1)} MB, ${before.toFixed(1)} before`);
	for (const it of all) it.socket.destroy();
	await others(web, cookie, 'and after them');
	const pages = Array.from({ length: 300 }, (_, i) => get(`/live?path=/queues%3Fx=${i}`));
	await until(() => pages.some(it => it.text.includes('too many pages')), 'a role has not too many pages open');
	await until(() => pages.every(it => /event: (region|trouble)/.test(it.text)), 'those that it has are made');
	ok(memory(web) < before + 64 * factor, `with ${memory(web).toFixed(1)} MB`);
	for (const it of pages) it.socket.destroy();
	sql(`SELECT count(*) FROM tq.task_overview AS t, tq.cancel_task(t.task_id) WHERE task_queue_id LIKE 'team/qq%'`);
}

async function malformed(web, cookie) {
	const head = 'GET /queues?find=%zz&a=%00&=&&;=%u HTTP/1.1\r\nHost: localhost\r\n';
	const samples = ['\0\0\0\0', 'GET\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n', 'GET / HTTP/1.1\r\nHost:\r\n\r\n', `${head}\r\n`,
		`${head}Content-Length: -1\r\n\r\n`, `${head}Cookie: tq_session=${'%00'.repeat(99)}\r\n\r\n`, `${head}Cookie: ;;==;"\r\n\r\n`,
		'POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nrole=', 'POST /do HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
		'GET http://evil.example/queues HTTP/1.1\r\nHost: evil.example\r\n\r\n', 'CONNECT localhost:5432 HTTP/1.1\r\n\r\n', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'];
	let seed = 7;
	const random = n => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n; };
	const all = [...samples];
	for (let i = 0; i < 600; i++) {
		const bytes = Buffer.from(samples[random(samples.length)] + head, 'latin1');
		for (let j = 0; j < 1 + random(6); j++) bytes[random(bytes.length)] = random(256);
		all.push(bytes.subarray(0, 1 + random(bytes.length)));
	}
	const states = all.map(text => { const it = raw(web); it.socket.end(text); return it; });
	await until(() => states.every(it => it.closed), `${all.length} requests that are none are answered or closed`);
	ok(!states.some(it => it.text.startsWith('HTTP/1.1 200')), 'none is a page');
	await others(web, cookie, 'after what is no HTTP');
}

// Fields with what the parsers and the database would stumble over.
async function fields(web, cookie) {
	const values = ["'", "';--", '\\', '%27', '{', '}', '[]', '{"a":', 'null', '-1', '1e999', '9'.repeat(400), '\u{1F600}', '\u202e', '<x onload=1>', '-task_queue_id', '-0', 'queues.sort', '/'.repeat(300), '*'];
	const names = ['find', 'queues.sort', 'queues.show', 'name', 'range', 'id', 'path', 'done', 'call', 'next', 'why', 'workers.sort'];
	const bad = [];
	for (const path of ['/queues', '/queue', '/login', '/do', '/job', '/live'])
		for (const name of names)
			for (const value of values) {
				if (path === '/live' && name !== 'path') continue;
				const { status, text } = await ask(web, `${path}?${name}=${encodeURIComponent(value)}`, { headers: { Cookie: cookie } });
				if (status >= 500 || /syntax error|SQLSTATE (42|XX)|<x onload/.test(text)) bad.push(`${path}?${name}=${value}: ${status}`);
			}
	is(bad.join('\n'), '', 'no field is SQL or HTML');
}

async function crowd(web, cookie) {
	const before = memory(web);
	const sockets = [];
	for (let i = 0; i < 10000; i++) {
		sockets.push(raw(web, i % 2 ? 'GET / HTTP/1.1\r\nHost: loc' : ''));
		if (i % 250 === 0) await new Promise(resolve => setImmediate(resolve));
	}
	await until(() => sockets.every(it => it.closed || !it.socket.connecting), '10,000 connections');
	await others(web, cookie, 'beside them');
	ok(memory(web) < 128 * factor, `with ${memory(web).toFixed(1)} MB, ${before.toFixed(1)} before`);
	for (const it of sockets) it.socket.destroy();
	await others(web, cookie, 'when they are gone');
}

async function slow(web, cookie) {
	const header = raw(web, 'GET / HTTP/1.1\r\n');
	const stream = raw(web, `GET /live?path=/queues HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`);
	await until(() => stream.text.includes('event: region'), 'a stream');
	stream.socket.pause();
	const readers = [];
	for (let i = 0; i < 50; i++) {
		const it = raw(web, `GET /queue?name=shop/mail HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`);
		it.socket.pause();
		readers.push(it);
	}
	await others(web, cookie, 'beside those who do not read');
	const drip = setInterval(() => header.socket.write('X'), 200);
	await until(() => header.closed, 'a header that comes byte by byte is closed');
	clearInterval(drip);
	for (const it of [stream, ...readers]) it.socket.destroy();
}

// A role whose statements wait does not keep others from theirs.
async function blocked(web, cookie) {
	const team = cookieOf(await login(web, 'team'));
	const locked = session('BEGIN; LOCK TABLE tq_internal.queue IN ACCESS EXCLUSIVE MODE; SELECT \'locked\'');
	await until(() => locked.text.includes('locked'), 'a table is locked');
	const waiting = Array.from({ length: 20 }, () => ask(web, '/queues', { headers: { Cookie: team } }));
	is((await ask(web, '/login')).status, 200, 'beside pages that wait for it, others are answered');
	is((await ask(web, '/healthz')).status, 200, 'and the state of the database');
	const more = Array.from({ length: 100 }, () => ask(web, '/queues', { headers: { Cookie: team } }).catch(() => ({})));
	is((await Promise.race(more)).status, 503, 'of one role not more than some wait');
	const answers = await Promise.all(waiting);
	ok(answers.every(answer => answer.status === 200 && /timeout/.test(answer.text)), 'a page that waits ends, and says why');
	await locked.end();
	await Promise.all(more);
	await until(async () => (await ask(web, '/queues', { headers: { Cookie: cookie } })).text.includes('shop/mail'), 'then it is what it was');
}

run(async () => {
	sql("SELECT tq.enqueue('shop/mail') FROM generate_series(1, 50)");
	const web = await startWeb();
	const cookie = cookieOf(await login(web, 'op'));
	await large(web, cookie);
	await unkept(web, cookie);
	await shares(web, cookie);
	await unread(web, cookie);
	await malformed(web, cookie);
	await fields(web, cookie);
	await blocked(web, cookie);
	await crowd(web, cookie);
	await slow(web, cookie);
	ok(memory(web) < 128 * factor, `memory: ${memory(web).toFixed(1)} MB`);
	is(await web.stop(), 0, 'it ends by SIGTERM');
	unlike(web.lines, /Sanitizer|runtime error/, 'and nothing was wrong', web.lines.slice(-4000));
	like(web.lines, /login of role op/, 'its lines say who came');
});
