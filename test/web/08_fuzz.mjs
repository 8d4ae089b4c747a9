// 08_fuzz.mjs: requests made by chance, to each route: none stops the program or others,
// none is answered by an error that is ours, and no part of one becomes a header or HTML.
//
// TQ_WEB_FUZZ says how many (1500), TQ_WEB_SEED with which number chance begins; TQ_WEB may
// be a program with sanitizers.
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { ask, cookieOf, is, like, login, run, sql, startWeb, unlike, until } from './web.mjs';

const many = Number(process.env.TQ_WEB_FUZZ ?? 1500);
let state = Number(process.env.TQ_WEB_SEED ?? 42);

// ---- chance ----

function random(n) {
	state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
	return Math.floor((state / 2 ** 32) * n);
}
const one = list => list[random(list.length)];
const maybe = (chance, text) => (random(100) < chance ? text() : '');

const routes = [...readFileSync(new URL('../../src/bin/web/routes.c', import.meta.url), 'utf8').matchAll(/\.path = "(.*?)"/g)].map(found => found[1]);
const paths = [...routes, ...routes, '/live', '/style.css', '/..%2f..%2fetc/passwd', '//evil.example', '/queues%00', '/que%75es', '/*', '/\u{1F600}', `/${'a/'.repeat(500)}`];
const names = ['find', 'name', 'id', 'queue', 'state', 'filter', 'after', 'before', 'tags', 'group', 'run', 'new', 'range', 'path', 'call', 'back', 'next', 'why', 'done', 'from',
	'task', 'action', 'count', 'pick', 'job', 'pattern', 'exchange', 'queues.sort', 'tasks.sort', 'tasks.show', 'role', 'password', 'owner', 'worker_id', 'definition', 'payload', 'token', 'a]b'];
const values = ['', '*', 'shop/mail', 'failed', '{}', '{"queue": "shop/*"}', '{"state": ["failed", "pending"]}', '{"a":', '[]', 'null', '-1', '0', '1e999', '9'.repeat(40), "'", "';--", '\\', '%', '%zz', '%00',
	'%ff', '\u{1F600}', '\u202e', '<x-fuzz onload=1>', '"><x-fuzz>', '\r\nX-Fuzz: 1', '%0d%0aX-Fuzz:%201', '/queues?find=a', '/queue?name=shop/mail', '//evil.example', '/\\evil.example', 'https://evil.example', '/live?path=/live',
	'cancel', 'rerun', 'delete', 'cancel_task', 'pause_queue', 'change_task_priority', 'highest', '-state', 'none', '7 d', 'x'.repeat(3000), 'a&b=c', 'a=b'];
const headers = ['Content-Length: 5', 'Content-Length: -1', 'Content-Length: 18446744073709551616', 'Content-Length: 5, 6', 'Content-Length: 0x10', 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity',
	'Transfer-Encoding: gzip, chunked', 'Expect: 100-continue', 'Expect: x', 'Accept-Encoding: gzip', 'Accept-Encoding: gzip;q=0', 'Range: bytes=0-1', 'If-None-Match: *', 'Connection: upgrade', 'Upgrade: websocket', 'Connection: close',
	'Host: evil.example', 'Host: [::1', 'Host: localhost:99999', 'Cookie: tq_session=', 'Cookie: ;;=;"', `Cookie: tq_session=${'0'.repeat(64)}`, 'X-Forwarded-For: 1.2.3.4, ::1/3', 'X-Forwarded-Proto: https', 'X-Forwarded-Proto: \x01', 'Origin: null',
	'Origin: http://evil.example', 'Sec-Fetch-Site: cross-site', 'Content-Type: multipart/form-data; boundary=x', 'Content-Type: application/json', 'Content-Type: application/x-www-form-urlencodedx', ': x', 'X', ' folded: x', `X-Long: ${'a'.repeat(9000)}`, 'Authorization: Bearer x'];

const pairs = () => Array.from({ length: random(5) }, () => `${one(names)}=${random(3) ? encodeURIComponent(one(values)) : one(values).replace(/[\r\n ]/g, '')}`).join('&');

function chunks(text) {
	const size = one(['', ';x=y', ' ', 'g', '0'.repeat(20), '\0']);
	return `${text.length.toString(16)}${size}\r\n${text}\r\n${one(['0\r\n\r\n', '0\r\nX-Trailer: 1\r\n\r\n', 'ffffffffffffffff\r\n', '-1\r\n', '', '0\n\n'])}`;
}

