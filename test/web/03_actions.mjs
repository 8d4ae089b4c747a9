// 03_actions.mjs: what can be done, to one and to many: asked, confirmed, counted, stopped.
import { ask, cookieOf, form, is, like, login, ok, open, run, slowly, sql, startWeb, unlike, until, violations } from './web.mjs';

const state = where => sql(`SELECT string_agg(state || ' ' || n, ', ' ORDER BY state) FROM (SELECT state, count(*) AS n FROM tq.task_overview WHERE ${where} GROUP BY 1) AS s`);

// person(WEB, ROLE): asks and sends forms as a browser would.
async function person(web, role) {
	const cookie = cookieOf(await login(web, role));
	const get = path => ask(web, path, { headers: { Cookie: cookie } });
	const [, token] = (await get('/queues')).text.match(/name=token value="([0-9a-f]{128})"/);
	const post = (path, fields) => ask(web, path, { ...form({ token, ...fields }), headers: { ...form({}).headers, Cookie: cookie } });
	return { cookie, token, get, post };
}

async function single(web, op) {
	const id = sql("SELECT tq.enqueue('shop/one')");
	let answer = await op.get(`/do?call=cancel_task&task=${id}&back=/queues`);
	like(answer.text, new RegExp(`Cancel task\\?[^]*${id}[^]*may never start[^]*class=danger`), 'what loses something is asked for');
	is(state(`task_id = '${id}'`), 'pending 1', 'and not done yet');
	answer = await op.post('/do', { call: 'cancel_task', task: id, back: '/queues' });
	is(answer.headers.location, '/queues?done=cancel_task', 'then it is done');
	is(state(`task_id = '${id}'`), 'exception 1', 'once');
	like((await op.get('/queues?done=cancel_task')).text, /Done: Cancel task/, 'and said');
	answer = await op.post('/do', { call: 'cancel_task', task: 'no id' });
	ok(answer.status >= 400, 'what is no id is refused');
	like(answer.text, /not done[^]*SQLSTATE/, 'with the words of the database');
	for (const back of ['//evil.example', 'https://evil.example', '/\\evil'])
		is((await op.post('/do', { call: 'rerun_task', task: id, deadline: '1 day', back })).headers.location?.startsWith('/?') ?? true, true, `no way back to ${back}`);
	sql(`SELECT tq.set_queue('shop/late', '{}'); SELECT tq.enqueue('shop/late', deadline => '0.1 s', name => 'late')`);
	const late = sql("SELECT task_id FROM tq.task_overview WHERE name = 'late'");
	await until(() => state(`task_id = '${late}'`) === 'exception 1', 'a deadline passes');
	like((await op.get(`/do?call=rerun_task&task=${late}`)).text, /name=deadline value="" placeholder="1 day"/, 'a question has fields for what is not given');
	answer = await op.post('/do', { call: 'rerun_task', task: late, back: '/queues' });
	like(answer.text, new RegExp(`deadline[^]*name="task" value="${late}"[^]*name=deadline`), 'and so has what was refused');
	is((await op.post('/do', { call: 'rerun_task', task: late, deadline: '1 day', back: '/queues' })).status, 303, 'which is done then');
	is((await op.post('/do', { call: 'drop_table' })).status, 404, 'there is no other call');
	is((await op.get("/do?call=cancel_task&task=<script>alert(1)</script>")).text.includes('<script>alert'), false, 'an argument is text');
	const team = await person(web, 'team');
	answer = await team.post('/do', { call: 'cancel_task', task: sql("SELECT tq.enqueue('shop/other')") });
	is(answer.status, 404, 'a task of another team does not exist');
}

