// 11_long.mjs: pages that stay open for as many changes as a week brings: neither the program nor its
// connections grow.  A page is made again once a second at most, so that many are open.
//
// TQ_WEB_UPDATES says how many are made in all (4000).  The most memory in the second half of them is compared
// with the most in the first: what only caches, and begins late, is not taken for growth.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { is, ok, run, sql, startWeb, unlike, until } from './web.mjs';

const updates = Number(process.env.TQ_WEB_UPDATES ?? 4000);
const slack = Number(process.env.TQ_WEB_MEMORY ?? 1) > 1 ? 300000 : 2048;	// kB; a sanitizer keeps what was freed
const roles = ['op', 'reader', 'team'];

// own(PID): the memory of a process that is not shared, in kB.
const own = pid => Number(readFileSync(`/proc/${pid}/status`, 'utf8').match(/RssAnon:\s+(\d+)/)[1]);
const backends = () => sql("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tq-web%' ORDER BY pid").split('\n');

function follow(web, role, path) {
	const stream = { updates: 0 };
	const request = http.get(`${web.url}/live?path=${encodeURIComponent(path)}`, { headers: { 'X-Role': role }, agent: false }, answer => {
		answer.setEncoding('utf8').on('data', part => { stream.updates += part.split('event: good').length - 1; });
		answer.on('close', () => { stream.ended = true; });
	});
	request.on('error', () => { stream.ended = true; });
	stream.end = () => request.destroy();
	return stream;
}

run(async () => {
	sql("SELECT tq.enqueue('team/long')");
	const web = await startWeb('--role-header', 'X-Role', '--trust', '127.0.0.1');
	const streams = [];
	for (const role of roles) {
		for (let i = 0; i < 40; i++) streams.push(follow(web, role, `/workers?x=${i}`));
		await until(() => streams.every(({ updates: n }) => n > 0), `${streams.length} pages are open`);
	}
	const all = () => streams.reduce((sum, { updates: n }) => sum + n, 0);
	const change = async () => sql("SELECT tq.enqueue('team/long'); SELECT count(*) FROM tq.claim_work('team/long', 'eu', 'host-1', 1)");
	const reached = async n => { await change(); return all() >= n; };
	await until(() => streams.every(({ updates: n }) => n > 0), `${streams.length} pages are open`);
	const half = async first => {
		const most = { program: 0, connection: 0 };
		for (let i = first; i < first + 5; i++) {
			await until(() => reached(i * updates / 10), `and are made again, ${i * updates / 10} times`);
			most.program = Math.max(most.program, own(web.pid));
			most.connection = Math.max(most.connection, ...backends().map(own));
		}
		return most;
	};
	const [earlier, later] = [await half(1), await half(6)];
	ok(later.program < earlier.program + slack, `the program has the memory that it had: ${earlier.program} and ${later.program} kB`);
	ok(later.connection < earlier.connection + slack, `and so have its connections: ${earlier.connection} and ${later.connection} kB`);
	is(streams.filter(({ ended }) => ended).length, 0, 'no stream has ended');
	for (const stream of streams) stream.end();
	await until(() => sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tq-web%' AND state <> 'idle'") === '0', 'nothing is asked for when they are gone');
	is(await web.stop(), 0, 'the program ends');
	unlike(web.lines, /Sanitizer|runtime error/, 'and nothing was wrong');
});