function request(cookie, token) {
	const post = random(3) === 0;
	let body = post ? `${maybe(85, () => `token=${token}&`)}${pairs()}` : '';
	const length = Buffer.byteLength(body);
	const chunked = post && random(4) === 0;
	if (chunked) body = chunks(body);
	const lines = [`${post ? 'POST' : one(['GET', 'GET', 'GET', 'GET', 'HEAD', 'PUT', 'OPTIONS', 'get', 'G\0T'])} ${one(paths)}${maybe(70, () => `?${pairs()}`)} HTTP/${one(['1.1', '1.1', '1.1', '1.1', '1.0', '1.2', '2'])}`,
		'Host: localhost', `Cookie: tq_session=${cookie}`, maybe(90, () => 'Content-Type: application/x-www-form-urlencoded'), post ? (chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`) : ''];
	for (let i = random(3); i > 0; i--) lines.splice(1 + random(lines.length), 0, one(headers));
	const text = `${lines.filter(line => line !== '').join(one(['\r\n', '\r\n', '\r\n', '\r\n', '\n']))}\r\n\r\n${body}`;
	const bytes = Buffer.from(text, random(2) ? 'utf8' : 'latin1');
	if (random(3) === 0) for (let i = random(4); i > 0; i--) bytes[random(bytes.length)] = random(256);
	return random(6) === 0 ? bytes.subarray(0, 1 + random(bytes.length)) : bytes;
}

// ---- what comes back ----

// send(WEB, BYTES): in pieces, and no more is sent then, unless the connection stays; what comes
// back until the end, or nothing does.
function send(web, bytes, stays = false) {
	return new Promise(resolve => {
		const socket = net.connect(web.port, '127.0.0.1');
		const parts = [];
		const cut = random(bytes.length);
		socket.on('data', part => { parts.push(part); if (/^HTTP\/1\.1 200[^]*text\/event-stream/.test(part)) socket.destroy(); });
		socket.setTimeout(1000, () => socket.destroy());
		socket.on('error', () => {});
		socket.on('close', () => resolve(Buffer.concat(parts).toString('latin1')));
		socket.write(bytes.subarray(0, cut));
		setImmediate(() => (stays ? socket.write(bytes.subarray(cut)) : socket.end(bytes.subarray(cut))));
	});
}

// Says what is wrong with an answer: nothing, if there is none.
function fault(text) {
	const status = Number(text.match(/^HTTP\/1\.[01] (\d{3})/)?.[1] ?? 0);
	if (text !== '' && status === 0) return 'no HTTP';
	if (status >= 500 && ![501, 503, 505].includes(status)) return `status ${status}`;
	if (/^x-fuzz/im.test(text.split('\r\n\r\n')[0])) return 'a header of the request is one of the answer';
	if (/<x-fuzz/i.test(text)) return 'a text is HTML';
	return /SQLSTATE (42601|XX|57P|58)/.exec(text)?.[0];
}

async function others(web, cookie, what) {
	const answer = await ask(web, '/queues', { headers: { Cookie: cookie } }).catch(error => ({ status: String(error) }));
	is(answer.status, 200, `others are answered: ${what}`);
}

// One whose length is given twice, in different ways, ends its connection.
async function ambiguous(web) {
	const head = 'POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n';
	const next = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
	for (const [what, text] of [['by chunks and by its length', `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${next}`], ['by two lengths', `${head}Content-Length: 4\r\nContent-Length: ${4 + next.length}\r\n\r\na=bc${next}`],
		['by a length that is a list', `${head}Content-Length: 4, 50\r\n\r\na=bc${next}`], ['by a name with a blank', `${head}Content-Length : ${4 + next.length}\r\nContent-Length: 4\r\n\r\na=bc${next}`]])
		unlike(await send(web, Buffer.from(text), true), /HTTP\/1\.1 (?!400)/, `nothing but a refusal follows a request that says ${what} how long it is`);
}

await run(async () => {
	sql("SELECT tq.enqueue('shop/mail', name => 'n') FROM generate_series(1, 30)");
	const web = await startWeb();
	const reader = cookieOf(await login(web, 'reader'));
	const found = new Map();
	let [cookie, token] = [];
	const enter = async () => {
		cookie = cookieOf(await login(web, 'op')).replace('tq_session=', '');
		token = (await ask(web, '/queue?name=shop/mail', { headers: { Cookie: `tq_session=${cookie}` } })).text.match(/name=token value="?([0-9a-f]{128})/)?.[1];
	};
	let left = many;
	await Promise.all(Array.from({ length: 30 }, async () => {
		while (left-- > 0) {
			if (left % 300 === 299) await enter();
			const bytes = request(cookie, token);
			const what = fault(await send(web, bytes));
			if (what !== undefined) found.set(what, bytes.toString('latin1').slice(0, 600));
		}
	}));
	is([...found].map(([what, text]) => `${what}: ${JSON.stringify(text)}`).join('\n'), '', `${many} requests by chance are answered, or refused`);
	await ambiguous(web);
	await others(web, reader, 'beside them');
	await until(async () => (await ask(web, '/healthz')).status === 200, 'nor does the database suffer');
	is(await web.stop(), 0, 'it ends by SIGTERM');
	unlike(web.lines, /Sanitizer|runtime error/, 'and nothing was wrong');
	like(web.lines, /login of role op/, 'its lines say who came');
});
