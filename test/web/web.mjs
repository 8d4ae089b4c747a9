// web.mjs: a server, tq-web and a browser for the tests of test/web.
//
// PG_CONFIG says which server to use; it has a directory of its own, and no port.
// Roles log in by password: op is a member of tq_admin, reader of tq_reader, team may
// manage the queues team/*, nil may nothing.  Each test prints TAP.
import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
export const { chromium } = require('playwright-core');
export const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
export const folder = mkdtempSync(join(tmpdir(), 'tq-web-'));
export const bin = execFileSync(process.env.PG_CONFIG, ['--bindir'], { encoding: 'utf8' }).trim();
const data = join(folder, 'data');
export const hasCron = existsSync(join(execFileSync(process.env.PG_CONFIG, ['--sharedir'], { encoding: 'utf8' }).trim(), 'extension', 'pg_cron.control'));
export const program = process.env.TQ_WEB ?? join(bin, 'tq-web');
// How long what is waited for may take, in ms, on however slow a machine: only a failure waits so long.
export const patience = 300000;
let count = 0;
let failed = 0;
const children = new Set();
const ends = [];

// ---- TAP ----

export function ok(good, what, more) {
	count++;
	if (!good) failed++;
	console.log(`${good ? '' : 'not '}ok ${count} - ${what}`);
	if (!good && more !== undefined) console.log(String(more).slice(0, 9000).replace(/^/gm, '# '));
	return good;
}

export function is(found, wanted, what) {
	return ok(found === wanted, what, `found:  ${found}\nwanted: ${wanted}`);
}

export function like(text, pattern, what) {
	return ok(pattern.test(text), what, `${pattern} is not in:\n${text}`);
}

export function unlike(text, pattern, what) {
	return ok(!pattern.test(text), what, `${pattern} is in:\n${text}`);
}

// until(CONDITION, WHAT): waits for it.
export async function until(condition, what) {
	const end = Date.now() + patience;
	let value;
	while (!(value = await condition()) && Date.now() < end) await new Promise(resolve => setTimeout(resolve, 50));
	ok(value, what);
	return value;
}

// ---- the server ----

const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PG')));

function pgCtl(...what) {
	execFileSync(join(bin, 'pg_ctl'), ['-D', data, '-l', join(folder, 'server.log'), '-w', ...what], { stdio: 'ignore', env: environment });
}

export function stopServer() { pgCtl('-m', 'immediate', 'stop'); }

export function restartServer() { pgCtl('start'); }

// standby(): a second server that follows the first; a conninfo of both, promote() and stop().
export function standby() {
	const place = join(folder, 'standby');
	const other = join(place, 'data');
	mkdirSync(place);
	execFileSync(join(bin, 'pg_basebackup'), ['-h', folder, '-U', 'postgres', '-D', other, '-R', '-c', 'fast'], { stdio: 'ignore', env: environment });
	appendFileSync(join(other, 'postgresql.conf'), `unix_socket_directories = '${place}'\n`);
	const control = (...what) => execFileSync(join(bin, 'pg_ctl'), ['-D', other, '-l', join(folder, 'standby.log'), '-w', ...what], { stdio: 'ignore', env: environment });
	const it = { folder: place, conninfo: `host=${folder},${place} dbname=shop user=postgres target_session_attrs=read-write`, promote: () => control('promote'), stop: () => control('-m', 'immediate', 'stop') };
	control('start');
	ends.push(it.stop);
	return it;
}

export function sql(text, user = 'postgres', host = folder) {
	return execFileSync(join(bin, 'psql'), ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-h', host, '-U', user, '-d', 'shop', '-c', text],
		{ encoding: 'utf8', env: { ...environment, PGPASSWORD: user } }).trim();
}

// session(SQL): a session that stays, with what it has printed, and end(), which has to be waited for before
// sql(), lest that waits for a lock of it while nothing else goes on here.
export function session(text) {
	const child = spawn(join(bin, 'psql'), ['-XAtq', '-h', folder, '-U', 'postgres', '-d', 'shop'], { env: environment });
	const state = { text: '', end: () => new Promise(resolve => { child.on('close', resolve); child.stdin.end(); }) };
	children.add(child);
	child.stdout.on('data', part => { state.text += part; });
	child.stdin.write(`${text};\n`);
	return state;
}

