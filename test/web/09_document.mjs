// 09_document.mjs: what doc/web.md shows works: its commands, statements, and the configurations
// of nginx and Caddy, where these are installed.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import { join } from 'node:path';
import { ask, cookieOf, folder, form, freePort, is, like, login, ok, program, run, sql, startWeb, unlike, until } from './web.mjs';

const document = readFileSync(new URL('../../doc/web.md', import.meta.url), 'utf8');
const blocks = [...document.matchAll(/^```\w*\n([^]*?)^```/gm)].map(found => found[1]);
const block = pattern => blocks.find(text => pattern.test(text)) ?? '';

// The words of a command, without where it listens and which database it has.
function options(line) {
	const words = line.match(/'[^']*'|\S+/g).slice(1, -1);
	const at = words.indexOf('--listen');
	if (at >= 0) words.splice(at, 2);
	return words;
}

async function statements() {
	sql(block(/^CREATE ROLE anna/));
	sql(document.match(/`(CREATE ROLE "tq-web"[^`]*)`/)[1]);
	sql('CREATE ROLE wall IN ROLE tq_reader');
	const hba = readFileSync(join(folder, 'data', 'pg_hba.conf'), 'utf8');
	const line = block(/^local +shop/).replace(/\ball\b/, 'anna,bert');
	writeFileSync(join(folder, 'data', 'pg_hba.conf'), `${line}${hba}`);
	sql('SELECT pg_reload_conf()');
	const web = await startWeb();
	await until(async () => (await login(web, 'anna', '…')).status === 303, 'a role as it is made there logs in');
	is((await login(web, 'anna', 'x')).status, 401, 'by its password only');
	await web.stop();
}

async function commands() {
	const lines = blocks.flatMap(text => text.split('\n')).filter(line => line.startsWith('tq-web '));
	ok(lines.length >= 5, `${lines.length} commands`);
	for (const line of lines) {
		const web = await startWeb(...options(line));
		is((await ask(web, '/healthz', { headers: { Host: 'localhost' } })).status, 200, line);
		const headers = { Host: 'localhost', 'X-Tq-Role': 'anna' };
		if (/--as|--role-header/.test(line)) is((await ask(web, '/queues', { headers })).status, 200, 'shows what the role sees');
		if (line.includes('--metrics-from')) is((await ask(web, '/metrics')).status, 200, 'has metrics');
		await web.stop();
	}
}

// Each option of --help has its row, with the same default.
function table() {
	const help = execFileSync(program, ['--help'], { encoding: 'utf8' });
	for (const [, name, text] of help.matchAll(/--([a-z-]+)[^\n]*?((?:\n {20,}[^\n]*)*)(?=\n)/g)) {
		if (['help', 'version'].includes(name)) continue;
		const row = document.match(new RegExp(`^\\| \`--(?:cert FILE\`, \`--)?${name}\\b.*$`, 'm'))?.[0];
		ok(row, `--${name} is in the table`);
		const value = help.match(new RegExp(`--${name} [^\\n]*\\(([\\w.:]+)\\)`))?.[1];
		if (value && row) ok(row.includes(value), `with its default, ${value}`, row);
	}
}

// ---- nginx, Caddy ----

// What a browser is answered that knows the page as tq.example.org.
function secure(port, path, { method = 'GET', headers = {}, body } = {}) {
	return new Promise((resolve, reject) => {
		const request = https.request({ port, host: '127.0.0.1', path, method, rejectUnauthorized: false, agent: false, signal: AbortSignal.timeout(60_000), headers: { Host: 'tq.example.org', ...headers } }, answer => {
			let text = '';
			answer.on('data', part => {
				text += part;
				if (/^event: good/m.test(text)) answer.destroy();
			});
			answer.on('close', () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
		});
		request.on('error', reject);
		request.end(body);
	});
}

const startNginx = (web, more = '') => started('nginx', port => {
	const server = block(/^server \{/).replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl; ssl_certificate ${folder}/cert.pem; ssl_certificate_key ${folder}/key.pem;`)
		.replace('127.0.0.1:8383', `127.0.0.1:${web.port}`).replace('proxy_http_version', `${more}proxy_http_version`);
	const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${folder}/nginx_${name};`).join(' ');
	writeFileSync(join(folder, 'nginx.conf'), `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;\nevents {}\nhttp { access_log off; ${places}\n${server}}\n`);
	return spawn('nginx', ['-p', folder, '-e', join(folder, 'nginx.log'), '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' });
});

// Starts a server by start(port); again, if another program has taken the port that was free.
async function started(name, start) {
	let port, child;
	const connects = () => new Promise(resolve => { const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); }); socket.on('error', () => resolve(false)); });
	for (let tries = 5; tries > 0 && (!child || child.exitCode !== null); tries--) {
		port = await freePort();
		child = start(port);
		await until(async () => child.exitCode !== null || await connects() && child.exitCode === null, `${name} starts or ends`);
	}
	is(child.exitCode, null, `${name} starts with the configuration of the document`);
	return { port, stop: () => new Promise(resolve => { child.on('exit', resolve); child.kill('SIGTERM'); }) };
}