async function bulk(web, op) {
	sql("SELECT count(tq.enqueue('shop/many')) FROM generate_series(1, 3000)");
	const filter = JSON.stringify({ queue: 'shop/many', state: ['pending'] });
	let answer = await op.post('/bulk', { action: 'cancel', on: 'filter', filter, back: '/queue?name=shop/many' });
	like(answer.text, /shop\/many[^]*3,000[^]*Cancel 3,000 tasks/, 'a dry run says how many, by queue and state');
	is(state("task_queue_id = 'shop/many'"), 'pending 3000', 'and does nothing');
	sql("SELECT tq.enqueue('shop/many') FROM generate_series(1, 5)");
	answer = await op.post('/bulk', { action: 'cancel', on: 'filter', filter, count: 3000, back: '/queue?name=shop/many' });
	const job = answer.headers.location;
	like(job, /^\/job\?id=[0-9a-f]{64}$/, 'it begins');
	await until(async () => (await op.get(job)).text.includes('Done in'), 'and ends');
	is(state("task_queue_id = 'shop/many'"), 'exception 3000, pending 5', 'no more than were confirmed');
	like((await op.get(job)).text, /Done<\/dt><dd>3,000/, 'and says how many');
	const reader = await person(web, 'reader');
	is((await reader.get(job)).status, 404, 'another role does not see it');
	answer = await reader.post('/bulk', { action: 'cancel', on: 'filter', filter, count: 5, back: '/' });
	await until(async () => /Refused[^]*5: /.test((await reader.get(answer.headers.location)).text), 'a reader is refused, task by task');
	is(state("task_queue_id = 'shop/many'"), 'exception 3000, pending 5', 'and nothing is done');
	answer = await op.post('/bulk', { action: 'cancel', on: 'filter', filter: '{"quee": 1}', back: '/' });
	like(answer.text, /quee/, 'a filter that is wrong is explained');
	answer = await op.post('/bulk', { action: 'priority', on: 'filter', filter, count: 5, argument: 'high', back: '/' });
	await until(async () => (await op.get(answer.headers.location)).text.includes('Done in'), 'an action has an argument');
	is(sql("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'shop/many' AND priority = 'high'"), '5', 'which counts');
	answer = await op.post('/bulk', { action: 'priority', on: 'filter', filter, count: 5, argument: '","x":"', back: '/' });
	await until(async () => /It has failed/.test((await op.get(answer.headers.location)).text), 'and is no JSON of its own');
}

async function picked(web, op) {
	const ids = sql("SELECT tq.enqueue('shop/pick') FROM generate_series(1, 3)").split('\n');
	sql(`SELECT tq.cancel_task('${ids[0]}')`);
	const fields = new URLSearchParams({ token: op.token, action: 'skip', on: 'picked', back: '/' });
	fields.set('action', 'schedule');
	for (const id of [...ids, "x'); DROP", 'none']) fields.append('pick', id);
	const send = () => ask(web, '/bulk', { method: 'POST', body: fields.toString(), headers: { ...form({}).headers, Cookie: op.cookie } });
	like((await send()).text, /SQLSTATE/, 'what is no id is refused');
	fields.delete('pick');
	fields.set('action', 'cancel');
	for (const id of ids) fields.append('pick', id);
	like((await send()).text, /Cancel 3 tasks/, 'rows that are ticked are counted');
	fields.set('count', '3');
	const answer = await send();
	await until(async () => /Done in/.test((await op.get(answer.headers.location)).text), 'and worked on');
	like((await op.get(answer.headers.location)).text, /Done<\/dt><dd>3/, 'each');
	is(state("task_queue_id = 'shop/pick'"), 'exception 3', 'as it is');
}

