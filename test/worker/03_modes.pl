#!/usr/bin/perl
# 03_modes.pl
#	  Many at a time, many together, and commands that stay.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::Bin;
use Worker;
use Test::More;

start_server();

sub many { my ($queue, $n) = @_; sql("SELECT count(tq.enqueue('$queue', jsonb_build_object('number', i), retry => 3)) FROM generate_series(1, $n) i"); return; }
sub counts { my ($queue) = @_; return row("SELECT string_agg(state || ' ' || n, ', ' ORDER BY state) FROM (SELECT state, count(*) AS n FROM tq.task_overview WHERE task_queue_id = '$queue' GROUP BY state) x"); }

# ---- once, drain, jobs, queues ----

my $note = command('note', qq(echo "\$TQ_QUEUE" >>"$folder/noted"\n));
many('m/a', 3);
is(run_worker('-q', 'm/a', '--once', $note), 0, '--once ends with 0');
is(counts('m/a'), 'completed 1, pending 2', '... after one task');
my $w = begin('-q', 'm/once', '-1', $note);
said($w, qr/works on/);
many('m/once', 1);
is(end_of($w), 0, '... and waits for one');
is(run_worker('-q', 'm/a', '--drain', $note), 0, '--drain ends with 0');
is(counts('m/a'), 'completed 3', '... when all is done');
is(run_worker('-q', 'm/none', '--drain', $note), 0, '... and when there is nothing');
my $again = command('again', qq("$bin/psql" -Xqc "SELECT tq.enqueue('m/chain', '{}') WHERE \$TQ_LEFT > 0" >/dev/null\n));
{
	local $ENV{MARK} = 1;
	my $chain = command('chain', qq(read payload; n=\${payload#*: }; n=\${n%?}; [ "\$n" = 0 ] || "$bin/psql" -Xqc "SELECT tq.enqueue('m/chain', jsonb_build_object('n', \$n - 1))" >/dev/null\n));
	task('m/chain', '{"n": 5}');
	run_worker('-q', 'm/chain', '-D', $chain);
	is(counts('m/chain'), 'completed 6', '... also when commands create tasks');
}
unlink file('noted');
many('m/b', 2);
many('m/c', 2);
run_worker('-q', 'm/b', '-q', 'm/c', '-D', $note);
is(slurp(file('noted')), "m/b\nm/b\nm/c\nm/c\n", 'queues are an order of preference');
unlink file('noted');
many('m/low', 400);
$w = begin('-q', 'm/high', '-q', 'm/low', '-j', 2, $note);
sub noted { return split /\n/, slurp(file('noted')); }
wait_for { noted() > 20 } 'some of the second queue';
many('m/high', 5);
my $seen = noted();
ok(wait_for { grep({ $_ eq 'm/high' } noted()) == 5 } 'the first queue');
my @order = noted();
cmp_ok((grep { $order[$_] eq 'm/high' } 0 .. $#order)[-1], '<', $seen + 5 + 4, '... so that what comes to the first is next, while the second has plenty');
ok(scalar(@order) < 400, '... which it still has');
is(end_of($w, 'TERM'), 0, '... and the worker ends');
many('p/x', 1);
many('p/y', 1);
run_worker('-q', 'p/*', '-D', $note);
is(counts('p/x') . counts('p/y'), 'completed 1completed 1', 'a star is all queues of a provisioner');

my $meet = command('meet', qq(echo >"$folder/here.\$\$"; while [ "\$(ls "$folder" | grep -c '^here')" -lt 4 ]; do sleep 0.02; done\n));
many('m/jobs', 8);
is(run_worker('-q', 'm/jobs', '-j', '4', '-D', $meet), 0, '--jobs runs commands at the same time');
is(counts('m/jobs'), 'completed 8', '... and reports all');

# More descriptors than the worker was given, which its commands still have.
many('m/many', 30);
my $crowd = command('crowd', qq(ulimit -n >>"$folder/limits"; echo >"$folder/crowd.\$\$"; while [ "\$(ls "$folder" | grep -c '^crowd\\.')" -lt 30 ]; do sleep 0.1; done\n));
is(system('/bin/sh', '-c', "ulimit -S -n 64; exec '$worker' -q m/many -j 30 -D '$crowd' >/dev/null 2>'$folder/many.err'"), 0, 'more commands than it has descriptors for');
is(counts('m/many'), 'completed 30', '... run at the same time');
is(slurp(file('limits')), "64\n" x 30, '... with the limits that it was given');

# ---- batch ----

many('m/batch', 500);
is(run_worker('-q', 'm/batch', '-j', '2', '--batch', '100', '-D', '/bin/true'), 0, '--batch');
is(counts('m/batch'), 'completed 500', '... completes all');
is(row("SELECT count(DISTINCT started) <= 6 FROM tq.run_overview r JOIN tq.task_overview t USING (task_id) WHERE t.task_queue_id = 'm/batch'"), 't', '... and claims 100 in a call');
many('m/ahead', 50);
$w = begin('-q', 'm/ahead', '--batch', '50', command('wait', qq(while [ ! -e "$folder/wait.go" ]; do sleep 0.02; done\n)));
wait_until("count(*) = 50 FROM tq.task_overview WHERE task_queue_id = 'm/ahead' AND state = 'running'");
kill TERM => $w->{pid};
ok(wait_until("count(*) = 49 FROM tq.task_overview WHERE task_queue_id = 'm/ahead' AND state = 'pending'"), 'what was claimed ahead is given back at once');
spew(file('wait.go'), '');
is(end_of($w), 0, '... and what had begun ends');
is(counts('m/ahead'), 'completed 1, pending 49', '... and is completed');
task('m/mixed', $_) for '{"f": 1}', '{"f": 2}', '{"f": 3}';
run_worker('-q', 'm/mixed', '-b', '3', '-D', command('mixed', q(if [ "$1" = 2 ]; then printf 'result "' >&3; head -c 2000000 /dev/zero | tr '\0' x >&3; echo '"' >&3; fi)), '{payload.f}');
is(counts('m/mixed'), 'completed 2, failed 1', 'a report that is refused keeps back no other');

# ---- serve ----

my %code = map { /\A\S+ (serve\.\w+)/ ? ($1 => $_) : () } slurp("$tree/doc/worker.md") =~ /^```\w+\n(.*?)^```$/msg;
my %by = (py => 'python3', mjs => 'node', rb => 'ruby', pl => 'perl', sh => 'sh');
for my $suffix (sort keys %by)
{
	SKIP:
	{
		my ($program) = grep { -x } map { "$_/$by{$suffix}" } split /:/, $ENV{PATH};
		my $queue = "s/$suffix";

		skip "there is no $by{$suffix}", 3 if !$program;
		spew(file("serve.$suffix"), $code{"serve.$suffix"} // die "no serve.$suffix\n");
		many($queue, 20);
		my $bad = task($queue, '{"number": "a"}');
		is(run_worker('-q', $queue, '-j', '2', '--serve', '-D', $program, file("serve.$suffix")), 0, "--serve, $by{$suffix}");
		is(row("SELECT sum(tq.result(task_id)::text::int) FROM tq.task_overview WHERE task_queue_id = '$queue' AND task_id <> '$bad'"), 420, '... 20 results');
		cmp_ok(scalar(split /\n/, $code{"serve.$suffix"}), '<=', 17, '... of some 15 lines');
	}
}

# A command that says what its payload wants.
my $say = command('say', <<'SH');
while read -r line; do
	case $line in
		*'"say": "die"'*) echo last words >&2; exit 3 ;;
		*'"say": "end"'*) exit 0 ;;
		*'"say": "hang"'*) sleep 600 ;;
		*'"say": "bad"'*) echo 'this is no JSON' ;;
		*'"say": "two"'*) echo '{"completed": 1, "failed": 2}' ;;
		*'"say": "exception"'*) echo '{"exception": "resource-unavailable"}' ;;
		*'"say": "unknown"'*) echo '{"exception": "no-such-reason"}' ;;
		*'"say": "done"'*) echo '{"exception": "completed"}' ;;
		*'"say": "cancels"'*) echo '{"exception": "canceled"}' ;;
		*'"say": "nul"'*) printf '{"completed": 1}\0 and more\n' ;;
		*'"say": "long"'*) head -c 70000000 /dev/zero | tr '\0' x; echo ;;
		*'"say": "late"'*) echo starts; sleep 0.3; echo '{"completed": "late"}' ;;
		*'"say": "failed"'*) echo '{"failed": {"why": "so"}}' ;;
		*'"say": "defer"'*) echo '{"defer": "1 hour"}' ;;
		*'"say": "progress"'*) echo '{"progress": {"done": 1, "total": 2, "message": "half"}}'; echo '{"completed": null}' ;;
		*) echo '{"completed": {"a": "\u00e4"}}' ;;
	esac
