// 06_tasks.mjs: tasks that a filter finds, one of them, groups, failures, dead letters.
import { ask, cookieOf, form, is, like, login, ok, open, run, sql, startWeb, unlike, violations } from './web.mjs';

const evil = '<script>alert(1)</script>';
const group = 'AAAAAAAAQAaAAAAAAAAAAg';
const large = 'BAAAAAAAQAaAAAAAAAAAAg';

const expires = new Date(Date.now() + 86400_000).toISOString();

function fill() {
	sql(`SELECT count(tq.enqueue('shop/mail', jsonb_build_object('to', '${evil}', 'n', i), name => '${evil} ' || i, tags => '{"customer": "${evil}"}')) FROM generate_series(1, 240) AS i;
		SELECT count(tq.enqueue('team/report', '{}', name => 'report')) FROM generate_series(1, 3);
		SELECT count(tq.enqueue('shop/build', '{}', name => 'part ' || i, task_group_id => '${group}')) FROM generate_series(1, 3) AS i`);
	sql(`SELECT tq.enqueue('shop/build', '{}', name => 'x ${evil}', task_group_id => '${group}');
		SELECT tq.enqueue('shop/build', '{}', name => 'all', task_group_id => '${group}', dependencies => (SELECT array_agg(task_id) FROM tq.task_details WHERE name LIKE 'part %'));
		SELECT tq.enqueue('shop/dead', '{}', name => 'dead', policy => '{"deadLetter": true, "retries": 0}')`);
	sql(`SELECT tq.report_failed(task_id, run_id, error_message => 'no route to 10.0.0.' || length(task_id::text) || ' ${evil}') FROM tq.claim_work('shop/mail', 'eu', 'host-1', 5)`);
	sql(`SELECT tq.create_artifact(task_id, 0, 'public/${evil}', '{"storageType": "reference", "contentType": "text/html", "url": "https://example.org", "expires": "${expires}"}'),
		tq.create_artifact(task_id, 0, 'log', jsonb_build_object('storageType', 'inline', 'contentType', 'text/plain', 'content', 'it prints ${evil}', 'expires', '${expires}')),
		tq.create_artifact(task_id, 0, 'bad', '{"storageType": "reference", "contentType": "text/html", "url": "javascript:alert(1)", "expires": "${expires}"}')
		FROM tq.claim_work('shop/mail', 'eu', 'host-1', 1)`);
	sql(`SELECT tq.report_failed(task_id, run_id, error_message => 'dead ${evil}') FROM tq.claim_work('shop/dead', 'eu', 'host-1', 1)`);
}

const idOf = condition => sql(`SELECT task_id FROM tq.task_details WHERE ${condition} LIMIT 1`);
const encode = encodeURIComponent;
const ids = text => [...text.matchAll(/<tr>.*?\/task\?id=([\w-]{22})/gs)].map(m => m[1]);
let cookie;
let web;

const get = path => ask(web, path, { headers: { Cookie: cookie } });

async function post(page, path, fields) {
	const { text } = await get(page);
	const token = text.match(/name=token value="([0-9a-f]{128})"/)[1];
	return ask(web, path, { ...form({ ...fields, token }), headers: { ...form({}).headers, Cookie: cookie } });
}