async function stopped(op) {
	sql("SELECT count(tq.enqueue('shop/stop')) FROM generate_series(1, 40000)");
	sql('ANALYZE');		// as autovacuum does in time
	const filter = JSON.stringify({ queue: 'shop/stop', state: ['pending'] });
	const { headers } = await op.post('/bulk', { action: 'cancel', on: 'filter', filter, count: 40000, back: '/' });
	is((await op.get('/queues')).status, 200, 'pages are answered meanwhile');
	like((await op.get(headers.location)).text, /<button>Stop<\/button>|Done in/, 'it can be stopped');
	await until(() => sql("SELECT count(*) < 40000 FROM tq.task_overview WHERE task_queue_id = 'shop/stop' AND state = 'pending'") === 't', 'what takes long begins');
	await op.post('/job', { id: headers.location.split('=')[1] });
	await until(async () => !(await op.get(headers.location)).text.includes('Under way'), 'and is');
	const left = Number(sql("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'shop/stop' AND state = 'pending'"));
	ok(left > 0, `what is left stays: ${left}`);
	is((await op.get('/queues')).status, 200, 'and its connection is good for others');
	is(sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tq-web%' AND state <> 'idle'"), '0', 'nothing goes on');
}

// From the list of tasks: a filter, a dry run, one confirmation, progress, stop.
async function fromTasks(web) {
	sql(`SELECT count(tq.enqueue('shop/list', name => 'one of many')) FROM generate_series(1, 40000);
		SELECT count(tq.enqueue('shop/list', name => 'one of many', delay => '1 hour')) FROM generate_series(1, 5);
		SELECT count(tq.enqueue('shop/list', name => 'another')) FROM generate_series(1, 4)`);
	sql('ANALYZE');
	const page = await open(web, { role: 'op' });
	await page.goto(`${web.url}/tasks?queue=shop/list&name=one+*`);
	await page.selectOption('#tasks-action', 'priority');
	await page.click('text=All that the filter finds');
	like(await page.textContent('main'), /shop\/list\s*pending\s*40,005/, 'the dry run counts by queue and state');
	is(await violations(page), '', 'and has no barrier');
	await page.selectOption('#argument', 'high');
	await slowly(async () => {
		await page.click('text=Change priority of 40,005 tasks');
		await page.waitForSelector('text=/[1-9][0-9]* of 40005|[1-9][0-9]* tasks/');
		like(await page.textContent('main'), /Under way for.*one \*/s, 'its progress is shown, with the filter');
		await page.click('text=Stop');
		await page.waitForSelector('text=What was done stays done');
	});
	is(await violations(page), '', 'nor has its end');
	const changed = () => Number(sql("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'shop/list' AND priority = 'high'"));
	const done = changed();
	ok(done > 0 && done < 40005, `a part is done: ${done}`);
	await page.click('text=Back');
	like(page.url(), /\/tasks\?queue=shop(%2F|\/)list&name=one(\+|%20)\*$/, 'the way back leads to the filter');
	await page.selectOption('#tasks-action', 'priority');
	await page.click('text=All that the filter finds');
	await page.selectOption('#argument', 'high');
	await page.click('text=Change priority of 40,005 tasks');
	await page.waitForSelector('text=Done in');
	is(changed(), 40005, 'the same again goes on to the end, and touches no other task');
	is(page.problems.join('\n'), '', 'the browser has nothing to say');
	await page.context().close();
}

async function browse(web) {
	sql(`SELECT count(tq.enqueue('shop/ui', retry => 0)) FROM generate_series(1, 7);
		SELECT tq.report_failed(task_id, run_id, error_message => 'no') IS NULL FROM tq.claim_work('shop/ui', 'a', 'b', 7)`);
	const page = await open(web, { role: 'op' });
	await page.goto(`${web.url}/queue?name=shop/ui`);
	await page.click('text=Pause');
	await page.waitForSelector('text=Done: Pause queue');
	await page.click('text=Resume');
	await page.waitForSelector('text=Done: Resume queue');
	await page.click('text=Rerun failed');
	await page.waitForSelector('text=Rerun 7 tasks');
	is(await violations(page), '', 'a dry run has no barrier');
	await page.click('text=Rerun 7 tasks');
	await page.waitForSelector('text=Done in');
	is(await violations(page), '', 'nor has its end');
	is(state("task_queue_id = 'shop/ui'"), 'pending 7', 'three clicks run again what has failed');
	await page.click('text=Back');
	is(await page.textContent('h1'), 'shop/ui', 'and there is a way back');
	await page.goto(`${web.url}/do?call=cancel_task_group&group=x`);
	is(await violations(page), '', 'a question has none');
	is(page.problems.join('\n'), '', 'the browser has nothing to say');
	await page.context().close();
}

run(async () => {
	const web = await startWeb();
	const op = await person(web, 'op');
	await single(web, op);
	await bulk(web, op);
	await picked(web, op);
	await slowly(() => stopped(op));
	await fromTasks(web);
	await browse(web);
	is(await web.stop(), 0, 'it ends by SIGTERM');
	unlike(web.lines, /error/i, 'without an error');
});