function makeCertificate() {
	execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=tq.example.org', '-addext', 'subjectAltName=DNS:tq.example.org', '-days', '2', '-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')],
		{ stdio: 'ignore' });
}

// Behind a proxy: a login, a page, a stream, and who a browser says that it is.
async function behind(web, proxy) {
	const send = (fields, more = {}) => secure(proxy.port, '/login', { ...form(fields), headers: { ...form(fields).headers, Origin: 'https://tq.example.org', ...more } });
	const answer = await send({ role: 'op', password: 'op' });
	like(answer.headers['set-cookie']?.[0] ?? '', /; Secure/, 'behind it, a login gets a cookie for TLS');
	const Cookie = cookieOf(answer);
	is((await secure(proxy.port, '/queues', { headers: { Cookie } })).status, 200, 'which shows the pages');
	like((await secure(proxy.port, '/live?path=/queues', { headers: { Cookie } })).text, /^event: good/m, 'and what changes, as it changes');
	is((await send({ role: 'op', password: 'no' }, { 'X-Forwarded-For': '192.0.2.7' })).status, 401, 'a wrong password is refused');
	like(web.lines, /login of role op from 127\.0\.0\.1 failed/, 'with the address that the proxy has seen');
	is((await send({ role: 'op', password: 'op' }, { Origin: 'https://evil.example' })).status, 403, 'and a page of another host');
}

const startCaddy = web => started('Caddy', port => {
	const site = block(/^tq\.example\.org \{/).replace('tq.example.org {', `https://tq.example.org:${port} {\n    bind 127.0.0.1\n    tls ${folder}/cert.pem ${folder}/key.pem`).replace('127.0.0.1:8383', `127.0.0.1:${web.port}`);
	writeFileSync(join(folder, 'Caddyfile'), `{\n    admin off\n    auto_https disable_redirects\n    storage file_system ${folder}/caddy\n}\n${site}`);
	return spawn('caddy', ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'], { stdio: 'ignore', env: { ...process.env, HOME: folder } });
});

async function caddy() {
	if (!process.env.PATH.split(':').some(place => existsSync(join(place, 'caddy')))) return ok(true, 'Caddy # SKIP it is not installed');
	const web = await startWeb('--host', 'tq.example.org', '--trust', '127.0.0.1');
	const proxy = await startCaddy(web);
	await behind(web, proxy);
	await proxy.stop();
	await web.stop();
}

async function nginx() {
	if (!['/usr/sbin/nginx', '/usr/bin/nginx'].some(existsSync)) return ok(true, 'nginx # SKIP it is not installed');
	process.env.PATH += ':/usr/sbin';
	let web = await startWeb('--host', 'tq.example.org', '--trust', '127.0.0.1');
	let proxy = await startNginx(web);
	await behind(web, proxy);
	await proxy.stop();
	await web.stop();
	writeFileSync(join(folder, 'htpasswd'), 'anna:{PLAIN}secret\n');
	const lines = block(/auth_basic /).replace('/etc/nginx/tq.htpasswd', join(folder, 'htpasswd'));
	web = await startWeb('--host', 'tq.example.org', '--trust', '127.0.0.1', '--role-header', 'X-Tq-Role');
	proxy = await startNginx(web, lines);
	const Authorization = `Basic ${Buffer.from('anna:secret').toString('base64')}`;
	is((await secure(proxy.port, '/queues')).status, 401, 'where nginx asks who a person is, no one else is let in');
	const page = await secure(proxy.port, '/queues', { headers: { Authorization, 'X-Tq-Role': 'postgres' } });
	like(page.text, /title="?Role"?>anna</, 'and the role is that which nginx says');
	unlike(page.text, /title="?Role"?>postgres</, 'not that which the browser does');
	await proxy.stop();
	await web.stop();
}

// The lines of the service's file are those of a shell and of a command line.
async function service() {
	const words = block(/^TQ_WEB_CONNINFO=/).match(/TQ_WEB_OPTIONS="([^"]*)"/)[1];
	const web = await startWeb(...words.split(' '));
	is((await ask(web, '/healthz')).status, 200, `the service's options: ${words}`);
	await web.stop();
}

await run(async () => {
	await statements();
	await commands();
	await service();
	table();
	makeCertificate();
	await nginx();
	await caddy();
});
