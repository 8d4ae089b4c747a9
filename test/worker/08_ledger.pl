#!/usr/bin/perl
# 08_ledger.pl
#	  10,000 tasks, while workers, commands, connections and the server are killed: each is
#	  done, and none twice at a time.
#
# A command holds a lock of its task for 5 to 50 ms, some for longer than a claim lasts, and notes
# that it has had it.  Half of the workers start it for each task, the others have it stay.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::Bin;
use Worker;
use Test::More;
use Time::HiRes qw(time);

my $tasks = $ENV{TQ_LEDGER} // 10_000;
my $seed = $ENV{TQ_SEED} // time % 100_000;
start_server();
srand $seed;

my $work = command('work', <<"PL");
#!/usr/bin/perl
sub work
{
	open my \$lock, '>>', "$folder/locks/\$_[0]";
	note('twice', \$_[0]) if !flock \$lock, 6;
	select undef, undef, undef, rand() < 0.004 ? 3 : 0.005 + rand 0.045;
	note('done', \$_[0]);
}
sub note { open my \$file, '>>', "$folder/\$_[0]"; syswrite \$file, "\$_[1]\\n"; }
\$| = 1;
if (\$ENV{TQ_TASK_ID}) { work(\$ENV{TQ_TASK_ID}); exit; }
while (<STDIN>) { /"taskId": "([^"]+)/ or next; work(\$1); print qq({"completed": null}\\n); }
PL
mkdir file('locks');
sql("SELECT count(tq.enqueue('h/ledger', '{}', policy => '{\"retries\": 45, \"retryOn\": [\"failed\", \"claim-expired\", \"worker-shutdown\"], \"delay\": 0}'))"
	. " FROM generate_series(1, $tasks)");

# ---- the workers, and how they are disturbed ----

my @kinds = ([ '-j', 3 ], [ '-j', 3, '--batch', 10 ], [ '-j', 8, '--serve' ], [ '-j', 8, '--serve', '--batch', 20 ]);
my (%workers, %kills);

sub employ
{
	my ($kind) = @_;
	my $one = begin('-q', 'h/ledger', '--claim-for', '2 s', '--stop-timeout', '100ms', @$kind, $work);

	$workers{ $one->{pid} } = { %$one, kind => $kind };
	return;
}

sub replace { my ($one, $signal) = @_; delete $workers{ $one->{pid} }; end_of($one, $signal); employ($one->{kind}); return; }
sub commands_of { my ($one) = @_; return map { /^(\d+) \((?!tq-worker)\S+\) \S $one->{pid} / ? $1 : () } map { slurp($_) } glob '/proc/[0-9]*/stat'; }

my %ways = (
	'worker' => sub { replace($_[0], 'KILL'); },
	'worker in order' => sub { replace($_[0], 'TERM'); },
	'command' => sub { my @commands = commands_of($_[0]); kill KILL => $commands[ rand @commands ] if @commands; },
	'connection' => sub { sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tq-worker%' ORDER BY random() LIMIT 1"); },
	'backend' => sub { my ($pid) = rows("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'tq-worker%' ORDER BY random() LIMIT 1"); kill KILL => $pid if $pid; },
	'server' => sub { pg_ctl('-m', 'immediate', 'restart'); });
my @ways = (('worker', 'worker in order', 'connection') x 3, ('command') x 8, 'backend', 'server');

sub left { return eval { row("SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'h/ledger' AND state <> 'completed'") } // $tasks; }

employ($_) for @kinds;
my $end = time + 600;
my $kill_until = time + 60;
while (time < $end && left() > 0)
{
	my $way = $ways[ rand @ways ];
	my @all = sort { $a <=> $b } keys %workers;

	next if time > $kill_until || ($kills{$way} // 0) >= ($way =~ /backend|server/ ? 2 : 40);
	$kills{$way}++;
	eval { $ways{$way}->($workers{ $all[ rand @all ] }); };
}
note("TQ_SEED=$seed: ", join ', ', map { "$kills{$_} $_" } sort keys %kills);
is(row("SELECT string_agg(state || ' ' || n, ', ' ORDER BY state) FROM (SELECT state, count(*) AS n FROM tq.task_overview WHERE task_queue_id = 'h/ledger' GROUP BY state) x"), "completed $tasks", "$tasks tasks: each is completed");
my %done = map { $_ => 1 } split /\n/, slurp(file('done'));
is(scalar(keys %done), $tasks, '... each was done');
is(slurp(file('twice')), '', '... and none twice at a time');
cmp_ok(row("SELECT count(*) FROM tq.run_overview r JOIN tq.task_overview t USING (task_id) WHERE t.task_queue_id = 'h/ledger' AND r.run_id > 0"), '>', 20, '... though many were done again');
is(end_of($_, 'TERM'), 0, '... its workers end') for values %workers;

done_testing();
