#!/usr/bin/perl
# workers.pl
#	  Disturbs the workers of doc/clients.md and test/demo-worker.
#
#	  test/workers.pl [TREE]	PG_CONFIG says which server to start; prints TAP
#
# The programs run as they stand, but that their work says when it begins, and
# does something else where a payload has code.  Each has a database of its own, on
# a server that the test starts and restarts.  A program whose client for PostgreSQL
# is missing is skipped; TQ_WITHOUT_NODE gives the reason for those in JavaScript.
#
# What is shown: SIGTERM at any moment leaves no run claimed, and nothing on stderr.
# A cancel stops the work.  Sessions that are terminated and a server that is
# restarted are survived.  Errors and results are reported whatever they are.
use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use FindBin;
use lib "$FindBin::Bin/worker";
use POSIX qw(:sys_wait_h);
use Test::More;
use Time::HiRes qw(sleep time);
use Worker qw($bin $folder pg_ctl slurp spew start_server);	# node looks for modules beside the folder, too

my $tree = abs_path(shift // dirname(__FILE__) . "/..");
my $patience = 60;				# seconds, until a test fails
my $nap = 86400 + $$ / 1e7;		# seconds, which no other command sleeps

sub rows
{
	my ($database, $sql) = @_;

	open my $psql, '-|', "$bin/psql", '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $database, '-c', $sql or die "psql: $!";
	my @rows = <$psql>;
	close $psql or die "$sql\n";
	chomp @rows;
	return wantarray ? @rows : $rows[0];
}

sub is_true { return (eval { rows(@_) } // '') eq 't'; }

sub wait_until
{
	my ($database, $condition) = @_;
	my $end = time + $patience;

	until (is_true($database, "SELECT $condition"))
	{
		return 0 if time > $end;
		sleep 0.1;
	}
	return 1;
}

# ---- the programs ----

my %code = map { /\A\S+ (\w+\.\w+)/ ? ($1 => $_) : () } slurp("$tree/doc/clients.md") =~ /^```(?:python|js)\n(.*?)^```$/msg;
my %kind = (
	python => { command => [ '/usr/bin/python3', "$folder/worker.py" ], queue => 'shop/resize', kills => 200, at_once => 8,
		quick => '{"picture": 1, "seconds": 0.002}', long => '{"picture": 1, "seconds": 600}' },
	node => { command => [ 'node', "$folder/worker.mjs" ], queue => 'shop/resize', kills => 100, at_once => 6,
		quick => '{"picture": 1, "seconds": 0.002}', long => '{"picture": 1, "seconds": 600}' },
	many => { command => [ '/usr/bin/python3', "$folder/many.py" ], queue => 'shop/fetch', kills => 24, at_once => 4,
		quick => '{"picture": 1, "seconds": 0.002}', long => '{"picture": 1, "seconds": 600}' },
	render => { command => [ '/usr/bin/python3', "$folder/render.py" ], queue => 'shop/render', kills => 40, at_once => 6,
		quick => '{"command": ["sh", "-c", "echo work; sleep NAP & sleep 0.002"]}', long => '{"command": ["sleep", "NAP"]}',
		unknown => '{"command": ["no-such-command"]}' },
	bash => { command => [ "$tree/test/demo-worker", 'shop/sh', 'eu' ], queue => 'shop/sh', kills => 40, at_once => 4,
		quick => '{"command": "sleep 0.002"}', long => '{"command": "sleep NAP"}', unknown => '{"command": "no-such-command"}' });
my @kinds = qw(python many node render bash);

# What the work of a program does first.
my %first = (
	'worker.py' => qq{    if "code" in payload:\n        return eval(payload["code"])\n    print("work", flush=True)\n},
	'many.py' => qq{    if "code" in payload:\n        return eval(payload["code"])\n    print("work", flush=True)\n},
	'worker.mjs' => qq{  if (payload.code) return eval(payload.code)\n  console.log('work')\n});

# Writes the programs to the folder.
sub write_programs
{
	for my $name (keys %code)
	{
		my $begin = $first{$name};

		!defined $begin or $code{$name} =~ s/^(?=.*payload\W+seconds)/$begin/m or die "$name has no work\n";
		spew("$folder/$name", $code{$name});
	}
}

# Returns why a kind cannot run here, or undef.
sub reason_without
{
	my ($kind) = @_;

	return system('/usr/bin/python3 -c "import psycopg" 2>/dev/null') ? 'python3 has no module psycopg' : undef if $kind =~ /python|many|render/;
	return undef if $kind eq 'bash';
	return $ENV{TQ_WITHOUT_NODE} if $ENV{TQ_WITHOUT_NODE};
	return system("cd '$folder' && node --input-type=module -e \"import 'pg'\" 2>/dev/null") ? 'node has no module pg' : undef;
}

# Starts a worker of a kind; what it prints can be read from { out }.
sub begin
{
	my ($kind, $name) = @_;
	my $err = "$folder/err.$name";
	my $pid = open(my $out, '-|') // die "fork: $!";

	if ($pid == 0)
	{
		open STDERR, '>', $err or die "$err: $!";
		$ENV{PGDATABASE} = $kind;
		exec @{ $kind{$kind}{command} } or POSIX::_exit(127);
	}
	return { pid => $pid, out => $out, err => $err };
}

# Ends a worker by SIGTERM.  Returns what is wrong with that.
sub finish
{
	my ($worker, $limit) = @_;
	my $end = time + $limit;
	my $gone;

	kill 'TERM', $worker->{pid};
	until (($gone = waitpid $worker->{pid}, WNOHANG) || time > $end)
	{
		sysread $worker->{out}, my $read, 65536 if bits($worker->{out}, 0.005);
	}
	return $? == 0 ? () : "ends with status $?" if $gone;
	kill 'KILL', $worker->{pid};
	waitpid $worker->{pid}, 0;
	return "does not end in $limit s";
}

# Returns whether a file can be read within a time.
sub bits
{
	my ($file, $seconds) = @_;
	my $set = '';

	vec($set, fileno $file, 1) = 1;
	return (select $set, undef, undef, $seconds) > 0;
}

# ---- SIGTERM ----

sub fill
{
	my ($kind, $payload, $n) = @_;

	$payload =~ s/NAP/$nap/;
	rows($kind, "SELECT cardinality(tq.enqueue_tasks('$kind{$kind}{queue}', array_fill('$payload'::jsonb, ARRAY[$n])))");
}


# One after the other, workers that are ended soon after their first task has begun.
sub end_workers
{
	my ($kind, $name, $n) = @_;
	my @wrong;

	srand $$;
	for (1 .. $n)
	{
		my $worker = begin($kind, $name);
		my $begun = bits($worker->{out}, 30) && sysread $worker->{out}, my $read, 65536;

		sleep rand 0.03;
		push @wrong, $begun ? () : 'does not begin', finish($worker, 20);
		push @wrong, slurp($worker->{err}) if -s $worker->{err};
	}
	return @wrong;
}

# Several at once, each of which mostly starts.
sub storm
{
	my ($kind) = @_;
	my ($kills, $at_once) = @{ $kind{$kind} }{qw(kills at_once)};
	my @children;

	fill($kind, $kind{$kind}{quick}, 5000) for 1 .. 2;
	for my $i (1 .. $at_once)
	{
		my $pid = fork // die "fork: $!";

		if ($pid == 0)
		{
			my @wrong = end_workers($kind, "$kind$i", int(($kills + $at_once - 1) / $at_once));
			spew("$folder/storm.$kind$i", join '', map { "$_\n" } @wrong);
			POSIX::_exit(0);
		}
		push @children, $pid;
	}
	waitpid $_, 0 for @children;
	is(join('', map { slurp("$folder/storm.$kind$_") } 1 .. $at_once), '', "$kind: workers that are ended have nothing to say");
	is(rows($kind, q{SELECT count(*) FROM tq.task_overview WHERE state = 'running'}), 0, "$kind: no run stays claimed");
	is(join(' ', rows($kind, q{SELECT DISTINCT reason_resolved FROM tq.run_overview WHERE state IN ('failed', 'exception')})),
		'worker-shutdown', "$kind: tasks were given back, and none failed");
	is(join(' ', commands_left()), '', "$kind: no command is left") if $kind ne 'node';
	rows($kind, "CALL tq.cancel_tasks('$kind{$kind}{queue}')");
}

# The commands of tasks, which take a time that no other command takes.
sub commands_left
{
	return grep { (eval { slurp("/proc/$_/cmdline") } // '') eq "sleep\0$nap\0" } map { m{(\d+)$} } glob '/proc/[0-9]*';
}

# ---- disturbances ----

sub enqueue
{
	my ($kind, $payload) = @_;

	$payload =~ s/NAP/$nap/;
	return rows($kind, "SELECT tq.enqueue('$kind{$kind}{queue}', \$\$$payload\$\$)");
}


# A worker goes on after a cancel, also of a task that no other would end.
sub cancel
{
	my ($kind) = @_;
	my $long = enqueue($kind, $kind{$kind}{long});

	ok(wait_until($kind, "tq.status('$long') ->> 'state' = 'running'"), "$kind: a long task begins");
	sleep 2.5;				# it is reclaimed by now
	rows($kind, "SELECT tq.cancel_task('$long')");
	my $quick = enqueue($kind, $kind{$kind}{quick});
	ok(wait_until($kind, "tq.status('$quick') ->> 'state' = 'completed'"), "$kind: a cancel stops the work");
	is(join(' ', commands_left()), '', "$kind: and its command") if $kind =~ /render|bash/;
	return unless $kind{$kind}{unknown};
	$quick = enqueue($kind, $kind{$kind}{unknown});
	ok(wait_until($kind, "tq.status('$quick') ->> 'state' = 'failed'"), "$kind: a command that does not exist fails");
	return if $kind ne 'bash';
	is(rows($kind, "SELECT tq.get_artifact('$quick', 0, 'public/logs/live.log') ->> 'content' LIKE '%exit code 127%'"), 't', "$kind: and leaves its log");
}

# Tasks are done while sessions are terminated, and the server is restarted.
sub disturb
{
	my (@of) = @_;

	for my $kind (@of)
	{
		# An answer of claim_work that is lost costs the time of a claim.
		rows($kind, "SELECT tq.set_queue('$kind{$kind}{queue}', '{\"claimTimeout\": 5}')");
		fill($kind, $kind{$kind}{quick} =~ s/0\.002/0.02/r, 200);
	}
	for (1 .. 10)
	{
		sleep 0.2;
		rows('postgres', q{SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
	}
	fill($_, $kind{$_}{quick}, 20) for @of;
	pg_ctl('restart', '-m', $_) for 'fast', 'immediate';
	for my $kind (@of)
	{
		ok(wait_until($kind, q{NOT EXISTS (SELECT FROM tq.task_overview WHERE state IN ('pending', 'running'))}),
			"$kind: terminated sessions and a restart are survived");
	}
}

# What a program's work says and returns is reported, whatever it is.
sub report_anything
{
	my ($kind, %expected) = @_;

	for my $code (sort keys %expected)
	{
		my $task = enqueue($kind, qq({"picture": 1, "seconds": 0, "code": "$code"}));

		ok(wait_until($kind, "tq.status('$task') ->> 'state' IN ('completed', 'failed')"), "$kind: $code ends");
		like(rows($kind, "SELECT concat_ws(' ', tq.status('$task') ->> 'state', left(tq.result('$task')::text, 50),
			(SELECT left(error ->> 'message', 30) || right(error ->> 'message', 10) FROM tq.run_overview WHERE task_id = '$task'))"), $expected{$code}, "$kind: $code");
	}
}

my %anything = (
	python => { q{raise_('a\\\\0b')} => qr/^failed ValueError: ab/, q{raise_('a\\\\ud800b')} => qr/^failed ValueError: a\?b/,
		q{raise_('x' * 100000)} => qr/^failed ValueError: xxx.* \[cut\]$/, q{[1, 2]} => qr/^completed \[1, 2\]$/, q{'text'} => qr/^completed "text"$/,
		q{'\\\\0'} => qr/^failed/, q{'\\\\ud800'} => qr/^failed/, q{object} => qr/^failed TypeError/, q{'x' * 2000000} => qr/^failed/,
		q{exit(3)} => qr/^failed SystemExit: 3/ },
	node => { q{raise_('a\\\\0b')} => qr/^failed ab/, q{raise_('a\\\\ud800b')} => qr/^failed a.*b/,
		q{raise_('x'.repeat(100000))} => qr/^failed xxx.* \[cut\]$/, q{[1, 2]} => qr/^completed \[1, 2\]$/, q{'text'} => qr/^completed "text"$/,
		q{'\\\\0'} => qr/^failed/, q{'\\\\ud800'} => qr/^failed/, q{10n} => qr/^failed/, q{'x'.repeat(2000000)} => qr/^failed/ });

# ---- all of it ----

$code{'worker.py'} =~ s/^(?=def work)/def raise_(text):\n    raise ValueError(text)\n\n/m;
$code{'many.py'} =~ s/^(?=async def work)/def raise_(text):\n    raise ValueError(text)\n\n/m;
$code{'many.py'} =~ s/^CLAIM = 30/CLAIM = 5/m or die "many.py has no CLAIM\n";
$code{'worker.mjs'} =~ s/^(?=async function work)/function raise_ (text) { throw new Error(text) }\n/m;
write_programs();
my %without = map { $_ => reason_without($_) } @kinds;
my @of = grep { !$without{$_} } @kinds;
start_server();
for my $kind (@of)
{
	rows('postgres', "CREATE DATABASE $kind");
	rows($kind, 'CREATE EXTENSION tq');
}
for my $kind (@kinds)
{
SKIP:
	{
		skip "$kind: $without{$kind}", 1 if $without{$kind};
		my $begin = time;
		storm($kind);
		note(sprintf "%s: %.0f s", $kind, time - $begin);
	}
}
$anything{many} = { map { $_ => $anything{python}{$_} } grep { !/^exit/ } keys %{ $anything{python} } };
my %worker = map { $_ => begin($_, $_) } @of;
cancel($_) for @of;
report_anything($_, %{ $anything{$_} // {} }) for @of;
disturb(@of);
for my $kind (@of)
{
	is(join(' ', finish($worker{$kind}, 20)), '', "$kind: the same worker has done all, and ends at SIGTERM");
	unlike(slurp($worker{$kind}{err}), qr/Traceback|^\s+at /m, "$kind: without a traceback");
}
done_testing();