done
SH
my %says = (die => 'failed failed', end => 'failed failed', bad => 'failed failed', two => 'failed failed', exception => 'exception resource-unavailable',
	unknown => 'failed failed', done => 'failed failed', cancels => 'failed failed', nul => 'failed failed', long => 'failed failed', late => 'failed failed', failed => 'failed failed', defer => 'pending', progress => 'completed completed', well => 'completed completed');
my %ids = map { $_ => task('s/say', qq({"say": "$_"})) } sort keys %says;
is(run_worker('-q', 's/say', '--serve', '-D', $say), 0, 'a command that stays says this and that');
is(state($ids{$_}), $says{$_}, "... $_") for sort keys %says;	# the run after late does not have its answer
is(row("SELECT tq.status('$ids{die}') #>> '{runDetails,-1,error,message}'"), 'last words', '... its last words are the error');
like(row("SELECT tq.status('$ids{done}') #>> '{runDetails,-1,error,message}'"), qr/"completed" is no reason of an exception; those are worker-shutdown, /, '... and what is no exception says which are');
is(row("SELECT tq.status('$ids{failed}') #>> '{runDetails,-1,error,why}'"), 'so', '... any JSON is an error');
is(row("SELECT tq.result('$ids{well}') ->> 'a'"), "\x{c3}\x{a4}", '... and a result');
is(row("SELECT tq.status('$ids{progress}') #>> '{runDetails,0,progress,message}'"), 'half', '... progress is shown');
$w = begin('-q', 's/say', '--serve', '--kill-after', '200ms', $say);
my $hang = task('s/say', '{"say": "hang"}');
wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%')");
sql("SELECT tq.cancel_task('$hang')");
my $next = task('s/say', '{"say": "well"}');
ok(wait_until("tq.status('$next') ->> 'state' = 'completed'"), 'a cancel ends a command that stays, which is started again');
is(state($hang), 'exception canceled', '... the task stays canceled');
is(end_of($w, 'TERM'), 0, 'the worker ends, and its commands with it');
$w = begin('-q', 's/crash', '--serve', command('crash', 'exit 1'));
said($w, qr/started again in 400 ms/);
is(() = slurp($w->{err}) =~ /started again/g, 3, 'a command that does not stay is started again, later each time');
is(end_of($w, 'TERM'), 0, '... and the worker ends');