// slowly(ACT): does that while changes of many tasks go in batches of one task, so that they take long.
export async function slowly(act) {
	sql('ALTER SYSTEM SET tq.expire_batch = 1');
	sql('SELECT pg_reload_conf()');
	await until(() => sql('SHOW tq.expire_batch') === '1', 'changes are slow');
	await act();
	sql('ALTER SYSTEM RESET tq.expire_batch');
	sql('SELECT pg_reload_conf()');
}

export function startServer() {
	execFileSync(join(bin, 'initdb'), ['-D', data, '-A', 'trust', '-U', 'postgres', '-N', '--locale=C.UTF-8'], { stdio: 'ignore', env: environment });
	const settings = readFileSync(join(dirname(new URL(import.meta.url).pathname), '..', 'tq.conf'), 'utf8');
	appendFileSync(join(data, 'postgresql.conf'), `${settings}\nunix_socket_directories = '${folder}'\nlisten_addresses = ''\nmax_connections = 200\n`);
	if (hasCron) appendFileSync(join(data, 'postgresql.conf'), "shared_preload_libraries = 'tq, pg_cron'\ncron.database_name = 'shop'\n");
	const hba = 'local all op,reader,team,nil scram-sha-256\nlocal all all trust\nlocal replication postgres trust\n';
	writeFileSync(join(data, 'pg_hba.conf'), hba);
	restartServer();
	execFileSync(join(bin, 'createdb'), ['-h', folder, '-U', 'postgres', 'shop'], { env: environment });
	sql(`CREATE EXTENSION tq; CREATE ROLE op LOGIN PASSWORD 'op' IN ROLE tq_admin; CREATE ROLE reader LOGIN PASSWORD 'reader' IN ROLE tq_reader;
		CREATE ROLE team LOGIN PASSWORD 'team'; CREATE ROLE nil LOGIN PASSWORD 'nil'; CREATE ROLE open LOGIN;
		SELECT tq.grant_queue('team', 'team/*', 'manage'); SELECT tq.grant_queue('team', 'team/*', 'read')`);
}

// proxy(): stands between tq-web and the server, at a conninfo.  What tq-web sends passes
// change(), which may be replaced; what comes back while held is true is lost.
export async function proxy() {
	const between = { change: text => text, held: false, sockets: new Set() };
	const directory = mkdtempSync(join(folder, 'proxy-'));
	between.conninfo = `host=${directory} dbname=shop user=postgres`;
	between.server = net.createServer(socket => {
		const server = net.connect(join(folder, '.s.PGSQL.5432'));
		let last = Promise.resolve();
		socket.on('data', part => { last = last.then(async () => server.write(Buffer.from(await between.change(part.toString('latin1')), 'latin1'))); });
		server.on('data', part => { if (!between.held) socket.write(part); });
		for (const [one, other] of [[socket, server], [server, socket]]) {
			between.sockets.add(one);
			one.on('error', () => other.destroy());
			one.on('close', () => { between.sockets.delete(one); last.then(() => other.destroy()); });
		}
	}).listen(join(directory, '.s.PGSQL.5432'));
	await new Promise(resolve => between.server.on('listening', resolve));
	return between;
}

// ---- tq-web ----

// A port of this machine that is free.
export async function freePort() {
	const server = net.createServer().listen(0, '127.0.0.1');
	await new Promise(resolve => server.on('listening', resolve));
	const { port } = server.address();
	await new Promise(resolve => server.close(resolve));
	return port;
}

