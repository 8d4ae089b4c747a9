#!/usr/bin/perl
# 01_command.pl
#	  A task is a process: what it is given, what it says, how it ends.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::Bin;
use Worker;
use Test::More;

start_server();

# ---- what a command is given ----

my $show = command('show', <<'SH');
cat >"$1.stdin"
env | grep ^TQ_ | sort >"$1.env"
shift
printf '<%s>' "$@" >"$TQ_SHOWN"
SH
$ENV{TQ_SHOWN_BY} = 'worker';		# not for the command
my $shown = command('shown', "#!/bin/sh\nTQ_SHOWN='$folder/arguments' exec '$show' \"\$@\"\n");
my $id = task('t/show', '{"file": "a b;$(id)", "deep": {"x": [1, "zwei"]}, "uml": "ä"}', name => "'resize'", deadline => "'1 day'",
	tags => q('{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}'), retry => 3);
is(run_worker('-q', 't/show', '--drain', '--', $shown, file('seen'), '{payload.file}', 'x={payload.deep.x.1}!', '{payload.deep}', '{other}', '{payload'), 0, 'a worker that drains ends with 0');
is(state($id), 'completed completed', 'exit status 0 is completed');
is(row(q{SELECT '} . slurp(file('seen.stdin')) . q{'::jsonb = tq.task('} . $id . q{') -> 'payload'}), 't', 'standard input is the payload');
is(slurp(file('arguments')), '<a b;$(id)><x=zwei!><{"x": [1, "zwei"]}><{other}><{payload>', 'arguments name fields of the payload, and no shell reads them');
task('t/quote', q({"$9": "nine", "it's $8": "eight", "a\\\\b\\"": "odd"}));
is(run_worker('-q', 't/quote', '-D', $shown, file('quote'), '{payload.$9}', "{payload.it's \$8}", '{payload.a\\b"}'), 0, 'a field may have any name');
is(slurp(file('arguments')), '<nine><eight><odd>', '... and is no parameter of a statement');
my %env = slurp(file('seen.env')) =~ /^(TQ_\w+)=(.*)$/mg;
is($env{TQ_TASK_ID}, $id, 'TQ_TASK_ID');
is("$env{TQ_RUN_ID} $env{TQ_QUEUE} $env{TQ_NAME} $env{TQ_ATTEMPT} $env{TQ_TRACEPARENT}", '0 t/show resize 0 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'the other variables');
is(row("SELECT '$env{TQ_DEADLINE}'::timestamptz = (tq.task('$id') ->> 'deadline')::timestamptz AND '$env{TQ_TAKEN_UNTIL}'::timestamptz > now()"), 't', 'TQ_DEADLINE and TQ_TAKEN_UNTIL are times');
ok(!exists $env{TQ_SHOWN_BY}, 'no other variable of that name is handed on');
ok(!exists $env{TQ_CREDENTIALS_FILE}, 'there is no file of credentials without credentials');

$id = task('t/show', '{"no": "file"}');
run_worker('-q', 't/show', '-D', $show, file('seen'), '{payload.file}');
is(state($id), 'exception malformed-payload', 'a payload without a field that an argument names is malformed');
$id = row("SELECT tq.enqueue('t/long', jsonb_build_object('x', repeat('x', 140000)))");
my $short = task('t/long', '{"x": 1}');
my $long = begin('-q', 't/long', '-D', 'true', '{payload.x}');
is(end_of($long), 0, 'a field that is too long for an argument');
is(state($id), 'exception malformed-payload', '... is malformed');
like(row("SELECT tq.status('$id') #>> '{runDetails,-1,error,message}'"), qr/has 140000 bytes: the system takes \d+ in an argument/, '... which its error says');
is(state($short), 'completed completed', '... and keeps back no other task');

my %odd = ('a b' => 'space', q(it's) => 'quote', 'say "so"' => 'quotes', 'back\\slash' => 'backslash', '' => 'empty', '$9' => 'dollar', 'a,b{' => 'comma', '%s' => 'percent',
	"\xc3\xa4" => 'umlaut', 7 => 'number');
my @odd = sort keys %odd;
my $payload = '{' . join(', ', map { '"' . s/(["\\])/\\$1/gr . qq(": "$odd{$_}") } @odd) . ', "list": [[1, 2], {"x": false}], "number": 1.50, "none": null, "long": "' . 'x' x 100_000 . '"}';
$id = task('t/odd', $payload);
my $args = command('args', qq(printf '%s|' "\$@" >"$folder/args"\n));
is(run_worker('-q', 't/odd', '-D', $args, map({ "{payload.$_}" } @odd), '{payload.list.0.1}{payload.list.1.x}{payload.list.-1}', '{payload.number}', '--'), 0, 'fields with any name');
is(slurp(file('args')), join('', map { "$odd{$_}|" } @odd) . '2false{"x": false}|1.50|--|', '... are arguments');
$id = task('t/odd', $payload);
run_worker('-q', 't/odd', '-D', command('whole', qq(printf '%s' "\$1" >"$folder/whole"; printf '%s' "\$2" | wc -c >"$folder/size"\n)), '{payload}', '{payload.long}');
is(row("SELECT count(*) FROM jsonb_object_keys('" . slurp(file('whole')) =~ s/'/''/gr . "')"), @odd + 4, '{payload} is all of it');
is(slurp(file('size')) + 0, 100_000, 'a long value is whole');
$id = task('t/odd', $payload);
run_worker('-q', 't/odd', '-D', $args, '{payload.none}');
is(state($id), 'exception malformed-payload', 'null is no value');

# ---- credentials ----

my $secret = command('secret', <<"SH");
stat -L -c %a "\$TQ_CREDENTIALS_FILE" >$folder/mode
cat "\$TQ_CREDENTIALS_FILE" >$folder/credentials
echo "\$TQ_CREDENTIALS_FILE" >$folder/where
echo progress 1 2 >&3
[ ! -e $folder/hold ] || { echo >$folder/held; sleep 60; }
SH
sql("ALTER DATABASE postgres SET tq.credentials = 'on'");
$id = task('t/secret', '{}');
run_worker('-q', 't/secret', '-D', $secret);
is(state($id), 'completed completed', 'a run with credentials is reported with them');
is(slurp(file('mode')), "600\n", 'only the user can read the file of credentials');
is(row(q{SELECT '} . slurp(file('credentials')) . q{'::jsonb ? 'certificate'}), 't', 'it has the credentials of the run');
ok(!-e slurp(file('where')) =~ s/\n//r, 'it is removed');
spew(file('hold'), '');
$id = task('t/secret', '{}');
my $held = begin('-q', 't/secret', $secret);
wait_for { -e file('held') } 'the command';
ok(-e slurp(file('where')) =~ s/\n//r, 'it is there while the command runs');
end_of($held, 'KILL');
ok(!-e slurp(file('where')) =~ s/\n//r, '... and not when the worker is killed');
sql("SELECT tq.cancel_task('$id')");
sql('ALTER DATABASE postgres RESET tq.credentials');

# ---- exit statuses ----

my %ends = (0 => 'completed completed', 1 => 'failed failed', 65 => 'exception malformed-payload', 69 => 'exception resource-unavailable',
	70 => 'exception internal-error', 75 => 'pending', 64 => 'failed failed', 78 => 'failed failed', 126 => 'failed failed', 127 => 'failed failed',
	137 => 'failed failed', 255 => 'failed failed');
my $status = command('status', 'exit $1');
for my $code (sort { $a <=> $b } keys %ends)
{
	$id = task('t/status', "{\"code\": $code}");
	run_worker('-q', 't/status', '--once', $status, '{payload.code}');
	is(state($id) =~ s/^pending.*/pending/r, $ends{$code}, "exit status $code");
	sql("SELECT tq.cancel_task('$id')") if $code == 75;
}
is(row("SELECT e ->> 'message' || ' ' || (e #>> '{details,exitStatus}') FROM (SELECT tq.status('$id') #> '{runDetails,-1,error}') x (e)"), 'exit status 255 255', 'the status is the error of a command that says nothing');
$id = task('t/status', '{"code": 127}');
run_worker('-q', 't/status', '-D', $status, '{payload.code}');
is(row("SELECT tq.status('$id') #>> '{runDetails,-1,error,details,exitStatus}'"), 127, '... also 127 of a command that did begin');
$id = task('t/signal', '{}');
run_worker('-q', 't/signal', '-D', command('signal', 'kill -SEGV $$'));
is(row("SELECT e ->> 'message' || ' ' || (e #>> '{details,signal}') FROM (SELECT tq.status('$id') #> '{runDetails,-1,error}') x (e)"), 'SIGSEGV SIGSEGV', 'a signal has its name');
$id = task('t/lines', '{}');
run_worker('-q', 't/lines', '-D', command('lines', 'seq 1 3000 >&2; printf "last \377 line\n" >&2; exit 3'));
my $error = row("SELECT replace(tq.status('$id') #>> '{runDetails,-1,error,message}', E'\\n', '|')");
like($error, qr/^\d+\|.*\|3000\|last \? line$/, 'the error is the last whole lines of standard error');
ok(length $error < 4100, 'within a bound');

# ---- descriptor 3 ----

spew(file('text'), "some text\n");
spew(file('binary'), "\0\377\1");
$id = task('t/three', '{}');
my $three = begin('-q', 't/three', '-D', command('three', <<"SH"));
exec 4>&3
echo 'progress 3 10 three of ten' >&3
echo 'progress x' >&3
echo 'result {"a": [1, 2' >&3
echo 'result {"a": [1, 2.5e3, "\\u00e4", null, true]}' >&3
echo 'result {"b": 1}}' >&3
echo 'artifact text text/plain $folder/text' >&3
echo 'artifact binary application/octet-stream $folder/binary' >&3
echo 'artifact away text/html https://example.com/x' >&3
echo 'artifact gone text/plain $folder/no-such-file' >&3
echo 'artifact x' >&3
printf '\\377\\376\\n\\n\\0\\n' >&3
head -c 300000 /dev/urandom >&3
SH
is(end_of($three), 0, 'garbage on descriptor 3 ends no worker');
is(state($id), 'completed completed', '... and no run');
is(row("SELECT tq.result('$id')"), '{"a": [1, 2500, "ä", null, true]}', 'the last result that is JSON is kept');
is(row("SELECT concat_ws(' ', p ->> 'done', p ->> 'total', p ->> 'message') FROM (SELECT tq.status('$id') #> '{runDetails,0,progress}') x (p)"), '3 10 three of ten', 'progress is shown');
is(row("SELECT tq.get_artifact('$id', 0, 'text') ->> 'content'"), 'some text', 'a file of text is an artifact');
is(row("SELECT tq.get_artifact('$id', 0, 'binary') #>> '{content,base64}'"), 'AP8B', 'another one in base64');
is(row("SELECT tq.get_artifact('$id', 0, 'away') ->> 'url'"), 'https://example.com/x', 'an address is a reference');
is(row("SELECT storage_type FROM tq.list_artifacts('$id', 0) WHERE name = 'gone'"), 'error', 'a file that is missing is an error');
like(slurp($three->{err}), qr/a line on descriptor 3 is malformed: progress x/, 'a malformed line is logged');

$id = task('t/error', '{}');
run_worker('-q', 't/error', '-D', command('error', 'echo noise >&2; echo "error what I mean" >&3; exit 1'));
is(row("SELECT tq.status('$id') #>> '{runDetails,-1,error,message}'"), 'what I mean', 'a line of error wins');
$id = task('t/defer', '{}');
run_worker('-q', 't/defer', '-D', command('defer', 'echo "defer 1 hour" >&3; exit 1'));
is(state($id), 'pending', 'a run is deferred');
is(row("SELECT (tq.status('$id') #>> '{runDetails,-1,visibleAt}')::timestamptz > now() + interval '50 minutes' AND (tq.status('$id') ->> 'retriesLeft')::int = 5"), 't', '... for that time, and spends no retry');
$id = task('t/defer2', '{}');
run_worker('-q', 't/defer2', '-D', command('defer2', 'echo "defer soon" >&3; exit 1'));
is(state($id), 'failed failed', 'a delay that is no interval is ignored');
$id = task('t/large', '{}');
run_worker('-q', 't/large', '-D', command('large', 'printf "result \"" >&3; head -c 3000000 /dev/zero | tr "\0" x >&3; echo "\"" >&3'));
is(state($id), 'failed failed', 'a result that is too large makes a failure');
isnt(row("SELECT tq.status('$id') #>> '{runDetails,-1,error,message}'"), '', '... that says so');

# ---- output ----

$id = task('t/out', '{}');
my $out = begin('-q', 't/out', '-D', command('out', 'echo one; echo two >&2; printf three'));
end_of($out);
is(slurp($out->{out}), "$id/0 one\n$id/0 three\n", 'output has task and run before each line');
like(slurp($out->{err}), qr{^\Q$id\E/0 two$}m, 'standard error as well');
$id = task('t/log', '{}');
my $log = begin('-q', 't/log', '-D', '--log', '--log-limit', '2000B', command('log', 'seq 1 100000; echo end >&2; exit 1'));
end_of($log);
my $text = row("SELECT replace(tq.get_artifact('$id', 0, 'log') ->> 'content', E'\\n', '|')");
like($text, qr/^1\|2\|3.*\|\.\.\. \[\d+ bytes cut\]\|.*\|100000\|end\|$/, '--log keeps the output as an artifact, cut in the middle');
ok(length $text < 2100, 'within its bound');
is(slurp($log->{out}), '', '... and prints nothing');
$id = task('t/json', '{}');
$out = begin('-q', 't/json', '-D', '--log-format', 'json', command('json', 'printf "a \"quote\"\n"'));
end_of($out);
is(row("SELECT concat_ws(' ', l ->> 'level', l ->> 'task', l ->> 'run', l ->> 'message') FROM (SELECT '" . slurp($out->{out}) . "'::jsonb) x (l)"), "stdout $id 0 a \"quote\"", '--log-format json');

done_testing();
