// 05_server.mjs: recurring tasks, workers, messages, health, the audit trail.
import { ask, cookieOf, form, hasCron, is, like, login, ok, open, run, sql, startWeb, unlike, until, violations } from './web.mjs';

const evil = '<img src=x onerror=alert(1)>';

function fill() {
	sql(`SELECT count(tq.enqueue('shop/mail', '{}', name => '${evil}' || i)) FROM generate_series(1, 9) AS i;
		SELECT count(*) FROM tq.claim_work('shop/mail', 'eu', 'host-8', 5);
		SELECT count(*) FROM tq.claim_work('shop/mail', 'eu', 'host-7', 1);
		SELECT count(tq.enqueue('team/report', '{}')) FROM generate_series(1, 2);
		SELECT tq.subscribe('bill ${evil}', 'task-running')`);
	if (hasCron) sql("CREATE EXTENSION pg_cron; SELECT tq.schedule_cron('nightly', '0 3 1 1 *', 'shop/report')");
}

const reader = cookie => ({ get: (web, path) => ask(web, path, { headers: { Cookie: cookie } }) });

// What an answer shows below the form, without what to do where there is nothing.
const shown = ({ text }) => text.replace(/<div class=empty>.*?<\/div>/gs, '').replace(/<form class=find.*?<\/form>/gs, '');

async function post(web, cookie, path, page, fields) {
	const { text } = await ask(web, page, { headers: { Cookie: cookie } });
	const token = text.match(/name=token value="([0-9a-f]{128})"/)[1];
	return ask(web, path, { ...form({ ...fields, token }), headers: { ...form({}).headers, Cookie: cookie } });
}

async function cron(web, cookie) {
	const answer = await reader(cookie).get(web, '/cron');
	is(answer.status, 200, 'recurring tasks are a page');
	if (!hasCron) return ok(true, 'and there are none without pg_cron # SKIP it is not installed');
	like(answer.text, /nightly.*0 3 1 1 \*.*Run now.*End …/s, 'which has each with its schedule');
	const nightly = { name: 'nightly', owner: 'postgres', back: '/cron' };
	let done = await post(web, cookie, '/do', '/cron', { ...nightly, call: 'run_cron_now' });
	is(done.headers.location, '/cron?done=run_cron_now', 'one runs now');
	is(sql("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'shop/report'"), '1', 'its task was created');
	done = await post(web, cookie, '/do', '/cron', { ...nightly, call: 'pause_cron' });
	is(`${done.status} ${sql("SELECT active FROM tq.cron_overview WHERE name = 'nightly'")}`, '303 f', 'it is paused');
	like((await reader(cookie).get(web, '/cron')).text, /is-paused.*Resume/s, 'and says so, with what ends that');
	done = await post(web, cookie, '/do', '/cron', { ...nightly, name: 'no such', call: 'run_cron_now' });
	like(done.text, /not done.*no such/s, 'an error of the database is shown');
}

async function workers(web, cookie) {
	const { text } = await reader(cookie).get(web, '/workers');
	like(text, /host-8.*&lt;img.*host-7/s, 'all workers are there, with what they have, the busiest first');
	unlike(text, /<img/, 'and their names are text');
	is((await reader(cookie).get(web, '/workers?find=host-7')).text.match(/<tr>/g).length, 2, 'a part of a name finds one');
	const path = '/worker?queue=shop/mail&group=eu&id=host-7';
	like((await reader(cookie).get(web, path)).text, /Runs now.*\/task\?id=[\w-]{22}/s, 'a worker has what it runs');
	is((await reader(cookie).get(web, '/worker?queue=shop/mail&group=eu&id=none')).status, 404, 'another is not there');
	const worker = { queue: 'shop/mail', worker_group: 'eu', worker_id: 'host-7' };
	await post(web, cookie, '/do', path, { ...worker, call: 'quarantine_worker' });
	is(sql("SELECT quarantine_until > now() + interval '23 hours' FROM tq.worker_overview WHERE worker_id = 'host-7'"), 't', 'it is put into quarantine');
	like((await reader(cookie).get(web, path)).text, /End quarantine/, 'which can be ended');
	await post(web, cookie, '/do', path, { ...worker, call: 'end_quarantine' });
	like((await reader(cookie).get(web, path)).text, /Quarantine for a day/, 'and is');
	await post(web, cookie, '/do', path, { ...worker, call: 'worker_removed' });
	is(sql("SELECT count(*) FROM tq.task_overview WHERE worker = 'eu/host-7' AND state = 'running'"), '0', 'a worker that is gone gives its runs back');
}