// startWeb(OPTION..., [CONNINFO]): a tq-web, with its url, its lines, and stop().  Another program may
// take the port before it does: then it takes another.
export async function startWeb(...options) {
	const port = await freePort();
	const given = [...options];
	const conninfo = options.at(-1)?.startsWith('host=') ? options.pop() : `host=${folder} dbname=shop user=postgres`;
	const child = spawn(program, ['--listen', `127.0.0.1:${port}`, ...options, conninfo], { env: environment });
	const web = { url: `http://127.0.0.1:${port}`, port, pid: child.pid, lines: '' };
	children.add(child);
	child.stderr.on('data', text => { web.lines += text; });

	const isTaken = () => web.lines.includes('cannot listen on');
	web.ended = new Promise(resolve => child.on('close', (code, signal) => { children.delete(child); if (code !== 0 && !isTaken()) ok(false, `the program ends with ${code ?? signal}`, web.lines.slice(-4000)); resolve(code ?? signal); }));
	web.stop = () => { child.kill('SIGTERM'); return web.ended; };
	while (!web.lines.includes('listens on') && child.exitCode === null) await new Promise(resolve => setTimeout(resolve, 20));
	if (child.exitCode !== null) await web.ended;
	return isTaken() ? startWeb(...given) : web;
}

// ask(WEB, PATH, {method, headers, body}): a request without a browser.
export function ask(web, path, { method = 'GET', headers = {}, body } = {}) {
	return new Promise((resolve, reject) => {
		const request = http.request(`${web.url}${path}`, { method, headers, agent: false }, answer => {
			let text = '';
			answer.setEncoding('utf8');
			answer.on('data', part => { text += part; });
			answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
		});
		request.on('error', reject);
		request.end(body);
	});
}

export function form(fields) {
	return { method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams(fields).toString() };
}

// A machine may be too slow for the time in which a connection has to be made, above all under valgrind: then
// it is tried again.
export async function login(web, role, password = role, more = {}) {
	const { method, headers, body } = form({ role, password, ...more });
	for (;;) {
		const seen = web.lines.length;
		const answer = await ask(web, '/login', { method, headers: { ...headers, Origin: web.url }, body });
		if (answer.status === 303) return answer;
		await new Promise(resolve => setTimeout(resolve, 50));
		if (!web.lines.slice(seen).includes('timeout expired')) return answer;
	}
}

// cookieOf(ANSWER): what a browser would send back.
export function cookieOf(answer) { return (answer.headers['set-cookie'] ?? [''])[0].split(';')[0]; }

// unmasked(TEXT): the token that a form has under a mask.
export function unmasked(text) {
	return [...text.slice(0, 64)].map((digit, i) => (parseInt(digit, 16) ^ parseInt(text[64 + i], 16)).toString(16)).join('');
}

// ---- the browser ----

let browser;

// open(WEB, {role, ...}): a context of its own, logged in; records all requests.
export async function open(web, { role, ...options } = {}) {
	browser ??= await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
	const context = await browser.newContext(options);
	context.setDefaultTimeout(patience);
	const page = await context.newPage();
	page.requests = [];
	page.problems = [];
	page.on('request', request => page.requests.push(request.url()));
	page.on('pageerror', error => page.problems.push(String(error)));
	page.on('console', message => { if (message.type() === 'error') page.problems.push(message.text()); });
	if (role) {
		await page.goto(`${web.url}/login`);
		await page.fill('#role', role);
		await page.fill('#password', role);
		await page.click('button.main');
	}
	return page;
}

// The script of axe needs eval in none of its forms, but the policy lets no script in:
// it is evaluated by the protocol of the browser.
export async function violations(page) {
	await page.evaluate(axeSource);
	const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
	return found.violations.map(v => `${v.id}: ${v.help}: ${v.nodes.map(n => n.html).slice(0, 3).join(' | ')}`).join('\n');
}

// ---- the end ----

async function end() {
	await browser?.close();
	for (const child of children) child.kill('SIGKILL');
	for (const stop of [...ends, stopServer]) try { stop(); } catch { /* it is stopped */ }
	rmSync(folder, { recursive: true, force: true });
}

// run(TEST): a server, the test, and the end, whatever happens.
export async function run(test) {
	try {
		startServer();
		await test();
	} catch (error) {
		ok(false, 'the test runs to its end', error.stack);
	} finally {
		if (failed && process.env.TQ_KEEP) console.log(`# ${readFileSync(join(folder, 'server.log'), 'utf8').slice(-3000).replace(/\n/g, '\n# ')}`);
		await end();
	}
	console.log(`1..${count}`);
	process.exit(failed ? 1 : 0);
}