many('s/single', 30);
is(run_worker('-q', 's/single', '-j', '2', '--serve', '-D', command('single', q(read -r line; echo '{"completed": 1}'))), 0, 'commands that end after each answer');
is(counts('s/single'), 'completed 30', '... fail no run that they have not begun');
is(row("SELECT max(run_id) FROM tq.run_overview JOIN tq.task_overview t USING (task_id) WHERE t.task_queue_id = 's/single'"), 0, '... and give none back');

many('s/closes', 3);
is(run_worker('-q', 's/closes', '--serve', '-D', command('closes', q(read -r line; exec <&-; sleep 0.2; echo '{"completed": 1}'; sleep 600))), 0, 'one that reads no more when it has its line');
is(counts('s/closes'), 'completed 3', '... answers, and is started again');

# A command that cannot be kept keeps no claims.
unlink file('ready');
$w = begin('-q', 's/kept', '--serve', '--batch', '10', command('kept', qq([ -e "$folder/ready" ] || exit 1; while read -r line; do echo '{"completed": 1}'; done)));
many('s/kept', 3);
said($w, qr/started again in 800 ms/);
ok(wait_until("count(*) = 3 FROM tq.task_overview WHERE task_queue_id = 's/kept' AND state = 'pending'"), 'a command that does not stay keeps no claims');
is(row("SELECT min((tq.status(task_id) ->> 'retriesLeft')::int) FROM tq.task_overview WHERE task_queue_id = 's/kept'"), 3, '... and spends no retries');
spew(file('ready'), '');
ok(wait_until("count(*) = 3 FROM tq.task_overview WHERE task_queue_id = 's/kept' AND state = 'completed'"), '... whose tasks are completed when it does');
cmp_ok(row("SELECT max(run_id) FROM tq.run_overview JOIN tq.task_overview t USING (task_id) WHERE t.task_queue_id = 's/kept'"), '<', 4, '... after few runs');
end_of($w, 'TERM');
my $busy = command('busy', qq(echo \$\$ >"$folder/busy.pid"; while read -r line; do sleep 600; done));
$w = begin('-q', 's/busy', '--serve', '--batch', '10', $busy);
many('s/busy', 3);
ok(wait_until("count(*) = 3 FROM tq.task_overview WHERE task_queue_id = 's/busy' AND state = 'running'"), 'a worker has claimed ahead');
unlink $busy;
kill KILL => slurp(file('busy.pid')) =~ /(\d+)/;
ok(wait_until("count(*) = 3 FROM tq.task_overview WHERE task_queue_id = 's/busy' AND state = 'pending'"), 'a command that cannot be started keeps no claims');
end_of($w, 'TERM');
my $deaf = command('deaf', qq(while [ ! -e "$folder/deaf.go" ]; do sleep 0.02; done; exec <&-; sleep 600));
$w = begin('-q', 's/deaf', '--serve', '--batch', '2', $deaf);
many('s/deaf', 2);
wait_until("count(*) = 2 FROM tq.task_overview WHERE task_queue_id = 's/deaf' AND state = 'running'");
spew(file('deaf.go'), '');
ok(wait_until("EXISTS (SELECT FROM tq.run_overview JOIN tq.task_overview t USING (task_id) WHERE t.task_queue_id = 's/deaf' AND reason_resolved = 'worker-shutdown')"), 'nor does one that reads nothing more');
end_of($w, 'TERM');

