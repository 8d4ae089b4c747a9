// 01_core.mjs: logins, rights, headers, queues; what is stored is text, and a form of
// another page does nothing.
import { ask, cookieOf, form, is, like, login, ok, open, run, sql, startWeb, unlike, unmasked, until, violations } from './web.mjs';

function fill() {
	sql(`SELECT count(tq.enqueue('shop/mail', jsonb_build_object('n', i), name => 'send mail', retry => 0)) FROM generate_series(1, 40) AS i;
		SELECT count(tq.enqueue('team/report', '{}', name => 'report')) FROM generate_series(1, 3);
		SELECT tq.set_queue('shop/mail', '{"concurrentLimit": 30}');
		SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('shop/mail', 'eu', 'worker-1', 10)`);
	sql(`SELECT tq.report_failed(task_id, run_id, error_message => '<script>alert(1)</script>') FROM tq.claim_work('shop/mail', 'eu', 'worker-2', 4)`);
	sql(`SELECT tq.claim_work('shop/mail', 'eu', 'worker-3', 2)`);
}

async function logins(web) {
	let answer = await ask(web, '/');
	is(`${answer.status} ${answer.headers.location}`, '303 /login?next=/', 'without a login there is the login');
	answer = await ask(web, '/queues?find=a%26b');
	is(answer.headers.location, '/login?next=/queues%3Ffind%3Da%2526b', 'which leads back to the page');
	answer = await login(web, 'op');
	like(answer.headers['set-cookie'][0], /^tq_session=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Strict$/, 'a session is a cookie');
	const first = cookieOf(answer);
	const sent = { ...form({}).headers, Origin: web.url };
	answer = await ask(web, '/login', { ...form({ role: 'op', password: 'op' }), headers: { ...sent, Cookie: first } });
	ok(cookieOf(answer) && cookieOf(answer) !== first, 'each login has a new one');
	answer = await ask(web, '/login', { ...form({ role: 'op', password: 'op' }), headers: { ...sent, Cookie: `tq_session=${'a'.repeat(64)}` } });
	unlike(cookieOf(answer), /a{64}/, 'and none that the browser chose');
	for (const from of [{}, { Origin: 'null' }, { Origin: 'https://evil.example' }, { Origin: web.url, 'Sec-Fetch-Site': 'cross-site' }, { Origin: web.url, 'Sec-Fetch-Site': 'same-site' }])
		is((await ask(web, '/login', { ...form({ role: 'op', password: 'op' }), headers: { ...form({}).headers, ...from } })).status, 403, `no page of another host logs one in: ${JSON.stringify(from)}`);
	is((await ask(web, '/login', { ...form({ role: 'op', password: 'op' }), headers: { ...form({}).headers, 'Sec-Fetch-Site': 'same-origin' } })).status, 303, 'and the browser may say so in either way');
	for (const next of ['//evil.example', '/\\evil.example', 'https://evil.example', '/a\r\nX: y'])
		is((await login(web, 'op', 'op', { next })).headers.location, '/', `a login does not lead to ${JSON.stringify(next)}`);
	answer = await login(web, 'op', 'wrong');
	is(answer.status, 401, 'a wrong password is refused');
	like(answer.text, /name or the password is wrong/, 'and says so');
	unlike(web.lines, /wrong"|password op|=op\b/, 'no password is in the log');
	is((await login(web, 'op', '')).status, 400, 'no password is none');
	is((await login(web, 'open', 'x')).status, 403, 'where the server asks for no password, none is let in');
	for (const role of ["op' host=evil", 'op dbname=postgres', 'host=evil', 'postgresql://evil/', "'; DROP ROLE op; --"])
		is((await login(web, role, 'op')).status, 401, `there is no role ${role}`);
	ok(!/op/.test(sql("SELECT string_agg(usename, ' ') FROM pg_stat_activity WHERE datname <> 'shop' AND application_name LIKE 'tq-web%'")), 'and no connection is to another database');
}

async function slowed(web) {
	const begin = Date.now();
	const states = (await Promise.all(Array.from({ length: 12 }, () => login(web, 'reader', 'wrong')))).map(({ status }) => status);
	const tried = states.filter(status => status === 401).length;
	ok(tried >= 5 && tried <= 5 + Math.log2(1 + (Date.now() - begin) / 1000), `after five failures a login has to wait, also if they come at one time: ${states.join(' ')}`);
	// so often that the next one has to wait longer than it takes
	while (!(Number((await login(web, 'reader', 'wrong')).headers['retry-after']) > 6));
	const answer = await login(web, 'reader');
	is(answer.status, 429, 'also with the right password');
	ok(Number(answer.headers['retry-after']) > 0, 'and says for how long');
	await until(async () => (await login(web, 'reader')).status === 303, 'then it is let in');
}

async function headers(web, cookie) {
	const { headers: page } = await ask(web, '/queues', { headers: { Cookie: cookie } });
	like(page['content-security-policy'], /^default-src 'none'; style-src 'self'; script-src 'self'; .*frame-ancestors 'none'; base-uri 'none'$/, 'a policy without inline script');
	is(page['x-content-type-options'], 'nosniff', 'no type is guessed');
	is(page['cache-control'], 'no-store', 'a page is not kept');
	is((await ask(web, '/queues', { headers: { Cookie: cookie, Host: 'evil.example' } })).status, 421, 'another name of the host is refused');
	is((await ask(web, '/queues', { headers: { Cookie: cookie, Host: `localhost:${web.port}` } })).status, 200, 'localhost is not');
	for (const path of ['/../etc/passwd', '/%2e%2e/%2e%2e/etc/passwd', '/queues/', '/style.css', '//queues', '/queues%00'])
		ok((await ask(web, path, { headers: { Cookie: cookie } })).status >= 400, `there is no ${path}`);
	is((await ask(web, '/queues?find=%ff', { headers: { Cookie: cookie } })).status, 400, 'a field that is not UTF-8 is refused');
	is((await ask(web, '/queues', { method: 'DELETE', headers: { Cookie: cookie } })).status, 405, 'so is another method');
	const { text } = await ask(web, '/queues', { headers: { Cookie: cookie } });
	const [style] = text.match(/\/style-[0-9a-f]+\.css/);
	const asset = await ask(web, style);
	like(asset.headers['cache-control'], /immutable/, 'the style is kept');
	is((await ask(web, style, { headers: { 'If-None-Match': asset.headers.etag } })).status, 304, 'and not sent again');
	is((await ask(web, '/healthz')).text, 'ok\n', 'the state of the database is open to all');
	is((await ask(web, '/metrics')).status, 403, 'the metrics are not');
}

async function forgeries(web, cookie) {
	const token = (await ask(web, '/queue?name=shop/mail', { headers: { Cookie: cookie } })).text.match(/name=token value="([0-9a-f]{128})"/)[1];
	const pause = { call: 'pause_queue', queue: 'shop/mail', back: '/queue?name=shop/mail' };
	const send = (fields, more = {}) => ask(web, '/do', { ...form(fields), headers: { ...form({}).headers, Cookie: cookie, ...more } });
	is((await send(pause)).status, 403, 'a form without the token is refused');
	is((await send({ ...pause, token: 'f'.repeat(128) })).status, 403, 'so is one with another');
	is((await send({ ...pause, token }, { Origin: 'https://evil.example' })).status, 403, 'one of another page');
	is((await send({ ...pause, token }, { 'Sec-Fetch-Site': 'cross-site' })).status, 403, 'one that the browser says is of another site');
	is((await ask(web, `/do?call=pause_queue&queue=shop/mail&token=${token}`, { headers: { Cookie: cookie } })).status, 200, 'a link changes nothing');
	is(sql("SELECT paused FROM tq.queue_stats WHERE task_queue_id = 'shop/mail'"), 'f', 'and the queue is not paused');
	is((await send({ ...pause, token })).status, 303, 'the form of the page is not refused');
	is(sql("SELECT paused FROM tq.queue_stats WHERE task_queue_id = 'shop/mail'"), 't', 'and pauses the queue');
	const other = cookieOf(await login(web, 'team'));
	const answer = await ask(web, '/do', { ...form({ ...pause, token }), headers: { ...form({}).headers, Cookie: other } });
	is(answer.status, 403, 'the token of one session is not good for another');
	await masks(web, cookie, send);
}

// A token is under another mask in each answer: two have nothing in common that could be
// guessed by how well they are compressed.
async function masks(web, cookie, send) {
	const halves = masked => [masked.slice(0, 64), masked.slice(64)];
	const pages = await Promise.all(['/queues', '/queues', '/queue?name=shop/mail', '/do?call=pause_queue&queue=shop/mail'].map(path => ask(web, path, { headers: { Cookie: cookie } })));
	const shown = pages.map(({ text }) => [...new Set([...text.matchAll(/name=token (?:value|content)="([0-9a-f]{128})"/g)].map(found => found[1]))]);
	ok(shown.every(({ length }) => length === 1), 'an answer has a token in one form', shown.join('\n'));
	const all = shown.flat();
	is(new Set(all.flatMap(halves)).size, 2 * all.length, 'and each another');
	const tokens = new Set(all.map(unmasked));
	is(tokens.size, 1, 'of which all are the same token');
	const [token] = tokens;
	ok(!pages.some(({ text }) => text.includes(token)), 'that stands in none of them');
	for (const masked of all) {
		is((await send({ call: 'resume_queue', queue: 'shop/mail', token: masked })).status, 303, 'each works');
		is((await send({ call: 'pause_queue', queue: 'shop/mail', token: masked })).status, 303, 'again and again');
	}
	const [mask, rest] = halves(all[0]);
	const flipped = `${all[0].slice(0, -1)}${all[0].endsWith('0') ? '1' : '0'}`;
	const own = 'a'.repeat(64);
	for (const forged of [token, flipped, mask, rest, `${mask}${halves(all[1])[1]}`, `${mask}${mask}`, `${all[0]}0`, `${all[0].slice(0, -1)}g`, all[0].toUpperCase(), '0'.repeat(128), `${own}${own}`])
		is((await send({ call: 'resume_queue', queue: 'shop/mail', token: forged })).status, 403, `a forged one does not: ${forged}`);
	is(sql("SELECT paused FROM tq.queue_stats WHERE task_queue_id = 'shop/mail'"), 't', 'nor has it done anything');
}

async function rights(web) {
	const page = async role => (await ask(web, '/queues', { headers: { Cookie: cookieOf(await login(web, role)) } })).text;
	like(await page('op'), /shop\/mail[^]*team\/report/, 'an operator sees all queues');
	const team = await page('team');
	ok(team.includes('team/report') && !team.includes('shop/mail'), 'a team sees its own', team);
	like(await page('nil'), /There is no queue that you may see/, 'a role without rights sees none, and how to get them');
	const cookie = cookieOf(await login(web, 'team'));
	is((await ask(web, '/queue?name=shop/mail', { headers: { Cookie: cookie } })).status, 404, 'for a team another queue does not exist');
	const reader = cookieOf(await login(web, 'reader'));
	const { text } = await ask(web, '/queue?name=team/report', { headers: { Cookie: reader } });
	const token = text.match(/name=token value="([0-9a-f]{128})"/)[1];
	const refused = await ask(web, '/do', { ...form({ token, call: 'pause_queue', queue: 'team/report' }), headers: { ...form({}).headers, Cookie: reader } });
	is(refused.status, 403, 'what a role may not do is refused');
	like(refused.text, /requires queue:pause-queue:team\/report[^]*An administrator can grant/, 'with the words of the database');
	is(sql("SELECT paused FROM tq.queue_stats WHERE task_queue_id = 'team/report'"), 'f', 'and it is not done');
}

async function browse(web) {
	for (const colorScheme of ['light', 'dark'])
		for (const width of [360, 1280]) {
			const page = await open(web, { role: 'op', colorScheme, viewport: { width, height: 800 } });
			for (const path of ['/queues', '/queue?name=shop/mail', '/queue?name=no/such']) {
				await page.goto(web.url + path);
				is(await violations(page), '', `${path} has no barrier, ${colorScheme}, ${width} px`);
				is(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'and is not wider than the screen');
			}
			ok(page.requests.every(url => url.startsWith(web.url)), 'no request leaves the host', page.requests.join('\n'));
			is(page.problems.filter(text => !text.includes('404')).join('\n'), '', 'the browser has nothing to say');
			await page.context().close();
		}
	const page = await open(web, { role: 'op' });
	is(page.url(), `${web.url}/queues`, 'a login leads to the queues');
	await page.click('th >> text=Pending');
	is(await page.getAttribute('th:has-text("Pending")', 'aria-sort'), 'descending', 'a head of a column sorts');
	like(await page.textContent('tbody tr:first-child'), /^shop\/mail/, 'by that column');
	await page.click('summary');
	await page.uncheck('input[value=delayed]');
	await page.click('details button');
	is(await page.locator('thead >> text=Delayed').count(), 0, 'columns can be hidden');
	await page.click('text=shop/mail');
	is(await page.textContent('h1'), 'shop/mail', 'a queue is a link');
	like(await page.textContent('#failures'), /<script>alert\((?:1|<number>)\)<\/script>/, 'a script that is stored is text');
	await page.click('text=Log out');
	await page.waitForURL('**/login', { waitUntil: 'load' });
	is(page.url(), `${web.url}/login`, 'a logout ends the session');
	await page.goBack();
	await page.reload();
	like(page.url(), /\/login/, 'for good');
	await page.context().close();
}

async function modes() {
	let web = await startWeb('--as', 'reader');
	let answer = await ask(web, '/queue?name=shop/mail');
	is(answer.status, 200, 'with --as there is no login');
	unlike(answer.text, /method=post/, 'and no form');
	is((await ask(web, '/do', form({ call: 'pause_queue', queue: 'shop/mail' }))).status, 403, 'a POST is refused');
	is(await web.stop(), 0, 'SIGTERM ends the program');
	web = await startWeb('--role-header', 'X-Role', '--trust', '127.0.0.1');
	answer = await ask(web, '/queues', { headers: { 'X-Role': 'team' } });
	ok(answer.text.includes('team/report') && !answer.text.includes('shop/mail'), 'a proxy says which role it is', answer.text);
	is((await ask(web, '/queues')).status, 403, 'it has to');
	is((await ask(web, '/queues', { headers: { 'X-Role': 'none' } })).status, 403, 'none is no role, and does not leave the program its own rights');
	like((await ask(web, '/queues', { headers: { 'X-Role': 'no_such' } })).text, /role &quot;no_such&quot; does not exist/, 'a role has to exist');
	const tokenOf = async role => (await ask(web, '/queues', { headers: { 'X-Role': role } })).text.match(/name=token content="([0-9a-f]{128})"/)[1];
	const resume = async (role, own) => (await ask(web, '/do', { ...form({ token: own, call: 'resume_queue', queue: 'shop/mail' }), headers: { ...form({}).headers, 'X-Role': role } })).status;
	const [mine, theirs] = [await tokenOf('op'), await tokenOf('team')];
	is(unmasked(await tokenOf('op')), unmasked(mine), 'the forms of a role have a token');
	is(await resume('op', theirs), 403, 'that of another role is not good for them');
	is(await resume('op', ''), 403, 'nor is none');
	is(await resume('op', mine), 303, 'and its own is');
	sql("SELECT tq.pause_queue('shop/mail')");
	await web.stop();
	web = await startWeb('--role-header', 'X-Role', '--trust', '10.0.0.0/8');
	is((await ask(web, '/queues', { headers: { 'X-Role': 'op' } })).status, 403, 'the header of another host is refused');
	await web.stop();
	web = await startWeb('--metrics-from', '127.0.0.1', '--host', 'tq.example.org', '--read-only');
	like((await ask(web, '/metrics')).text, /^# HELP tq_/, 'an address may read the metrics');
	is((await ask(web, '/login', { headers: { Host: 'tq.example.org' } })).status, 200, '--host names a host');
	const cookie = cookieOf(await login(web, 'op'));
	answer = await ask(web, '/queue?name=shop/mail', { headers: { Cookie: cookie } });
	unlike(answer.text, /action="\/(do|bulk)"/, 'with --read-only there is no button');
	const token = answer.text.match(/name=token value="([0-9a-f]{128})"/)[1];
	const fields = { token, call: 'resume_queue', queue: 'shop/mail' };
	is((await ask(web, '/do', { ...form(fields), headers: { ...form({}).headers, Cookie: cookie } })).status, 403, 'and none can be made up');
	is(sql("SELECT paused FROM tq.queue_stats WHERE task_queue_id = 'shop/mail'"), 't', 'so that nothing changes');
	await web.stop();
}

run(async () => {
	fill();
	const web = await startWeb();
	await logins(web);
	await rights(web);
	const cookie = cookieOf(await login(web, 'op'));
	await headers(web, cookie);
	await forgeries(web, cookie);
	await browse(web);
	await modes();
	await slowed(web);
	is(await web.stop(), 0, 'it ends by SIGTERM');
	unlike(web.lines, /error/i, 'without an error', web.lines);
});