async function messages(web, cookie) {
	await until(async () => Number(sql("SELECT last_id FROM tq.subscription_overview")) >= 20, 'the messages are published');
	const { text } = await reader(cookie).get(web, '/messages');
	like(text, /bill &lt;img.*task-running/s, 'subscriptions and the log are there');
	unlike(text, /<img/, 'and are text');
	const failed = await reader(cookie).get(web, '/messages?exchange=task-running&pattern=primary.%23');
	is(failed.text.match(/\/message\?id=\d+/g).length, 6, 'an exchange and a pattern choose');
	like((await reader(cookie).get(web, '/messages?before=6')).text, /message\?id=5(?!.*message\?id=6\b)/s, 'what was before an id is a page');
	like((await reader(cookie).get(web, '/message?id=1')).text, /task-defined.*&quot;status&quot;/s, 'a message has its payload');
	sql("SELECT count(tq.enqueue('shop/later', '{}')) FROM generate_series(1, 1100)");
	await until(async () => Number(sql("SELECT last_id FROM tq.subscription_overview")) >= 2000, 'the log is longer than what is looked through');
	const last = Number(sql('SELECT last_id FROM tq.subscription_overview'));
	const pages = [];
	for (let path = '/messages'; path && pages.length < 2; path = pages.at(-1).match(/href="(\/messages[^"]*before=\d+)"/)?.[1].replaceAll('&amp;', '&')) pages.push((await reader(cookie).get(web, path)).text);
	is(pages.map(page => page.match(/\/message\?id=(\d+)/)[1]).join(), `${last},${last - 200}`, 'the page has the end of it, and the next one what is before');
	is((await reader(cookie).get(web, '/message?id=123456')).status, 404, 'one that is not there does not');
	like((await reader(cookie).get(web, "/messages?before=x'")).text, /invalid input syntax/, 'an id that is none is an error');
}

async function health(web, cookie) {
	sql("SELECT tq.pause_queue('team/report')");
	const { text } = await reader(cookie).get(web, '/health');
	like(text, /PostgreSQL.*paused<.*is-attention.*resume_queue.*Maintenance.*No session waits for a lock.*Sizes/s, 'health shows what needs attention first, steps, locks and sizes');
	await until(async () => (await reader(cookie).get(web, '/audit?function=pause_queue')).text.includes('team/report'), 'the audit trail has the calls');
	like((await reader(cookie).get(web, '/audit?function=none')).text, /have none like that/, 'and what it has not, it says');
}

// A role of one team sees and does what is its own.
async function rights(web) {
	const cookie = cookieOf(await login(web, 'team'));
	for (const path of ['/cron', '/workers', '/messages', '/health', '/audit'])
		unlike(shown(await reader(cookie).get(web, path)), /shop\/|host-7|bill/, `a team sees nothing of others at ${path}`);
	const answer = await post(web, cookie, '/do', '/queue?name=team/report', { queue: 'shop/mail', worker_group: 'eu', worker_id: 'host-7', call: 'quarantine_worker' });
	like(answer.text, /not done/, 'nor does it change a worker of theirs');
}

async function barriers(web) {
	for (const colorScheme of ['light', 'dark']) {
		const page = await open(web, { role: 'op', colorScheme });
		for (const path of ['/cron', '/workers', '/worker?queue=shop/mail&group=eu&id=host-7', '/messages', '/message?id=1', '/health', '/audit']) {
			await page.goto(`${web.url}${path}`);
			is(await violations(page), '', `no barrier at ${path}, ${colorScheme}`);
		}
		is(page.problems.join('\n'), '', 'the browser has nothing to say');
		await page.context().close();
	}
}

// What a proxy adds counts, and not what a browser has sent before it.
async function forwarded() {
	const web = await startWeb('--trust', '127.0.0.1', '--metrics-from', '10.9.9.9', '--role-header', 'X-Role');
	const status = async headers => (await ask(web, '/metrics', { headers })).status;
	is(await status({ 'X-Forwarded-For': '10.9.9.9' }), 200, 'an address that may read the metrics does');
	is(await status({ 'X-Forwarded-For': ['10.9.9.9', '203.0.113.5'] }), 403, 'and is that of the last line');
	is(await status({ 'X-Forwarded-For': '10.9.9.9, 203.0.113.5' }), 403, 'or the last of a line');
	is((await ask(web, '/queues', { headers: { 'X-Role': 'op' } })).status, 200, 'a role is that of the header');
	unlike((await ask(web, '/queues', { headers: { 'X-Role': ['op', 'team'] } })).text, /shop\/mail/, 'and none if there are two');
	await web.stop();
}

await run(async () => {
	fill();
	const web = await startWeb();
	const cookie = cookieOf(await login(web, 'op'));
	await cron(web, cookie);
	await workers(web, cookie);
	await messages(web, cookie);
	await health(web, cookie);
	await rights(web);
	await barriers(web);
	await web.stop();
	await forwarded();
});