my $sizes = command('sizes', <<'PL');
#!/usr/bin/perl
$| = 1;
while (my $line = <STDIN>)
{
	my ($text) = $line =~ /"text": "(x*|abc)"}}$/;
	my ($client) = $line =~ /"credentials": \{(?=[^}]*"certificate")[^}]*"clientId": "([^"]*)"/;
	printf qq({"completed": [%d, %s]}\n), length $text, $client ? qq("$client") : 'null';
}
PL
my $large = row("SELECT tq.enqueue('s/large', jsonb_build_object('text', repeat('x', 16 * 1024 * 1024 - 100)))");
is(run_worker('-q', 's/large', '--serve', '-D', $sizes), 0, 'a payload of 16 MB in a line');
is(row("SELECT tq.result('$large')"), '[' . (16 * 1024 * 1024 - 100) . ', null]', '... is read as a whole');
sql("SELECT tq.rerun_task('$large')");
is(run_worker('-q', 's/large', '--serve', '-D', command('little', 'head -c 10 >/dev/null')), 0, '... by a command that reads little of it, and ends');
is(state($large), 'failed failed', '... which fails');
sql("ALTER DATABASE postgres SET tq.credentials = 'on'");
my $secret = task('s/large', '{"text": "abc"}');
run_worker('-q', 's/large', '--serve', '-D', $sizes);
is(row("SELECT tq.result('$secret') ->> 0"), 3, 'a run with credentials');
is(row("SELECT tq.result('$secret') ->> 1 LIKE '%$secret%'"), 't', '... is given them');
sql('ALTER DATABASE postgres RESET tq.credentials');
many('s/batch', 1000);
is(run_worker('-q', 's/batch', '--serve', '--batch', '100', '-j', '2', '-D', 'python3', file('serve.py')), 0, '--serve --batch');
is(counts('s/batch'), 'completed 1000', '... completes all');

done_testing();
