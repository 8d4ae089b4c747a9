// 05_service.mjs: options, the man page, the unit, TLS, lines as JSON, what systemd is sent.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { dirname, join } from 'node:path';
import { ask, folder, is, like, ok, program, run, sql, startWeb, unlike, until } from './web.mjs';

const source = join(dirname(new URL(import.meta.url).pathname), '../../src/bin/web');
const call = (...options) => spawnSync(program, options, { encoding: 'utf8' });
const named = text => [...new Set(text.match(/--[a-z][a-z-]+/g))].sort().join(' ');

run(async () => {
	const help = call('--help');
	is(help.status, 0, '--help ends with 0');
	is(named(readFileSync(join(source, 'tq-web.1'), 'utf8').replace(/Fl -(?=[a-z])/g, '--')), named(help.stdout), 'the man page has its options');
	ok(help.stdout.split('\n').every(line => line.length <= 80), 'which fit a terminal');
	like(call('--version').stdout, /^tq-web \d/, '--version');
	for (const options of [['--no'], ['a', 'b'], ['--listen', 'x:0'], ['--trust', 'x'], ['--trust', '10.0.0.0/33'], ['--cert', '/x'], ['--role-header', 'X'], ['--as', 'a', '--role-header', 'X', '--trust', '::1'],
		['--as', 'none'], ['--idle', '0'], ['--metrics-token', '/nonexistent'], ['--log-format', 'xml'], ['nosuch=1']]) {
		const { status, stderr } = call('--listen', '127.0.0.1:1', ...options);
		is(status, 2, `${options.join(' ')} is refused`);
		like(stderr, /^tq-web: |^\S+: .*option/, 'with a reason');
	}
	const unit = readFileSync(join(source, 'tq-web.service'), 'utf8');
	like(unit, /^DynamicUser=yes$[^]*^CapabilityBoundingSet=$/m, 'the unit has a user of its own, and no capability');

	const [key, certificate, token] = ['key', 'certificate', 'token'].map(name => join(folder, name));
	execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-keyout', key, '-out', certificate], { stdio: 'ignore' });
	writeFileSync(token, 'a token of many characters\n');
	const web = await startWeb('--cert', certificate, '--key', key, '--log-format', 'json', '--metrics-token', token);
	const secure = (path, options = {}) => new Promise((resolve, reject) => {
		const request = https.request({ host: '127.0.0.1', port: web.port, path, ca: readFileSync(certificate), servername: 'localhost', agent: false, ...options }, answer => {
			let text = '';
			answer.on('data', part => { text += part; });
			answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
		});
		request.on('error', reject);
		request.end(options.body);
	});
	const answer = await secure('/login', { method: 'POST', body: 'role=op&password=op', headers: { 'Content-Type': 'application/x-www-form-urlencoded', Host: 'localhost', Origin: 'https://localhost' } });
	is((await secure('/login', { method: 'POST', body: 'role=op&password=op', headers: { 'Content-Type': 'application/x-www-form-urlencoded', Host: 'localhost', Origin: 'http://localhost' } })).status, 403, 'a page without TLS is another');
	like(answer.headers['set-cookie'][0], /^__Host-tq_session=.*; Secure$/, 'with TLS the cookie is for TLS and this host only');
	is((await secure('/queues', { headers: { Cookie: answer.headers['set-cookie'][0].split(';')[0] } })).status, 200, 'and is taken');
	is((await secure('/queues', { headers: { Cookie: answer.headers['set-cookie'][0].split(';')[0].replace('__Host-', '') } })).status, 303, 'but not from another');
	is((await secure('/metrics')).status, 403, 'the metrics need the token');
	is((await secure('/metrics', { headers: { Authorization: 'Bearer a token of many character?' } })).status, 403, 'the whole of it');
	like((await secure('/metrics', { headers: { Authorization: 'Bearer a token of many characters' } })).text, /^# HELP tq_/, 'and are there with it');
	await web.stop();
	ok(web.lines.trim().split('\n').every(line => JSON.parse(line).level === 'info'), 'lines are JSON');

	const other = await startWeb('--trust', '127.0.0.1', '--idle', '1', '--connections', '1');
	const forwarded = await ask(other, '/login', { method: 'POST', body: 'role=op&password=no', headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'X-Forwarded-For': '192.0.2.7, 198.51.100.9', 'X-Forwarded-Proto': 'https', Host: 'localhost', Origin: 'https://localhost' } });
	is(forwarded.status, 401, 'behind a proxy');
	like(other.lines, /from 198\.51\.100\.9 failed/, 'the log has the address of the browser, as the proxy says');
	unlike(other.lines, /192\.0\.2\.7/, 'and not what the browser says');
	await until(async () => (await ask(other, '/healthz')).status === 200, 'and it goes on');
	is(await other.stop(), 0, 'it ends by SIGTERM');
	await until(() => sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tq-web%'") === '0', 'and leaves no connection');
});