async function finds() {
	let { text } = await get('/tasks');
	is(ids(text).length, 100, 'the newest tasks are a page');
	unlike(text, /<script>alert/, 'what is stored is text');
	const byName = (await get('/tasks?tasks.sort=-name')).text;
	const names = [...byName.matchAll(/<span class="text">([^<]*)<\/span><\/a><\/td><td><a href="\/queue/g)].map(m => m[1]);
	is(names.join(), [...names].sort().reverse().join(), 'the rows of a page are sorted by a link');
	is(ids(byName).sort().join(), ids(text).sort().join(), 'and are the same');
	is(byName.match(/after=(\d+)/)[1], text.match(/after=(\d+)/)[1], 'so is the next page');
	like(text, /href="\/tasks\?tasks\.sort=name"/, 'the link is in the head');
	const next = text.match(/href="(\/tasks\?[^"]*after=[^"]*)"/)[1].replaceAll('&#38;', '&').replaceAll('&amp;', '&');
	const second = ids((await get(next)).text);
	is(second.length, 100, 'the next page goes on');
	is(second.filter(id => ids(text).includes(id)).length, 0, 'with other tasks');
	is(ids((await get('/tasks?queue=shop/*&state=failed&error=no+route')).text).length, 5, 'a form finds by queue, state and error');
	is(ids((await get('/tasks?name=part+*')).text).length, 3, 'by name');
	is(ids((await get(`/tasks?filter=${encode('{"state": ["running"], "worker": "eu/host-1"}')}`)).text).length, 1, 'a text finds by what it says');
	like((await get(`/tasks?filter=${encode('{"foo": 1}')}`)).text, /must not have the key.*foo.*A filter has keys of these/s, 'a wrong one is explained');
	like((await get('/tasks?filter=%7B')).text, /invalid input syntax for type json/, 'also one that is no JSON');
	like((await get('/tasks?queue=none/*')).text, /No task that you may see/, 'and where there is none, what to do');
	like((await get("/tasks?after='")).text, /role=alert/, 'a page that is none is an error');
}

async function tasks() {
	const failed = idOf("state = 'failed' AND task_queue_id = 'shop/mail'");
	let { text } = await get(`/task?id=${failed}`);
	like(text, /rerun_task.*is-failed.*no route to.*Payload.*Runs.*eu\/host-1/s, 'a task has its state, what to do, its error, payload and runs');
	unlike(text, /<script>alert/, 'all of it text');
	like(text, /<svg class=timeline [^>]*>.*<g class="is-failed"><title>run 0: failed, waited [\d.]+ m?s, ran [\d.]+ m?s\nno route to [^<]*&lt;script.*<rect class=run /s, 'and a time line of these, with their errors on hover');
	const running = idOf("state = 'running'");
	like((await get(`/task?id=${running}`)).text, /Log<.*it prints &lt;script.*public\/&lt;script/s, 'its log and artifacts, too');
	like((await get(`/artifact?id=${running}&run=0&name=log`)).text, /it prints &lt;script/, 'an artifact is shown as text');
	like((await get(`/artifact?id=${running}&run=0&name=public/${encode(evil)}`)).text, /href="https:\/\/example.org/, 'or by its address');
	unlike((await get(`/artifact?id=${running}&run=0&name=bad`)).text, /href="javascript/, 'if that is one of the web');
	is((await get(`/artifact?id=${running}&run=0&name=none`)).status, 404, 'another is not there');
	sql(`SELECT tq.create_artifact(task_id, run_id, 'log', '{"storageType": "inline", "contentType": "application/json", "content": null, "expires": "${expires}"}') FROM tq.claim_work('shop/mail', 'eu', 'host-2', 1)`);
	is((await get(`/task?id=${idOf("worker_id = 'host-2'")}`)).status, 200, 'a log may be null');
	text = (await get(`/task?id=${idOf("name = 'all'")}`)).text;
	like(text, /is-unscheduled.*Depends on(?=.*>part 1<)(?=.*>part 2<)(?=.*>part 3<)/s, 'what it depends on');
	like((await get(`/task?id=${idOf("name = 'part 1'")}`)).text, /What depends on it.*>all</s, 'and what depends on it');
	is((await get('/task?id=AAAAAAAAQAaAAAAAAAAAAw')).status, 404, 'another is not there');
	like((await get("/task?id='")).text, /invalid/, 'an id that is none is an error');
	let done = await post(`/task?id=${failed}`, '/do', { call: 'rerun_task', task: failed, back: `/task?id=${failed}` });
	is(`${done.status} ${sql(`SELECT state FROM tq.task_overview WHERE task_id = '${failed}'`)}`, '303 pending', 'it is rerun');
	done = await post(`/task?id=${failed}`, '/do', { call: 'cancel_task', task: failed, back: `/task?id=${failed}` });
	is(sql(`SELECT reason FROM tq.task_overview WHERE task_id = '${failed}'`), 'canceled', 'and canceled');
}

// Each call for one task, a group or a subscription has its button, which a change of the state changes.
async function buttons() {
	sql(`SELECT tq.enqueue('shop/one', '{}', name => 'one', policy => '{"deadLetter": true, "retries": 0}'); SELECT tq.subscribe('ends', 'task-failed')`);
	const one = idOf("name = 'one'");
	const page = await open(web, { role: 'op' });
	const shown = () => page.locator('.buttons button, .buttons .button').allTextContents().then(all => all.join());
	await page.goto(`${web.url}/task?id=${one}`);
	is(await shown(), 'Skip,Priority …,Time …,Cancel,New one like it', 'what can be done with a task that waits');
	await page.click('text=Priority …');
	await page.selectOption('#priority', 'high');
	await page.click('button.danger');
	await page.waitForSelector('text=Done: Change priority');
	is(sql(`SELECT priority FROM tq.task_overview WHERE task_id = '${one}'`), 'high', 'any priority can be chosen');
	await page.click('text=Time …');
	await page.fill('#at', '2099-01-01 10:00');
	await page.click('button.danger');
	await page.waitForSelector('text=Done: Change time');
	is(sql(`SELECT visible_at AT TIME ZONE 'UTC' FROM tq.task_details WHERE task_id = '${one}'`), '2099-01-01 10:00:00', 'and a time');
	await page.click('button:text-is("Now")');
	await page.waitForSelector('text=Done: Change time');
	await page.waitForFunction(() => document.querySelector('#live').textContent === 'Live');
	sql("SELECT tq.report_failed(task_id, run_id, error_message => 'no') FROM tq.claim_work('shop/one', 'eu', 'host-1', 1)");
	await page.waitForSelector('text=Rerun with …');
	is(await shown(), 'Rerun,Rerun with …,Delete,Redrive,Discard dead letter,New one like it', 'what can be done when it has failed, without another load');
	await page.click('text=Rerun with …');
	is(await page.locator('form.create input:not([type=hidden])').count(), 2, 'a rerun may have another deadline, and what depends on it');
	await page.goto(`${web.url}/task?id=${one}`);
	await page.click('text=Discard dead letter');
	await page.click('button.danger');
	await page.waitForSelector('text=Done: Discard');
	is(sql(`SELECT count(*) FROM tq.dead_letter_overview WHERE task_id = '${one}'`), '0', 'its dead letter is discarded');
	await page.goto(`${web.url}/group?id=${group}`);
	is(await page.locator('button:has-text("Priority …")').count(), 1, 'a group has a priority, too');
	await page.goto(`${web.url}/messages`);
	await page.click('tr:has-text("ends") >> text=End …');
	await page.click('button.danger');
	await page.waitForSelector('text=Done: End subscription');
	is(sql("SELECT count(*) FROM tq.subscription_overview WHERE name = 'ends'"), '0', 'a subscription can be ended');
	await page.context().close();
}

const long = 'shop/a-queue-with-a-long-name';

// What tq.why() advises is a button, which asks first.
async function advice() {
	sql(`SELECT tq.enqueue('${long}', '{}', name => 'held'); SELECT tq.pause_queue('${long}'); SELECT tq.enqueue('shop/fails', '{}', name => 'first', retries => 0)`);
	const first = idOf("name = 'first'");
	sql(`SELECT tq.enqueue('shop/fails', '{}', name => 'second', dependencies => '{${first}}')`);
	let { text } = await get(`/task?id=${idOf("name = 'second'")}`);
	like(text, /Why that one/, 'a task that waits leads to the one that it waits for');
	sql("SELECT tq.report_failed(task_id, run_id) FROM tq.claim_work('shop/fails', 'eu', 'host-3', 1)");
	text = (await get(`/task?id=${idOf("name = 'second'")}`)).text;
	like(text, new RegExp(`it depends on first: failed.*name="?call"? value="rerun_task".*name="?task"? value="${first}".*Rerun task`, 's'), 'or has a button that reruns it');
	const page = await open(web, { role: 'op' });
	await page.goto(`${web.url}/task?id=${idOf("name = 'held'")}`);
	await page.click('.advice >> text=Resume queue');
	like(await page.textContent('main'), new RegExp(`Resume queue\\?.*${long}`, 's'), 'it asks, with the whole name');
	is(sql(`SELECT paused FROM tq.queue_stats WHERE task_queue_id = '${long}'`), 't', 'and does nothing');
	is(await violations(page), '', 'the question has no barrier');
	await page.click('button.danger');
	await page.waitForSelector('text=Done: Resume queue');
	is(sql(`SELECT paused FROM tq.queue_stats WHERE task_queue_id = '${long}'`), 'f', 'until it is confirmed');
	await page.context().close();
}

// The graph is a part of the page, with links; of a large group, a picture by itself.
async function graphs(text) {
	const graph = text.match(/<svg [^>]*aria-label="Graph of the group">.*?<\/svg>/s)?.[0] ?? '';
	is([...graph.matchAll(/<a href="\/task\?id&#61;[\w-]{22}"><g class="node"><title>(?:part \d|all|x[^<]*): /g)].length, 5, 'the graph is in the page, each box leads to its task');
	like(graph, /&#60;script/, 'a name is text in it');
	unlike(graph, /<script|<style|<foreign|xmlns/, 'and it has nothing but shapes');
	const alone = await get(`/graph?id=${group}`);
	like(`${alone.headers['content-type']} ${alone.headers['content-security-policy']} ${alone.text}`, /^image\/svg\+xml.*default-src 'none'.*<svg/s, 'it is also a picture by itself');
	sql(`SELECT count(tq.enqueue('shop/large', '{}', name => 'part ' || i, task_group_id => '${large}')) FROM generate_series(1, 5000) AS i`);
	const begin = Date.now();
	const [page, other] = await Promise.all([get(`/group?id=${large}`), get('/queues'), get(`/graph?id=${large}`)]);
	like(page.text, /<img src="\/graph\?id=[^"]*" loading=lazy.*Critical path.*Look for it/s, 'of a large group it is loaded by itself');
	is(other.status, 200, `and others do not wait: ${Date.now() - begin} ms`);
	like((await get(`/graph?id=${large}`)).text, /5000 x part \*/, 'drawn by names');
	like((await get(`/group?id=${large}&path=1`)).text, /id="path"/, 'its critical path is looked for when it is asked for');
	for (const javaScriptEnabled of [true, false]) {
		const reader = await open(web, { role: 'op', javaScriptEnabled });
		await reader.goto(`${web.url}/group?id=${group}`);
		const width = () => reader.locator('.graph svg').boundingBox().then(box => Math.round(box.width));
		const fit = await width();
		await reader.click('text=200 %');
		ok(await width() > 1.5 * fit, `the graph is enlarged, ${javaScriptEnabled ? 'with' : 'without'} a script: ${fit}, ${await width()}`);
		await reader.locator('.graph a', { hasText: 'all' }).first().click();
		is(await reader.textContent('h1'), 'all', 'a click leads to the task');
		await reader.context().close();
	}
}

// A picture with anything that is not known is not shown, whatever the database says.
async function foreign() {
	const original = sql("SELECT pg_get_functiondef('tq.group_graph'::regproc)");
	for (const part of ['<script>alert(1)</script>', '<g onload="x"></g>', '<g class="a"onload="x"></g>', '<a href="javascript:x"></a>', '<a href="/do?call=x"></a>', '<image href="/task?id&#61;x"/>', '<style>*{}</style>', '<g style="x"></g>', '<!-- -->', '<g class=\'x\'/>', '</svg><p>', '<g class="a>b']) {
		sql(`CREATE OR REPLACE FUNCTION tq.group_graph(task_group_id tq.slugid, max_nodes int DEFAULT 200, link text DEFAULT NULL) RETURNS text LANGUAGE sql AS $f$
			SELECT $s$<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><style></style><g class="node"></g>${part}</svg>$s$ $f$`);
		const { text } = await get(`/group?id=${group}`);
		ok(text.includes('The picture is not one that can be shown here') && !text.includes(part), `no picture with ${part}`);
	}
	sql(original);
}

async function groups() {
	let list = (await get('/groups')).text;
	like(list, new RegExp(`/group\\?id=${group}.*unresolved.*>5<`, 's'), 'groups are found, with their progress');
	sql(`SELECT count(tq.enqueue('shop/batch', '{}', name => 'b', task_group_id => tq.stable_slugid('batch ' || i))) FROM generate_series(1, 230) AS i;
		SELECT count(tq.name_task_group(tq.stable_slugid('batch ' || i), 'batch ' || i || ' ${evil}')) FROM generate_series(1, 230) AS i`);
	const found = new Set();
	for (let path = '/groups', pages = 0; path && pages < 100; pages++) {
		list = (await get(path)).text;
		for (const [, id] of list.matchAll(/<th scope=row><a class=id href="\/group\?id=([\w-]{22})/g)) found.add(id);
		path = list.match(/class=more><a class=button href="([^"]*)"/)?.[1].replaceAll('&amp;', '&');
	}
	is(found.size, 232, 'page by page, each once');
	unlike(list, /<script>alert/, 'their names are text');
	list = (await get('/groups?find=batch+22*')).text;
	is([...list.matchAll(/<td><a href="\/group[^>]*><span class="text">batch 22/g)].length, 11, 'by the beginning of their names');
	is((await get(`/groups?find=${group}`)).headers.location, `/group?id=${group}`, 'or one by its id');
	like((await get('/groups?find=none')).text, /There is no such group that you may see.*name_task_group/s, 'or none, and what to do');
	sql(`SELECT tq.name_task_group('${group}', 'build of main')`);
	like((await get('/group?id=build+of+main')).text, /<h1>Group build of main<.*part 1/s, 'a group is found by its name');
	const { text } = await get(`/group?id=${group}`);
	like(text, /Tasks.*5.*Gantt chart.*Critical path.*part \d.*>all</s, 'a group has its progress, its critical path and tasks');
	const gantt = await get(`/gantt?id=${group}`);
	like(`${gantt.headers['content-type']} ${gantt.text}`, /^image\/svg\+xml.*<svg/s, 'its chart is a picture');
	like(gantt.headers['content-security-policy'], /^default-src 'none'; style-src 'unsafe-inline'.*sandbox/, 'that may run nothing');
	await graphs(text);
	const report = await get(`/report?id=${group}`);
	like(`${report.headers['content-security-policy']} ${report.text}`, /sandbox.*<html/is, 'so is its report');
	is((await get('/group?id=AAAAAAAAQAaAAAAAAAAAAw')).status, 404, 'another group is not there');
	is((await get('/gantt?id=AAAAAAAAQAaAAAAAAAAAAw')).status, 404, 'nor its picture');
	let done = await post(`/group?id=${group}`, '/do', { call: 'cancel_task_group', group, back: '/groups' });
	like(done.text, /is not sealed.*Call tq.seal_task_group/s, 'an error has its hint');
	await post(`/group?id=${group}`, '/do', { call: 'seal_task_group', group, back: '/groups' });
	done = await post(`/group?id=${group}`, '/do', { call: 'cancel_task_group', group, back: `/group?id=${group}` });
	is(done.status, 303, 'it is canceled') || console.log(`# ${done.text}`);
	is(sql(`SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'shop/build' AND reason = 'canceled'`), '5', 'with its tasks');
}

async function failures() {
	const { text } = await get('/failures');
	like(text, /no route to &lt;address&gt;.*failed/s, 'failures are groups');
	unlike(text, /<script>alert/, 'of text');
	like((await get('/failures?queue=team/*')).text, /Nothing has failed/, 'of a queue');
	like((await get('/failures?new=1')).text, /no route to/, 'or new ones');
	const page = await open(web, { role: 'op' });
	await page.goto(`${web.url}/failures?queue=shop/mail`);
	const waiting = () => Number(sql("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'shop/mail' AND state = 'failed'"));
	const before = waiting();
	await page.click('text=Rerun …');
	await page.click(`text=Rerun ${before} tasks`);
	await page.waitForSelector('text=Done in');
	is(waiting(), 0, 'two clicks run again what failed for one reason');
	await page.goto(`${web.url}/queue?name=shop/mail`);
	await page.click('text=Change settings');
	await page.fill('#settings', '{"concurrentLimit": "no"}');
	await page.click('button.danger');
	await page.waitForSelector('text=SQLSTATE');
	is(await page.inputValue('#settings'), '{"concurrentLimit": "no"}', 'settings that are refused stay in the form');
	await page.fill('#settings', '{"concurrentLimit": 7}');
	await page.click('button.danger');
	await page.waitForSelector('text=Done: Change settings of queue');
	is(sql("SELECT tq.get_task_queue('shop/mail') #>> '{settings,concurrentLimit}'"), '7', 'and are changed when they are right');
	await page.context().close();
	const dead = idOf("name = 'dead'");
	like((await get('/dead-letters')).text, new RegExp(`${dead}.*dead &lt;script.*Redrive`, 's'), 'dead letters are a page');
	await post('/dead-letters', '/do', { call: 'redrive', task: dead, back: '/dead-letters' });
	is(sql(`SELECT state FROM tq.task_overview WHERE task_id = '${dead}'`), 'pending', 'one is redriven');
	like((await get('/dead-letters')).text, /There are no dead letters/, 'and is one no more');
}

// All dead letters that are found are redriven, or those that are ticked.
async function letters() {
	sql(`SELECT count(tq.enqueue('shop/dead', '{}', name => 'letter ' || i, policy => '{"deadLetter": true, "retries": 0}')) FROM generate_series(1, 12) AS i`);
	sql(`SELECT tq.report_failed(task_id, run_id, error_message => 'reason ' || row_number() OVER () % 2) FROM tq.claim_work('shop/dead', 'eu', 'host-1', 13)`);
	is(ids((await get('/dead-letters?queue=shop/*&error=reason+1')).text).length, 7, 'dead letters are found by queue and error');
	is(ids((await get('/dead-letters?queue=team/*')).text).length, 0, 'or none');
	const page = await open(web, { role: 'op' });
	await page.goto(`${web.url}/dead-letters?queue=shop/*&error=reason+1`);
	is((await page.locator('#letters-action option').allTextContents()).join(), 'Redrive tasks,Discard dead letters of tasks', 'what can be done with them');
	await page.click('text=All that the filter finds');
	await page.click('text=Redrive 7 tasks');
	await page.waitForSelector('text=Done in');
	is(sql("SELECT count(*) FROM tq.dead_letter_overview WHERE task_queue_id = 'shop/dead'"), '6', 'all of them are redriven, and no other');
	await page.goto(`${web.url}/dead-letters?queue=shop/dead`);
	await page.selectOption('#letters-action', 'discard');
	for (const n of [0, 1]) await page.locator('#letters input[name=pick]').nth(n).check();
	await page.click('text=Selected rows');
	await page.click('text=Discard dead letters of 2 tasks');
	await page.waitForSelector('text=Done in');
	is(sql("SELECT count(*) FROM tq.dead_letter_overview WHERE task_queue_id = 'shop/dead'"), '4', 'or what is ticked is discarded');
	await page.context().close();
}

async function create() {
	const first = idOf("name = 'first'");
	let answer = await post('/create', '/create', {
		task_queue_id: 'shop/new', payload: '{"a": 1}', name: evil, priority: 'high', delay: '1 hour', tags: '{"k": "v"}', retry: '3', deadline: '2 days', expires: '10 days',
		task_group_id: 'CAAAAAAAQAaAAAAAAAAAAg', dependencies: ` ${first},${idOf("name = 'second'")}\r\n`, requires: 'all-resolved', scheduler_id: 'web', project_id: 'shop', routes: 'a.b\r\nc\r\n', extra: '{"x": 1}', policy: '{"deadLetter": true}',
	});
	like(answer.headers.location ?? answer.text, /^\/task\?id=[\w-]{22}$/, 'a task is created, and shown');
	const id = (answer.headers.location ?? '').split('=')[1];
	const get1 = key => sql(`SELECT tq.task('${id}') #>> '{${key}}'`);
	is(['taskQueueId', 'priority', 'payload,a', 'tags,k', 'taskGroupId', 'requires', 'schedulerId', 'projectId', 'routes', 'extra,x', 'policy,deadLetter'].map(get1).join(' '),
		`shop/new high 1 v CAAAAAAAQAaAAAAAAAAAAg all-resolved web shop ["a.b", "c"] 1 true`, 'as the form says');
	is(sql(`SELECT deadline - created > '2 days', expires - deadline FROM tq.task_details WHERE task_id = '${id}'`), 't|10 days', 'with its times');
	const from = await get(`/create?from=${id}`);
	like(from.text, /value="shop\/new".*selected value="high".*<details class=choice open>.*value="web".*deadLetter.*a\.b\nc</s, 'another can be made from it');
	like(from.text, /value="&lt;script/, 'with its name');
	unlike(from.text, /<script>alert/, 'and what it has is text');
	is((await post('/create', '/create', { task_queue_id: 'shop/new' })).status, 303, 'a queue is enough');
	is((await post('/create', '/create', { task_queue_id: 'shop/new', deadline: 'none' })).status, 303, 'a deadline may be none');
	const kept = { task_queue_id: 'shop/new', payload: '{', name: 'kept', priority: 'low', delay: '1 min', tags: '{"a": "b"}', scopes: 'one\r\ntwo' };
	answer = await post('/create', '/create', kept);
	is(answer.status, 409, 'what the database refuses is not created');
	like(answer.text, /value="shop\/new".*value="kept".*>\n\{<.*selected value="low".*value="1 min".*&quot;b&quot;.*>\none\s+two<.*id=refused.*invalid input syntax for type json.*SQLSTATE/s, 'its error is shown, and all fields are kept');
	for (const [field, value, pattern] of [['retry', '-1', /retry/], ['expires', '1 day', /expires/], ['task_id', 'x', /slugid/], ['run_at', 'soon', /timestamp/], ['task_queue_id', 'no queue!', /task_queue_id/], ['dependencies', 'AAAAAAAAQAaAAAAAAAAAAw', /depend/]]) {
		answer = await post('/create', '/create', { task_queue_id: 'shop/new', [field]: value });
		like(answer.text, new RegExp(`id=${field} [^>]*value="${value}"[^>]*aria-invalid=true.*id=refused.*${pattern.source}`, 's'), `a wrong ${field} is marked`);
	}
	like(answer.text, /class=hint/, 'an error has its hint');
	const page = await open(web, { role: 'op' });
	await page.goto(`${web.url}/create`);
	await page.fill('#task_queue_id', 'shop/new');
	await page.fill('#payload', '[');
	await page.press('#name', 'Enter');
	await page.waitForSelector('#refused >> text=SQLSTATE');
	is(await violations(page), '', 'a form that was refused has no barrier');
	await page.fill('#payload', '[]');
	await page.press('#name', 'Enter');
	await page.waitForURL(/\/task\?id=/);
	await page.context().close();
}

// A role of one team sees what is its own.
async function rights() {
	const own = cookie;
	const running = idOf("state = 'running'");
	cookie = cookieOf(await login(web, 'team'));
	for (const path of ['/tasks', '/groups', '/failures', '/dead-letters'])
		unlike((await get(path)).text, /shop\/(?:mail|build|dead)|part 1|no route/, `a team sees nothing of others at ${path}`);
	is(ids((await get('/tasks')).text).length, 3, 'but its own tasks');
	is((await get(`/task?id=${running}`)).status, 404, 'a task of others is not there');
	unlike((await get(`/group?id=${group}`)).text, /part 1/, 'nor are those of a group');
	is((await post('/create', '/create', { task_queue_id: 'shop/mail' })).status, 409, 'none is created where it may not');
	like((await post('/tasks', '/do', { call: 'cancel_task', task: running, back: '/tasks' })).text, /not done/i, 'and not canceled');
	cookie = own;
}

// A search whose time was over goes on by itself; all rows are ticked at once.
async function searches() {
	const page = await open(web, { role: 'op' });
	await page.route(`${web.url}/tasks?name=all`, async route => {
		const answer = await route.fetch();
		await route.fulfill({ response: answer, body: (await answer.text()).replace('</main>', '<p class=more>So far. <a class=button href="/tasks?name=report" data-on>Search on</a></p></main>') });
	});
	await page.goto(`${web.url}/tasks?name=all`);
	await page.waitForFunction(() => document.querySelectorAll('#tasks tbody tr').length === 4 && !document.querySelector('.more'));
	ok(true, 'a search goes on while its page is read');
	is(await page.locator('.more').count(), 0, 'to its end');
	await page.check('#tasks input.all');
	is(await page.locator('#tasks input[name=pick]:checked').count(), 4, 'all rows are ticked');
	await page.click('text=Selected rows');
	is(await page.locator('text=Cancel 4 tasks').count(), 1, 'and counted');
	is(page.problems.join('\n'), '', 'the browser has nothing to say');
	await page.context().close();
}

const pages = () => ['/queues', '/queue?name=shop/mail', '/tasks', '/tasks?state=failed', `/task?id=${idOf("state = 'running'")}`, '/groups', `/group?id=${group}`, '/failures', '/dead-letters', '/cron', '/workers',
	'/messages', '/health', '/audit', '/create', '/do?call=rerun_task&task=x'];

async function barriers() {
	for (const colorScheme of ['light', 'dark']) {
		const page = await open(web, { role: 'op', colorScheme });
		for (const path of ['/tasks?state=failed', `/task?id=${idOf("state = 'running'")}`, '/groups?find=batch+1*', `/group?id=${group}`, '/failures', '/dead-letters', '/create', '/queue?name=shop/mail']) {
			await page.goto(`${web.url}${path}`);
			is(await violations(page), '', `no barrier at ${path}, ${colorScheme}`);
		}
		is(page.problems.join('\n'), '', 'the browser has nothing to say');
		ok(page.requests.every(url => url.startsWith(web.url) || url.startsWith('data:')), 'no request leaves the host');
		await page.context().close();
	}
}

// One type scale and two weights; no page is wider than a telephone, or heavy; the keyboard reaches all.
async function looks() {
	const page = await open(web, { role: 'op', viewport: { width: 360, height: 780 } });
	const sizes = new Set();
	const weights = new Set();
	for (const path of pages()) {
		await page.goto(`${web.url}${path}`);
		const weight = async part => Number((await ask(web, part, { headers: { Cookie: cookie, 'Accept-Encoding': 'gzip' } })).headers['content-length']);
		const parts = [path, ...await page.evaluate(() => [...document.querySelectorAll('script, link, img')].map(e => new URL(e.src || e.href)).map(u => u.pathname + u.search))];
		const bytes = (await Promise.all(parts.map(weight))).reduce((all, one) => all + one);
		ok(bytes < 100000, `${path} is light: ${bytes} bytes in all`);
		const seen = await page.evaluate(() => {
			const styles = [...document.querySelectorAll('body *')].filter(e => !e.closest('svg') && e.checkVisibility()).map(e => getComputedStyle(e));
			return { wide: document.documentElement.scrollWidth > innerWidth, sizes: styles.map(s => s.fontSize), weights: styles.map(s => s.fontWeight) };
		});
		is(seen.wide, false, 'and no wider than a telephone');
		for (const size of seen.sizes) sizes.add(size);
		for (const weight of seen.weights) weights.add(weight);
	}
	is([...sizes].sort().join(), '13px,15px,20px', 'there is one type scale');
	is([...weights].sort().join(), '400,600', 'and two weights');
	await page.setViewportSize({ width: 1280, height: 800 });
	const heads = () => page.evaluate(() => [...document.querySelectorAll('.scroll thead th')].filter(e => e.checkVisibility()).map(e => e.textContent).join());
	for (const path of ['/queues', '/failures']) {
		await page.goto(`${web.url}${path}`);
		is(await page.evaluate(() => [...document.querySelectorAll('.scroll')].every(e => e.scrollWidth <= e.clientWidth)), true, `the table of ${path} fits into 1280 pixels`);
	}
	await page.goto(`${web.url}/queues`);
	unlike(await heads(), /p50/, 'where it is narrow, without medians');
	await page.goto(`${web.url}/queues?queues.show=task_queue_id&queues.show=wait_p50`);
	like(await heads(), /^Queue.*,Wait p50$/, 'but with what was chosen');
	await page.setViewportSize({ width: 1600, height: 800 });
	await page.goto(`${web.url}/queues`);
	like(await heads(), /Wait p50,Wait p99,Run p50,Run p99/, 'where it is wide, with all');
	await page.goto(`${web.url}/tasks?state=failed`);
	const reached = [];
	for (let i = 0; i < 200 && reached.at(-1) !== 'next'; i++) {
		await page.keyboard.press('Tab');
		reached.push(await page.evaluate(() => {
			const e = document.activeElement;
			return e.matches('#tasks tbody a') ? 'next' : `${e.getAttribute('href') ?? e.name ?? e.localName}${getComputedStyle(e).outlineStyle === 'none' ? ' unseen' : ''}`;
		}));
	}
	like(reached.join(' '), /^#main .*\/queues.* queue .*state.* action on on .*pick next$/, 'the keyboard goes to the skip link, the pages, the form, the action, the rows');
	unlike(reached.join(' '), /unseen/, 'and shows where it is');
	await page.context().close();
}

await run(async () => {
	fill();
	web = await startWeb();
	cookie = cookieOf(await login(web, 'op'));
	await finds();
	await tasks();
	await buttons();
	await advice();
	await create();
	await rights();
	await foreign();
	await groups();
	await failures();
	await letters();
	await searches();
	await barriers();
	await looks();
	await web.stop();
});
