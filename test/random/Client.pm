# Client.pm
#	  One client: a process with a session, that does random operations.
#
# It works on two kinds of tasks.  Its own ones are in a queue of its own, which no
# other client uses: there the reference model says what each answer must be, and
# it is compared after every operation.  On the shared ones all clients work at
# once: there each operation is only recorded, with its answer and the time it
# took, and Check.pm checks all clients' records together.
# It works as a role of its own, which has no right to what is another client's
# (Trust.pm).
# Operations come alone, or several in a transaction, with savepoints, that
# may be rolled back; then nothing of them may be seen.
package Client;

use strict;
use warnings;

use DBI;
use List::Util qw(max min shuffle);
use POSIX qw(floor);
use Storable qw(dclone);
use Time::HiRes qw(time);

use Duel;
use Model;
use Plan qw(ROUND_MS EXPIRY_MS MAX_RUNS is_given may_give shared_queues slug_of shared_task shared_id
  shared_group definition_json round_start seed_numbers pick array_literal random_policy random_wait
  policy_of is_loose is_calm);
use Status qw(parse_status status_faults %worker_reasons @exceptions);
use Trust;

use constant HOLD_MS => 4;

my @reasons = sort keys %worker_reasons;

sub new
{
	my ($class, %arg) = @_;
	my $self = bless {
		%arg,
		model   => Model->new,
		queues  => [ "own$arg{no}/c", "own$arg{no}/d" ],
		group   => 'g',
		timeout => $arg{no} % 2 ? 300_000 : 900_000,
		op      => 0,
		done    => 0,
		own_n   => 0,
		own     => [],        # own task ids, oldest first
		held    => [],        # shared runs claimed: [id, run]
		old     => [],        # expiry of own tasks that are compared no more
		counts  => {},        # round => number of shared tasks planned
		faults  => []
	}, $class;
	return $self;
}

sub connect
{
	my ($self) = @_;
	my $dbh = DBI->connect("dbi:Pg:dbname=$self->{database}", undef, undef,
		{ AutoCommit => 1, RaiseError => 1, PrintError => 0, pg_enable_utf8 => 0 });
	$dbh->do($_)
	  for 'SET tq.max_runs = ' . MAX_RUNS, "SET tq.claim_timeout = '$self->{timeout}ms'",
	  "SET deadlock_timeout = '50ms'", 'SET client_min_messages = warning', "SET statement_timeout = '60s'",
	  "SET application_name = 'tq random'", Trust::quotas($self->{no}), $self->take_role;
	$self->{dbh} = $dbh;
	return;
}

sub take_role { my ($self) = @_; return 'SET SESSION AUTHORIZATION ' . Trust::role_of(@$self{qw(database no)}) }

# What the role of a client may not do: set the clock, and look into tables.
sub as_superuser
{
	my ($self, $work) = @_;
	$self->{dbh}->do('RESET SESSION AUTHORIZATION');
	my @answer = $work->();
	$self->{dbh}->do($self->take_role);
	return @answer;
}

sub set_claim_timeout
{
	my ($self, $ms) = @_;
	$self->as_superuser(sub { $self->{dbh}->do("SET tq.claim_timeout = '${ms}ms'") });
	return;
}

# ---- calls ----

sub virtual { my ($self) = @_; return time() * 1000 + $self->{shift_ms} }

# One statement: rows, or SQLSTATE and message; and the virtual time it took.
sub call
{
	my ($self, $sql, @bind) = @_;
	my $r = { a => $self->virtual };
	eval {
		my $sth = $self->{dbh}->prepare_cached($sql);
		$sth->execute(@bind);
		$r->{rows} = $sth->fetchall_arrayref;
		1;
	} or do
	{
		$r->{err} = $self->{dbh}->state || 'XXXXX';
		($r->{msg} = $self->{dbh}->errstr // $@) =~ s/\s+/ /g;
		die "the server is gone in operation $self->{op}: $sql (@bind): $r->{msg}\n"
		  if $r->{err} =~ /^(?:08|57P0[123])/;
	};
	$r->{b} = $self->virtual;
	$self->{last_err} = $r->{err};
	$self->{done}++;
	$self->{calls}{$1}++ if $sql =~ /tq\.(\w+)\(/;
	return $r;
}

sub fault
{
	my ($self, $text) = @_;
	push @{ $self->{faults} }, "client $self->{no}, operation $self->{op}: $text";
	return;
}

# ---- own tasks, compared at once ----

# Calls, asks the model, compares the SQLSTATEs.  Returns the answer if both
# succeed, and what else the model returned.
sub own
{
	my ($self, $ask, $sql, @bind) = @_;
	my $m = $self->{model};
	my $r = $self->call($sql, @bind);
	$m->at(floor($r->{a}) - 1, floor($r->{b}) + 1);
	my ($want, @more) = $ask->($m, $r);
	my $got = $r->{err};
	if (($got // 'success') ne ($want // 'success'))
	{
		$self->fault("$sql (" . join(' ', map { $_ // 'NULL' } @bind) . '): '
			  . ($got // 'success') . ' (' . ($r->{msg} // '') . ') instead of '
			  . ($want // 'success'));
	}
	return if defined $got || defined $want;
	return ($r, @more);
}

sub own_status
{
	my ($self, $id, $ask, $sql, @bind) = @_;
	my ($r, $there) = $self->own($ask, $sql, @bind) or return;
	my $s = parse_status($r->{rows}[0][0]);
	$id = $there // $id;
	$self->fault("$sql (@bind): the status is of $s->{taskId}, not of $id") if $s->{taskId} ne $id;
	my $bad = $self->{model}->differs($id, $s);
	$self->fault("$sql (" . join(' ', map { $_ // 'NULL' } @bind) . "): $bad in $r->{rows}[0][0]") if $bad;
	return;
}

sub own_id
{
	my ($self) = @_;
	my $own = $self->{own};
	return Trust::foreign_id($self) if !@$own || rand() < 0.04;
	return $own->[ max(0, @$own - 1 - int(rand(25))) ];
}

sub own_queue { my ($self) = @_; return pick(@{ $self->{queues} }) }

# An own id, of a task in that state if there is one.
sub own_in_state
{
	my ($self, $state) = @_;
	return $self->own_id if rand() < 0.25;
	my $m   = $self->{model};
	my @ids = grep { my $t = $m->task($_); $t && Model::state_of($t) eq $state }
	  @{ $self->{own} }[ max(0, @{ $self->{own} } - 40) .. $#{ $self->{own} } ];
	return @ids ? pick(@ids) : $self->own_id;
}

sub own_run
{
	my ($self, $state) = @_;
	my $id = $self->own_in_state($state);
	my $t  = $self->{model}->task($id);
	my $n  = $t ? @{ $t->{runs} } : 0;
	return ($id, rand() < 0.85 ? max(0, $n - 1) : int(rand($n + 2)));
}

sub own_definition
{
	my ($self) = @_;
	my $start = round_start($self->{round});
	my $id    = slug_of('own', $self->{seed}, $self->{no}, $self->{own_n}++);
	my $dead  = $start + pick(0, 1, 1, 2, 2, 3, 5, 9) * ROUND_MS + ROUND_MS / 2;
	my $late  = pick(0, 2, 12, 12, undef, undef, undef);
	my %deps;
	if (rand() < 0.5)
	{
		$deps{ rand() < 0.3 ? $self->own_in_state(pick(qw(failed exception))) : $self->own_id } = 1 for 0 .. int(rand(3));
	}
	$deps{$id} = 1 if rand() < 0.04;
	push @{ $self->{own} }, $id;
	my $other  = $self->{model}->task($self->own_id);
	my $dice   = sub { return int(rand($_[0])) };
	my $given  = int(rand(MAX_RUNS));
	my $delay  = rand() < 0.1 ? random_wait($dice) : undef;
	my $policy = random_policy($dice, $given, $delay);
	my $d = {
		id       => $id,
		queue    => $self->own_queue,
		group    => pick(
			undef, undef,
			slug_of('own group', $self->{seed}, $self->{no}, $self->{round}),
			$other ? $other->{def}{id} : undef),
		scheduler => rand() < 0.04 ? "s$self->{no}" : undef,
		deps      => [ shuffle(sort keys %deps) ],
		all       => int(rand(2)),
		priority  => 1 + int(rand(7)),
		policy    => $policy,
		delay     => $delay,
		given     => $given,
		retries   => $policy && $policy->{retries} // $given,
		created   => $start,
		deadline  => $dead,
		expires   => defined $late ? $dead + $late * ROUND_MS : undef,
		payload   => int(rand(1000))
	};
	$self->add_unique_key($d) if rand() < 0.3;
	$self->add_gates($d)    if rand() < 0.5;
	$self->spoil($d)        if rand() < 0.03;
	$self->spoil_policy($d) if $policy && rand() < 0.04;
	return $d;
}

# One of few unique keys.  A delay that is replaced must be calm by itself.
sub add_unique_key
{
	my ($self, $d) = @_;
	my $p = $d->{policy} //= { retry_on => [@Plan::default_retry_on], form => 0 };
	delete @$p{qw(pending total)};
	$p->{uniqueKey} = "k$self->{no}-" . int(rand(2));
	$p->{uniqueScope}  = 'database' if rand() < 0.2;
	$p->{onConflict}   = pick(qw(return replace replace reject)) if rand() < 0.7;
	$p->{uniqueStates} = pick([qw(pending)], [qw(unscheduled pending)], [qw(running failed)], [qw(unscheduled pending running completed)])
	  if rand() < 0.3;
	$p->{uniquePeriod} = pick(300_000, 900_000) if rand() < 0.2;
	return;
}

# One of few serial or concurrency keys, or both.
sub add_gates
{
	my ($self, $d) = @_;
	my $p = $d->{policy} //= { retry_on => [@Plan::default_retry_on], form => 0 };
	$p->{concurrencyKey} = 'c' if rand() < 0.5 && $d->{queue} eq $self->{queues}[1];
	return if defined $p->{concurrencyKey} && rand() < 0.8;
	$p->{serialKey} = 's' . int(rand(1.5));
	return if rand() < 0.7;
	$p->{serialOnFailure} = pick(qw(hold continue));
	delete @$p{qw(pending total)};
	return;
}

# Make a policy that is refused.
sub spoil_policy
{
	my ($self, $d) = @_;
	my $p = $d->{policy};
	pick(
		sub { $p->{wrong} = pick('retry', 'priority', 'CancelGroup', 'expires') },
		sub { @$p{qw(retries lost)} = (3, MAX_RUNS - 3); $d->{retries} = 3 },
		sub { @$p{qw(claim run)} = (180_000, 120_000) },
		sub { @$p{qw(run total)} = (180_000, 120_000) },
		sub { $d->{delay} = $d->{deadline} - $d->{created} + 60_000 })->();
	return;
}

# Make one of the dates wrong.
sub spoil
{
	my ($self, $d) = @_;
	my ($key, $by) = @{ pick(
			[ created => -1_200_000 ], [ created => 1_200_000 ],
			[ deadline => -864_000_000 ], [ deadline => 864_000_000 ]) };
	$d->{$key} += $by;
	$d->{expires} = $d->{deadline} - 1 if rand() < 0.2;
	return;
}

sub own_create
{
	my ($self) = @_;
	my $d = $self->own_definition;
	return $self->own_status($d->{id}, sub { $_[0]->create($d) },
		'SELECT tq.create_task($1, $2)', $d->{id}, definition_json($d));
}

sub own_define
{
	my ($self) = @_;
	my $d   = $self->own_definition;
	my %def = (%$d, deps => [ $d->{id}, grep { $_ ne $d->{id} } @{ $d->{deps} } ]);
	my $sent = grep({ $_ eq $d->{id} } @{ $d->{deps} }) ? \%def : $d;
	return $self->own_status($d->{id}, sub { $_[0]->create(\%def) },
		'SELECT tq.define_task($1, $2)', $d->{id}, definition_json($sent));
}

# The same again, or nearly the same.
sub own_repeat
{
	my ($self) = @_;
	my $t = $self->{model}->task($self->own_id) or return $self->own_create;
	return $self->own_create
	  if $t->{def}{redriven} || $t->{def}{replaced} || grep { !$self->{model}->task($_) } @{ $t->{def}{deps} };
	my %d = %{ $t->{def} };
	$d{payload}++ if rand() < 0.3;
	@d{qw(policy retries)} = (undef, $d{given}) if rand() < 0.1;
	return $self->own_status($d{id}, sub { $_[0]->create(\%d) },
		'SELECT tq.create_task($1, $2)', $d{id}, definition_json(\%d));
}

sub batch_json
{
	return '[' . join(',', map { "{\"taskId\":\"$_->{id}\",\"task\":" . definition_json($_) . '}' } @_) . ']';
}

sub own_create_tasks
{
	my ($self) = @_;
	my @defs = map { $self->own_definition } 0 .. int(rand(5));
	my $cycle;

	# a group whose scheduler the batch itself decides is not modelled
	delete $_->{scheduler} for @defs;

	# nor is the order of creation of tasks that depend on each other
	my %in = map { $_->{id} => 1 } @defs;
	my @keyed = grep { $_->{policy} } @defs;
	if (grep { $in{$_} } map { @{ $_->{deps} } } @defs)
	{
		delete @{ $_->{policy} }{qw(serialKey serialOnFailure concurrencyKey)} for @keyed;
		delete @$_{ Plan::policy_json($_->{policy}) eq '{}' ? 'policy' : () } for @keyed;
	}
	if (@defs > 1 && rand() < 0.1)
	{
		# the first depends on the last, and that on the first
		@$_{qw(deps group)} = ([], undef) for @defs;
		$defs[0]{deps}  = [ $defs[-1]{id} ];
		$defs[-1]{deps} = [ $defs[0]{id} ];
		$cycle = 1;
	}
	@defs = shuffle(@defs) if !$cycle;
	my ($r, $new) = $self->own(sub { return $cycle ? 'TQ400' : $_[0]->create_many(@defs) }, 'SELECT tq.create_tasks($1)', batch_json(@defs))
	  or return;
	$self->fault("create_tasks: $r->{rows}[0][0] instead of $new of " . batch_json(@defs)) if $r->{rows}[0][0] != $new;
	return;
}

# A definition that says no more than it must.
sub plain_definition
{
	my ($self) = @_;
	my $start = round_start($self->{round});
	return {
		id       => slug_of('own', $self->{seed}, $self->{no}, $self->{own_n}++),
		queue    => $self->own_queue,
		deps     => [],
		priority => 1 + int(rand(7)),
		retries  => int(rand(MAX_RUNS)),
		created  => $start,
		deadline => $start + 5.5 * ROUND_MS,
		payload  => int(rand(1000))
	};
}

# Some tasks that wait for each other: with one key, and long to live.
sub own_create_keyed
{
	my ($self) = @_;
	my %key = %{ pick({ serialKey => 's0' }, { serialKey => 's1', serialOnFailure => 'hold' }, { concurrencyKey => 'c' }, { concurrencyKey => 'c' }) };
	my @defs = map {
		my $d = $self->plain_definition;
		+{ %$d, queue => $self->{queues}[1], given => $d->{retries}, policy => { retry_on => [@Plan::default_retry_on], form => 0, %key } }
	} 0 .. 1 + int(rand(4));
	push @{ $self->{own} }, map { $_->{id} } @defs;
	$self->own(sub { return $_[0]->create_many(@defs) }, 'SELECT tq.create_tasks($1)', batch_json(@defs));
	return;
}

sub own_verb
{
	my ($self, $verb, $id) = @_;
	return $self->own_status($id, sub { $_[0]->$verb($id) }, "SELECT tq.${verb}_task(\$1)", $id);
}

sub own_schedule { my ($s) = @_; return $s->own_verb('schedule', $s->own_in_state('unscheduled')) }
sub own_rerun    { my ($s) = @_; return $s->own_verb('rerun',    $s->own_in_state('completed')) }
sub own_cancel   { my ($s) = @_; return $s->own_verb('cancel',   $s->own_id) }

# Some tasks run again, most with what depends on them, and some with another
# deadline, half-way between two rounds as all are, but a second after those of
# definitions: which of two is later must not hang on the millisecond of the call.
sub own_repair_how
{
	my ($self) = @_;
	my $how = { downstream => rand() < 0.8 ? 1 : 0 };
	my $left = round_start($self->{round}) + ROUND_MS / 2 + 1000 - floor($self->virtual);
	$how->{deadline} = $left + int(rand(4)) * ROUND_MS if rand() < 0.5;
	return ($how, defined $how->{deadline} ? "$how->{deadline} ms" : undef, $how->{downstream} ? 't' : 'f');
}

sub own_repair
{
	my ($self) = @_;
	my $id = $self->own_in_state(pick(qw(failed exception exception completed unscheduled)));
	my ($how, @how) = $self->own_repair_how;
	return $self->own_status($id, sub { $_[0]->repair_task($id, $how) }, 'SELECT tq.rerun_task($1, $2, $3)', $id, @how);
}

sub own_retry_group
{
	my ($self) = @_;
	my $t   = $self->{model}->task($self->own_id);
	my $gid = $t ? Model::group_of($t->{def}) : slug_of('unknown', rand());
	my ($how, @how) = $self->own_repair_how;
	my @reasons = rand() < 0.6 ? () : shuffle(qw(failed canceled deadline-exceeded malformed-payload claim-expired));
	splice(@reasons, 1 + int(rand(4))) if @reasons;
	my ($r, $want) = $self->own(sub { $_[0]->repair_group($gid, $how, @reasons) },
		'SELECT tq.retry_task_group($1, $2, $3, $4)',
		$gid, $how[0], @reasons ? array_literal(@reasons) : undef, $how[1]) or return;
	$self->fault("retry_task_group($gid): $r->{rows}[0][0] instead of $want (@how, @reasons)") if $r->{rows}[0][0] != $want;
	return;
}

sub own_add_dependencies
{
	my ($self) = @_;
	my $id   = $self->own_in_state('unscheduled');
	my @deps = map { $self->own_in_state(pick(qw(unscheduled pending running completed failed exception))) } 0 .. int(rand(2.5));
	$self->own_status($id, sub { $_[0]->add_dependencies($id, @deps) }, 'SELECT tq.add_dependencies($1, $2)', $id, array_literal(@deps));
	return if $self->{last_err} || @{ $self->{faults} };
	my $r    = $self->call(q{SELECT string_agg(d, ' ') FROM jsonb_array_elements_text(tq.task($1) -> 'dependencies') AS d}, $id);
	my $want = join(' ', @{ $self->{model}->task($id)->{def}{deps} });
	$self->fault("add_dependencies($id, @deps): it has ($r->{rows}[0][0]) instead of ($want)") if ($r->{rows}[0][0] // '') ne $want;
	return;
}

sub own_reschedule
{
	my ($self) = @_;
	my $id    = $self->own_in_state('pending');
	my $after = rand() < 0.4 ? 0 : int(rand(3)) * ROUND_MS + ROUND_MS / 2 + 5000;		# later than what ends half-way
	return $self->own_status($id, sub { $_[0]->reschedule($id, $after) },
		"SELECT tq.reschedule_task(\$1, clock_timestamp() + current_setting('tq.clock_offset')::interval + \$2::interval)", $id, "$after ms");
}

sub own_read
{
	my ($self) = @_;
	my $id = $self->own_id;
	return $self->own_status($id, sub { $_[0]->task($id) ? undef : 'TQ404' },
		'SELECT tq.status($1)', $id);
}

sub worker { my ($self) = @_; return ($self->{group}, "w$self->{no}-" . int(rand(2))) }

# claim columns for both kinds of claim; times as ms
my $claim_columns =
	'task_id, run_id, worker_group, worker_id,'
  . ' (extract(epoch FROM taken_until) * 1000)::bigint, payload';

sub own_claim_work
{
	my ($self) = @_;
	my ($group, $worker) = $self->worker;
	my $n = 1 + int(rand(5));
	my @b = ($self->own_queue, $group, $worker, $n);
	my ($r, $bad) = $self->own(
		sub {
			my ($m, $r) = @_;
			my @got = map { [ @$_[ 0, 1 ] ] } @{ $r->{rows} // [] };
			return (undef, $m->claim_work(@b, $self->{timeout}, @got));
		},
		"SELECT $claim_columns FROM tq.claim_work(\$1, \$2, \$3, \$4)", @b) or return;
	my $text = join(' ', map { "$_->[0]/$_->[1]" } @{ $r->{rows} });
	return $self->fault("claim_work(@b): $bad; got $text") if $bad;
	$self->check_claim($_, $group, $worker) for @{ $r->{rows} };
	return;
}

# From both queues in one call.
sub own_claim_queues
{
	my ($self) = @_;
	my ($group, $worker) = $self->worker;
	my $n      = 1 + int(rand(6));
	my @queues = shuffle(@{ $self->{queues} });
	my $mode   = pick('strict', 'round-robin');
	my @b      = (array_literal(@queues), $group, $worker, $n, $mode);
	my ($r, $bad) = $self->own(
		sub {
			my ($m, $r) = @_;
			my @got = map { [ @$_[ 6, 0, 1 ] ] } @{ $r->{rows} // [] };
			return (undef, $m->claim_queues($mode eq 'strict', \@queues, $group, $worker, $n, $self->{timeout}, @got));
		},
		"SELECT $claim_columns, task_queue_id FROM tq.claim_work(\$1::text[], \$2, \$3, \$4, mode => \$5)", @b) or return;
	my $text = join(' ', map { "$_->[0]/$_->[1]/$_->[6]" } @{ $r->{rows} });
	return $self->fault("claim_work(@b): $bad; got $text") if $bad;
	$self->check_claim($_, $group, $worker) for @{ $r->{rows} };
	return;
}

# ---- settings of own queues ----

# Small numbers, so that what limits is met, and mostly none.
my %random_setting = (
	paused          => sub { return pick('true', 'false', undef, undef, undef) },
	concurrentLimit => sub { return pick(undef, 0, 1, 2, 3, 4) },
	rate            => sub { return pick(undef, 0, 2, 4, 8) },
	maxPending      => sub { return pick(undef, undef, 1, 2, 3, 5) },
	maxDelayed      => sub { return pick(undef, undef, 1, 2, 3) },
	maxRunning      => sub { return pick(undef, undef, 1, 2, 3) },
	keyConcurrentLimit => sub { return pick(1, 1, 2, 3) },
	claimTimeout    => sub { return pick(undef, 180, 300, 900) });

sub own_set_queue
{
	my ($self) = @_;
	my $queue = $self->own_queue;
	my %given = map { $_ => $random_setting{$_}->() } map { pick(sort keys %random_setting) } 0 .. int(rand(3));

	# tasks that are there when the limit is set do not count: it always is, or never
	delete $given{keyConcurrentLimit} if $queue eq $self->{queues}[0];
	@given{qw(rateCount rateInterval)} = (delete $given{rate}, pick(120, 300, 480)) if exists $given{rate};
	return $self->own_settings($queue, \%given, 'SELECT tq.set_queue($1, $2)', $queue,
		'{' . join(',', map { "\"$_\":" . ($given{$_} // 'null') } sort keys %given) . '}');
}

sub own_pause
{
	my ($self) = @_;
	my $queue = $self->own_queue;
	return $self->own_settings($queue, { paused => 'true' }, 'SELECT tq.pause_queue($1)', $queue);
}

sub own_resume
{
	my ($self) = @_;
	my $queue = $self->own_queue;
	return $self->own_settings($queue, { paused => undef }, 'SELECT tq.resume_queue($1)', $queue);
}

# Each call returns all settings as they are now.
sub own_settings
{
	my ($self, $queue, $given, $sql, @bind) = @_;
	my ($r) = $self->own(sub { return $_[0]->set_queue($queue, %$given) }, $sql, @bind) or return;
	my $want = $self->{model}->settings($queue);
	my %got  = $r->{rows}[0][0] =~ /"(\w+)": (\w+)/g;
	my ($got_text, $want_text) = map { my $s = $_; join(' ', map { "$_=$s->{$_}" } sort keys %$s) } \%got, $want;
	$self->fault("$sql (@bind): $got_text instead of $want_text") if $got_text ne $want_text;
	return;
}

sub check_claim
{
	my ($self, $row, $group, $worker) = @_;
	my ($id, $i, $g, $w, $taken, $payload) = @$row;
	my $t   = $self->{model}->task($id);
	my $run = $t->{runs}[$i];
	$self->fault("claim of $id: worker $g/$w") if "$g/$w" ne "$group/$worker";
	$self->fault("claim of $id: payload $payload")
	  if $payload ne "{\"n\": $t->{def}{payload}}";
	$run->{takenUntil} = $taken
	  if ref $run->{takenUntil}
	  && $taken >= $run->{takenUntil}[0]
	  && $taken <= $run->{takenUntil}[1];
	$self->fault("claim of $id: taken until $taken")
	  if ref $run->{takenUntil} || $taken != $run->{takenUntil};
	return;
}

sub own_claim_task
{
	my ($self) = @_;
	my ($group, $worker) = $self->worker;
	my ($id, $i) = $self->own_run(rand() < 0.8 ? 'pending' : 'running');
	my ($r, $rows) = $self->own(
		sub { my ($m, $r) = @_; return $m->claim_task($id, $i, $group, $worker, $self->{timeout}, scalar @{ $r->{rows} // [] }) },
		"SELECT $claim_columns FROM tq.claim_task(\$1, \$2, \$3, \$4)",
		$id, $i, $group, $worker) or return;
	return $self->fault("claim_task($id, $i): " . @{ $r->{rows} } . " rows, not $rows")
	  if @{ $r->{rows} } != $rows;
	$self->check_claim($_, $group, $worker) for @{ $r->{rows} };
	return;
}

sub own_reclaim
{
	my ($self) = @_;
	my ($id, $i) = $self->own_run('running');
	my ($r) = $self->own(sub { $_[0]->reclaim($id, $i, $self->{timeout}) },
		"SELECT $claim_columns FROM tq.reclaim_task(\$1, \$2)", $id, $i) or return;
	my $run = $self->{model}->task($id)->{runs}[$i];
	my ($taken, $payload) = @{ $r->{rows}[0] }[ 4, 5 ];
	return $self->fault("reclaim_task($id, $i): taken until $taken")
	  if $taken < $run->{takenUntil}[0] || $taken > $run->{takenUntil}[1];
	$self->fault("reclaim_task($id, $i) returns a payload") if defined $payload;
	$run->{takenUntil} = $taken;
	return;
}

my %outcome_state = ('not-found' => 'TQ404', 'conflict' => 'TQ409');

sub own_report
{
	my ($self, $reason) = @_;
	my ($id, $i) = $self->own_run('running');
	my ($given, %words) = words($reason);
	my @retry = $reason eq 'completed' ? () : $self->own_retry($id);
	@words{qw(retry_delay further)} = @retry;
	delete @words{ grep { !defined $words{$_} } keys %words };
	my $ask = sub { return $outcome_state{ ($_[0]->resolve($reason, \%words, [ $id, $i ]))[0] } };
	return $self->own_status($id, $ask, report_sql($reason, $id, $i, $given, @retry));
}

# What a worker says of the attempts that follow: delay and number.
sub own_retry
{
	my ($self, $id) = @_;
	my $t     = $self->{model}->task($id) or return (undef, undef);
	my $delay = rand() < 0.5 ? 0 : random_wait(sub { return int(rand($_[0])) });
	$delay = undef if rand() < 0.8 || !is_calm($delay + (policy_of($t->{def})->{pending} // 0));
	return ($delay, rand() < 0.1 ? int(rand(MAX_RUNS)) : undef);
}

# What a worker says of the end of a run: as the argument of a report, and as the
# model and Status.pm have it.
sub words
{
	my ($reason) = @_;
	return if rand() < 0.6;
	my $n = int(rand(1000));
	return ("{\"n\": $n}", result => "{\"n\": $n}") if $reason eq 'completed';
	return ("{\"message\": \"no $n\"}", error => "'message': 'no $n'") if rand() < 0.5;
	return ("{\"details\": $n, \"message\": \"no\"}", error => "'details': $n, 'message': 'no'");
}

# The statement that reports, and its arguments.
sub report_sql
{
	my ($reason, $id, $i, $given, @retry) = @_;
	return ('SELECT tq.report_completed($1, $2, $3)', $id, $i, $given) if $reason eq 'completed';
	return ("SELECT tq.report_failed(\$1, \$2, \$3, \$4::int * interval '1 ms', \$5)", $id, $i, $given, @retry[ 0, 1 ])
	  if $reason eq 'failed';
	return ("SELECT tq.report_exception(\$1, \$2, \$3, \$4, \$5::int * interval '1 ms', \$6)",
		$id, $i, $reason, $given, @retry[ 0, 1 ]);
}

sub own_completed { return $_[0]->own_report('completed') }
sub own_failed    { return $_[0]->own_report('failed') }

sub own_exception
{
	return $_[0]->own_report(pick(@exceptions));
}

sub own_resolve
{
	my ($self) = @_;
	my $reason = rand() < 0.6 ? 'completed' : pick(@reasons);
	my %seen;
	my @runs = grep { !$seen{ $_->[0] }++ } map { [ $self->own_run('running') ] } 0 .. int(rand(5));
	my ($r, @want) = $self->own(
		sub { return (undef, $_[0]->resolve($reason, undef, @runs)) },
		'SELECT task_id, run_id, outcome FROM tq.resolve($1, $2, $3)',
		array_literal(map { $_->[0] } @runs), array_literal(map { $_->[1] } @runs), $reason) or return;
	my $got  = join(' ', map { "$_->[0]/$_->[1]=$_->[2]" } @{ $r->{rows} });
	my $want = join(' ', map { "$runs[$_][0]/$runs[$_][1]=$want[$_]" } 0 .. $#runs);
	$self->fault("resolve($reason): $got instead of $want") if $got ne $want;
	return;
}

# Runs that end for a reason each: as the model has them, and as JSON.
sub own_reports
{
	my ($self) = @_;
	my (%seen, @reports, @json);
	for my $run (map { [ $self->own_run('running') ] } 0 .. int(rand(4)))
	{
		my ($id, $i) = @$run;
		next if $seen{$id}++;
		my $reason = rand() < 0.5 ? 'completed' : pick(@reasons);
		my ($given, %words) = words($reason);
		my @json_words = defined $given ? '"' . ($reason eq 'completed' ? 'result' : 'error') . "\":$given" : ();
		if ($reason ne 'completed')
		{
			@words{qw(retry_delay further)} = $self->own_retry($id);
			push @json_words, '"retryDelay":' . $words{retry_delay} / 1000 if defined $words{retry_delay};
			push @json_words, "\"retriesLeft\":$words{further}" if defined $words{further};
			delete @words{ grep { !defined $words{$_} } keys %words };
		}
		push @reports, [ $id, $i, $reason, \%words ];
		push @json, '{' . join(',', "\"taskId\":\"$id\",\"runId\":$i,\"reason\":\"$reason\"", @json_words) . '}';
	}
	return ('[' . join(',', @json) . ']', @reports);
}

sub own_resolve_each
{
	my ($self) = @_;
	my ($json, @reports) = $self->own_reports;
	my ($r, @want) = $self->own(sub { return (undef, $_[0]->resolve_each(@reports)) },
		'SELECT task_id, run_id, outcome FROM tq.resolve($1::jsonb)', $json) or return;
	my $got  = join(' ', map { "$_->[0]/$_->[1]=$_->[2]" } @{ $r->{rows} });
	my $want = join(' ', map { "$reports[$_][0]/$reports[$_][1]=$want[$_]" } 0 .. $#reports);
	$self->fault("resolve($json): $got instead of $want") if $got ne $want;
	return;
}

# What is resolved makes room for what is claimed.
sub own_resolve_and_claim
{
	my ($self) = @_;
	my ($json, @reports) = $self->own_reports;
	my ($group, $worker) = $self->worker;
	my @b = ($self->own_queue, $group, $worker, 1 + int(rand(4)));
	my ($r, $bad, @want) = $self->own(
		sub {
			my ($m, $r) = @_;
			my @want = $m->resolve_each(@reports);
			my @got  = map { [ @$_[ 0, 1 ] ] } grep { $_->[6] eq 'claimed' } @{ $r->{rows} // [] };
			return (undef, scalar $m->claim_work(@b, $self->{timeout}, @got), @want);
		},
		"SELECT $claim_columns, outcome FROM tq.resolve_and_claim(\$1::jsonb, \$2, \$3, \$4, \$5)", $json, @b) or return;
	my @claims = grep { $_->[6] eq 'claimed' } @{ $r->{rows} };
	my $got  = join(' ', map { "$_->[0]/$_->[1]=$_->[6]" } @{ $r->{rows} });
	my $want = join(' ', map({ "$reports[$_][0]/$reports[$_][1]=$want[$_]" } 0 .. $#reports), map { "$_->[0]/$_->[1]=claimed" } @claims);
	return $self->fault("resolve_and_claim($json @b): " . ($bad // '') . "; $got instead of $want") if $bad || $got ne $want;
	$self->check_claim($_, $group, $worker) for @claims;
	return;
}

sub own_skip
{
	my ($self) = @_;
	my $id     = $self->own_in_state(pick('pending', 'unscheduled', 'completed'));
	my $output = rand() < 0.5 ? int(rand(1000)) : undef;
	return $self->own_status($id, sub { $_[0]->skip($id, $output) }, 'SELECT tq.skip_task($1, $2)', $id, $output);
}

sub own_defer
{
	my ($self) = @_;
	my ($id, $i) = $self->own_run('running');
	my $after = rand() < 0.3 ? 0 : random_wait(sub { return int(rand($_[0])) });
	return $self->own_status($id, sub { $_[0]->defer($id, $i, $after) },
		"SELECT tq.defer_task(\$1, \$2, \$3::int * interval '1 ms')", $id, $i, $after);
}

# An own dead letter, of a task that is still known; or none.
sub own_letter
{
	my ($self) = @_;
	my $m   = $self->{model};
	my @ids = grep { $m->task($_) && exists $m->{letters}{$_} } @{ $self->{own} };
	return @ids && rand() < 0.9 ? pick(@ids) : $self->own_id;
}

sub own_redrive
{
	my ($self) = @_;
	my $m  = $self->{model};
	my $id = $self->own_letter;
	my $t  = $m->task($id);
	return if !$t && exists $m->{letters}{$id};	# a new task, of which the model does not know any more what it was
	return $self->own_status($id, sub { $_[0]->redrive($id) }, 'SELECT tq.redrive($1)', $id)
	  unless $t && exists $m->{letters}{$id} && Model::deadline_of($t) < $self->virtual + Plan::NEAR_MS / 2;
	return if defined policy_of($t->{def})->{total};

	# what the new task is called, the server says
	my $s;
	my ($r, $new) = $self->own(
		sub { my ($m, $r) = @_; $s = parse_status($r->{rows}[0][0] // ''); return $m->redrive_late($id, $s) },
		'SELECT tq.redrive($1)', $id) or return;
	push @{ $self->{own} }, $new;
	my $bad = $self->{model}->differs($new, $s);
	$self->fault("redrive($id): $bad in $r->{rows}[0][0]") if $bad;
	return;
}

sub own_discard
{
	my ($self) = @_;
	my $id = $self->own_letter;
	$self->own(sub { $_[0]->discard($id) }, 'SELECT tq.discard_dead_letter($1)', $id);
	return;
}

sub own_letters
{
	my ($self) = @_;
	my ($r) = $self->own(sub { return undef },
		'SELECT l.task_id, l.reason FROM unnest($1::text[]) AS q CROSS JOIN LATERAL tq.list_dead_letters(q, NULL, 1000) AS l'
		  . ' ORDER BY l.task_id::text COLLATE "C"', array_literal(@{ $self->{queues} }))
	  or return;
	my $letters = $self->{model}{letters};
	my $got     = join(' ', map { "$_->[0]=$_->[1]" } @{ $r->{rows} });
	my $want    = join(' ', map { "$_=$letters->{$_}" } sort keys %$letters);
	$self->fault("list_dead_letters: $got instead of $want") if $got ne $want && @{ $r->{rows} } < 1000;
	return;
}

sub own_result
{
	my ($self) = @_;
	my $id = $self->own_in_state('completed');
	my ($r, $want) = $self->own(sub { $_[0]->result($id) }, 'SELECT tq.result($1)', $id) or return;
	my $got = $r->{rows}[0][0];
	$self->fault("result($id): " . ($got // 'nothing') . ' instead of ' . ($want // 'nothing')) if ($got // '') ne ($want // '');
	return;
}

sub own_required
{
	my ($self) = @_;
	my $m    = $self->{model};
	my $id   = $self->own_id;
	my $deps = $m->task($id) ? $m->task($id)->{def}{deps} : [];
	return if grep { !$m->task($_) } @$deps;
	my ($r, @want) = $self->own(
		sub {
			my ($m) = @_;
			return 'TQ404' unless $m->task($id);
			return (undef, map { join(' ', $_, Model::state_of($m->task($_)), ($m->result($_))[1] // '') } @$deps);
		},
		'SELECT task_id, state, result FROM tq.dependency_results($1)', $id) or return;
	my @got = map { join(' ', @$_[ 0, 1 ], $_->[2] // '') } @{ $r->{rows} };
	$self->fault("dependency_results($id): @got instead of @want") if "@got" ne "@want";
	return;
}

sub own_group
{
	my ($self) = @_;
	my @ids = sort keys %{ $self->{model}{groups} };
	return Trust::foreign_group($self) if !@ids || rand() < 0.05;
	my $t = $self->{model}->task($self->own_id);
	return $t ? $t->{def}{group} // $t->{def}{id} : pick(@ids);
}

sub own_seal
{
	my ($self) = @_;
	my $gid = $self->own_group;
	$self->own(sub { $_[0]->seal($gid) }, 'SELECT tq.seal_task_group($1)', $gid);
	return;
}

sub own_cancel_group
{
	my ($self) = @_;
	my $gid = $self->own_group;
	my ($r, @ids) = $self->own(sub { $_[0]->cancel_group($gid) },
		"SELECT r ->> 'taskGroupSize', r ->> 'cancelledCount',"
		  . " ARRAY(SELECT x FROM jsonb_array_elements_text(r -> 'taskIds') AS x ORDER BY x COLLATE \"C\")"
		  . ' FROM tq.cancel_task_group($1) AS r', $gid) or return;
	my ($size, $count, $got) = @{ $r->{rows}[0] };
	$self->fault("cancel_task_group($gid): $count of $size: @$got instead of @ids")
	  if $size != keys %{ $self->{model}{groups}{$gid}{tasks} }
	  || $count != @ids
	  || "@$got" ne "@ids";
	return;
}

# ---- many own tasks ----

# All of a queue that wait, or also those that run.
sub own_cancel_tasks
{
	my ($self) = @_;
	my $queue  = $self->own_queue;
	my @states = ('unscheduled', 'pending', rand() < 0.3 ? 'running' : ());
	my $name   = pick(undef, undef, 'n', 'other');
	my ($r, $want) = $self->own(
		sub { my ($m) = @_; return $self->{in_tx} ? 'TQ400' : (undef, ($name // 'n') eq 'n' ? $m->cancel_tasks($queue, @states) : 0) },
		'CALL tq.cancel_tasks($1, $2, NULL, $3)', $queue, $name, array_literal(@states)) or return;
	$self->fault("cancel_tasks($queue @states): $r->{rows}[0][0] instead of $want") if $r->{rows}[0][0] != $want;
	return;
}

# From one own queue to the other; their claims go on there.
sub own_move_tasks
{
	my ($self) = @_;
	my ($from, $to) = shuffle(@{ $self->{queues} });
	my $max = pick(undef, undef, 1, 2, 4);
	my $ids = array_literal($self->{model}->ids);
	my ($r, $bad) = $self->own(
		sub {
			my ($m, $r) = @_;
			return 'TQ400' if $self->{in_tx};
			my ($there) = $self->as_superuser(sub { return $self->{dbh}->selectcol_arrayref('SELECT t.task_id FROM tq_internal.task t'
				  . ' JOIN tq_internal.queue q ON q.id = t.queue WHERE q.task_queue_id = $1 AND t.task_id = ANY ($2::tq.slugid[])', undef, $to, $ids) });
			return (undef, $m->move_tasks($from, $to, $max, $r->{rows}[0][0], map { $_ => 1 } @$there));
		},
		'CALL tq.move_tasks($1, $2, $3)', $from, $to, $max) or return;
	$self->fault("move_tasks($from $to " . ($max // 'NULL') . "): $bad") if $bad;
	return;
}

# ---- what a filter finds (doc/spec/policy.md 17) ----

my @states = qw(unscheduled pending running completed failed exception);

sub json_of { my (@texts) = @_; return '[' . join(',', map { "\"$_\"" } @texts) . ']' }

# A filter of own tasks, among them one that is like this, if it is given: as JSON, and as
# what it asks of a task of the model.
sub own_filter
{
	my ($self, $wanted, @of) = @_;
	my $m      = $self->{model};
	my @queues = $wanted || rand() < 0.3 ? @{ $self->{queues} } : $self->own_queue;
	my %json   = (queue => json_of(@queues));
	my $like   = $wanted // $m->task($self->own_id);
	my $has    = sub { my ($value, @values) = @_; return defined $value && grep { $value eq $_ } @values };
	my @asks   = sub { return $has->($_[0]{def}{queue}, @queues) };
	@of = splice(@{ [ shuffle(@states) ] }, 0, 1 + int(rand(3))) if rand() < (@of ? 0.2 : 0.6);
	if (@of)
	{
		$json{state} = json_of(@of);
		push @asks, sub { return $has->(Model::state_of($_[0]), @of) };
	}
	my %more = (
		priority => sub { my @wanted = splice(@{ [ shuffle(1 .. 7) ] }, 0, 4); return (json_of(map { Plan::priority_name($_) } @wanted), sub { return $has->($_[0]{def}{priority}, @wanted) }) },
		runsAtLeast => sub { my $n = 1 + int(rand(3)); return ($n, sub { return @{ $_[0]{runs} } >= $n }) },
		group => sub { my $id = Model::group_of($like->{def}); return ("\"$id\"", sub { return Model::group_of($_[0]{def}) eq $id }) },
		waitsFor => sub { my $id = $self->own_id; return ("\"$id\"", sub { return $has->($id, @{ $_[0]{def}{deps} }) }) },
		deadLetter => sub { my $kept = rand() < 0.5; return ($kept ? 'true' : 'false', sub { return $kept == exists $m->{letters}{ $_[0]{def}{id} } }) },
		payload => sub { my $n = $like->{def}{payload}; return ("{\"n\":$n}", sub { return $_[0]{def}{payload} == $n }) },
		reason => sub {
			my @wanted = splice(@{ [ shuffle('failed', 'canceled', 'completed', 'scheduled', 'rerun', 'failure-retry') ] }, 0, 3);
			return (json_of(@wanted), sub { my $run = Model::last_run($_[0]); return $run && $has->($run->{reasonResolved} // $run->{reasonCreated}, @wanted) });
		});
	for my $key ($wanted ? 'group' : $like ? splice(@{ [ shuffle(sort keys %more) ] }, 0, pick(0, 0, 1, 1, 2)) : ())
	{
		($json{$key}, my $ask) = $more{$key}->();
		push @asks, $ask;
	}
	return ('{' . join(',', map { "\"$_\":$json{$_}" } sort keys %json) . '}',
		sub { my ($t) = @_; return !grep { !$_->($t) } @asks });
}

# The newest own tasks that a filter finds, read in pages, as the model says; with those that it has forgotten.
sub found
{
	my ($self, $filter, $asks, $most) = @_;
	my $m = $self->{model};
	my ($size, $page, @found) = (pick(3, 8, 1000));
	while (!defined $most || @found < $most)
	{
		my $max = defined $most ? min($size, $most - @found) : $size;
		my ($r) = $self->own(sub { return undef }, q(SELECT task_id, page FROM tq.find_tasks($1, $2, $3, '1 min')), $filter, $page, $max) or return;
		push @found, map { $_->[0] } @{ $r->{rows} };
		last if @{ $r->{rows} } < $max;
		$page = $r->{rows}[-1][1];
	}
	my @got  = grep { $m->task($_) } @found;
	my @want = map { $_->{def}{id} } reverse Model::by_creation(grep { $asks->($_) } values %{ $m->{tasks} });
	splice(@want, scalar @got) if defined $most && @found == $most && @got < @want;
	$self->fault("find_tasks($filter): @got instead of @want") if "@got" ne "@want";
	return @found;
}

sub own_find
{
	my ($self) = @_;
	my ($filter, $asks) = $self->own_filter(undef, pick([], [qw(failed exception)])->@*);
	my @found = $self->found($filter, $asks);
	return if @{ $self->{faults} } || $filter !~ /"state":\["failed","exception"\]/;
	my ($r) = $self->own(sub { return undef }, q(SELECT coalesce(sum(tasks), 0) FROM tq.failure_groups($1, budget => '1 min')), $filter) or return;
	$self->fault("failure_groups($filter): $r->{rows}[0][0] tasks instead of " . @found) if $r->{rows}[0][0] != @found;
	return;
}

# What each action is for a found task, and the states of which most have; the
# rest of the server is refused.  What the model has forgotten is past its deadline.
my %actions = (
	cancel   => [ qw(unscheduled pending running) ],
	rerun    => [ qw(completed failed exception) ],
	schedule => ['unscheduled'],
	priority => [ qw(unscheduled pending) ],
	move     => [ qw(unscheduled pending) ],
	delay    => ['pending'],
	redrive  => [ qw(failed exception) ],
	discard  => [ qw(failed exception) ]);

sub own_apply
{
	my ($self) = @_;
	my $action = pick(sort keys %actions);
	my $m      = $self->{model};
	my @dead   = $action =~ /^(?:redrive|discard)$/ ? grep { !$m->is_late($_) } map { $m->task($_) // () } sort keys %{ $m->{letters} } : ();
	my ($filter, $asks) = $self->own_filter(@dead ? pick(@dead) : undef, $actions{$action}->@*);
	my $most  = 1 + int(rand(60));
	my @found = $self->found($filter, $asks, $most);
	return if @{ $self->{faults} };
	return if $action eq 'redrive' && grep { exists $m->{letters}{$_} && (!$m->task($_) || $m->is_late($m->task($_))) } @found;	# new tasks
	my $after = rand() < 0.4 ? 0 : ROUND_MS + ROUND_MS / 2 + 5000;
	my $queue = $self->own_queue;
	my $level = 1 + int(rand(7));
	my %arguments = (
		priority => sprintf('{"priority": "%s"}', Plan::priority_name($level)),
		move     => "{\"queue\": \"$queue\"}",
		delay    => sprintf('{"until": "%s"}', Plan::time_of(floor($self->virtual) + $after)));
	my ($r, $want) = $self->own(
		sub {
			my ($m) = @_;
			return 'TQ400' if $self->{in_tx};
			return (undef, $m->apply($action, { after => $after, queue => $queue, priority => $level }, reverse @found));
		},
		'CALL tq.apply($1, $2, $3, false, $4)', $filter, $action, $arguments{$action} // '{}', $most) or return;
	my ($tasks, $refused) = @{ $r->{rows}[0] };
	$self->fault("apply($filter, $action, " . ($arguments{$action} // '') . ", $most): $tasks and $refused instead of $want") if $tasks != $want;
	return;
}

# ---- fairness: tasks of their own, all of which are claimed by one operation ----

my %weights = (a => 1, b => 1, half => 0.5, four => 4);

sub fair_create
{
	my ($self) = @_;
	my $queue = "own$self->{no}/f";
	my $start = round_start($self->{round});
	my @defs  = map {
		my $key = pick(undef, 'a', 'a', 'a', 'b', 'half', 'four');
		{
			id       => slug_of('fair', $self->{seed}, $self->{no}, $self->{own_n}++),
			queue    => $queue,
			deps     => [],
			priority => pick(3, 4),
			retries  => 5,
			created  => $start,
			deadline => $start + 1.5 * ROUND_MS,
			payload  => int(rand(1000)),
			defined $key ? (policy => { retry_on => [@Plan::default_retry_on], form => 0, fairnessKey => $key }) : ()
		}
	} 0 .. int(rand(9));
	$self->own(
		sub { my ($m) = @_; my ($bad) = $m->create_many(@defs); $m->place(\%weights, map { $_->{id} } @defs) if !$bad; return $bad },
		'SELECT tq.create_tasks($1)', batch_json(@defs));
	return;
}

# Returns how many there were.
sub fair_claim
{
	my ($self, $n) = @_;
	my ($group, $worker) = $self->worker;
	my $queue = "own$self->{no}/f";
	my ($r, $bad) = $self->own(
		sub {
			my ($m, $r) = @_;
			my @got = map { $_->[0] } @{ $r->{rows} // [] };
			my $bad = $m->take_places($queue, @got);
			$m->{tasks}{$_}{batch} = 0 for grep { $m->{tasks}{$_} } @got;
			$m->start_run($m->{tasks}{$_}, $group, $worker, $self->{timeout}, 0) for $bad ? () : @got;
			return (undef, $bad);
		},
		"SELECT $claim_columns FROM tq.claim_work(\$1, \$2, \$3, \$4)", $queue, $group, $worker, $n) or return 0;
	$self->fault("claim_work($queue $n): $bad") if $bad;
	return 0 if $bad;
	$self->check_claim($_, $group, $worker) for @{ $r->{rows} };
	return scalar @{ $r->{rows} } if !@{ $r->{rows} };
	my @runs = map { [ $_->[0], 0 ] } @{ $r->{rows} };
	$self->own(sub { $_[0]->resolve('completed', undef, @runs); return undef }, 'SELECT tq.resolve($1, $2)',
		array_literal(map { $_->[0] } @runs), array_literal(map { 0 } @runs));
	return scalar @runs;
}

# Places are not rolled back.
sub own_fair
{
	my ($self) = @_;
	return $self->own_read if $self->{in_tx};
	$self->fair_create;
	$self->fair_claim(1 + int(rand(5)));
	$self->fair_create;
	1 while $self->fair_claim(1 + int(rand(6))) && !@{ $self->{faults} };
	my $left = grep { $_->{def}{queue} eq "own$self->{no}/f" && Model::state_of($_) eq 'pending' } values %{ $self->{model}{tasks} };
	$self->fault("own$self->{no}/f: $left tasks are not handed out") if $left && !@{ $self->{faults} };
	return;
}

sub own_quarantine
{
	my ($self) = @_;
	my ($group, $worker) = $self->worker;
	my $until = round_start($self->{round}) + pick(-1, 0.5, 0.5, 1.5) * ROUND_MS;
	my $queue = $self->own_queue;
	$self->own(
		sub { $_[0]->quarantine($until, $queue, $group, $worker) },
		'SELECT tq.quarantine_worker($1, $2, $3, $4)',
		$queue, $group, $worker, Plan::time_of($until));
	return;
}

sub own_counts
{
	my ($self) = @_;
	my $queue = $self->own_queue;
	my ($r, @want) = $self->own(
		sub { return (undef, $_[0]->queue_counts($queue)) },
		"SELECT c ->> 'pendingTasks', c ->> 'claimedTasks' FROM tq.task_queue_counts(\$1) AS c", $queue) or return;
	my @got = @{ $r->{rows}[0] };
	$self->fault("counts @got instead of @want") if "@got" ne "@want";
	return;
}

sub own_progress
{
	my ($self) = @_;
	my $gid = $self->own_group;
	my ($r, $want) = $self->own(
		sub { my $m = $_[0]; return $m->{groups}{$gid} ? (undef, $m->group_counts($gid)) : 'TQ404' },
		'SELECT tasks, unscheduled, delayed, pending, running, completed, failed, exception, tolerated, outcome'
		  . ' FROM tq.group_progress($1)', $gid) or return;
	my @got     = @{ $r->{rows}[0] };
	my $outcome = pop @got // '';
	my @want    = map { $want->{$_} // 0 } qw(tasks unscheduled delayed pending running completed failed exception tolerated);
	$self->fault("group_progress($gid): @got $outcome instead of @want " . join('|', sort keys %{ $want->{outcomes} }))
	  if "@got" ne "@want" || !$want->{outcomes}{$outcome};
	return;
}

sub own_dependents
{
	my ($self) = @_;
	my $id = $self->own_id;
	my ($r, @want) = $self->own(
		sub {
			my ($m) = @_;
			my $t = $m->task($id) or return 'TQ404';
			return (undef, sort grep { Model::expiry_of($m->task($_)) > $m->{now} } keys %{ $t->{dependents} });
		},
		'SELECT task_id FROM tq.list_dependent_tasks($1) ORDER BY task_id::text COLLATE "C"', $id) or return;
	my @got = map { $_->[0] } @{ $r->{rows} };
	$self->fault("list_dependent_tasks($id): @got instead of @want") if "@got" ne "@want";
	return;
}

# What is another client's, and what is too much.
sub own_foreign { return Trust::foreign($_[0]) }
sub own_quota   { return Trust::too_much($_[0]) }

# Bad input, always refused.
sub own_bad
{
	my ($self) = @_;
	my ($sql, @bind) = @{ pick(
		[ 'SELECT tq.create_task($1, $2)', slug_of('bad', 1), '{}' ],
		[ 'SELECT tq.create_tasks($1)', '{"a": 1}' ],
		[ 'SELECT * FROM tq.claim_work($1, $2, $3, $4)', $self->own_queue, 'g', 'w', 0 ],
		[ 'SELECT tq.set_queue($1, $2)', $self->own_queue, pick('{"rate": 1}', '{"maxPending": -1}', '{"paused": 1}', '7') ],
		[ 'SELECT * FROM tq.claim_work($1, $2, $3, $4)', 'a/b/c', 'g', 'w', 1 ],
		[ 'SELECT tq.report_exception($1, $2, $3)', $self->own_id, 0, pick('boredom', 'skipped', 'run-timeout', 'failed-terminal') ],
		[ 'SELECT tq.defer_task($1, 0, $2)', $self->own_id, '-1 s' ],
		[ 'SELECT * FROM tq.resolve($1, $2, $3)', array_literal($self->own_id), '{}', 'completed' ]) };
	$self->own(sub { return 'TQ400' }, $sql, @bind);
	return;
}

my @own_operations = (
	create      => 20, define  => 3, repeat => 4, create_tasks => 4, create_keyed => 3,
	repair      => 3,  retry_group => 2, reschedule => 3, add_dependencies => 10,
	schedule    => 6,  rerun   => 6, cancel => 3, read => 2,
	claim_work  => 17, claim_task => 5, reclaim => 5, defer => 4, claim_queues => 4,
	completed   => 10, failed  => 7, exception => 10, resolve => 6,
	resolve_each => 3, resolve_and_claim => 4,
	cancel_tasks => 0.5, move_tasks => 2, fair => 1.5, find => 3, apply => 3,
	set_queue   => 9,  pause => 1, resume => 3,
	skip        => 3,  redrive => 2, discard => 0.3, letters => 1, result => 1, required => 1,
	seal        => 1,  cancel_group => 1, quarantine => 1,
	counts      => 1,  progress => 2, dependents => 1, bad => 1,
	foreign     => 10, quota => 3);

# ---- shared tasks, written down ----

sub note
{
	my ($self, $kind, $r, %more) = @_;
	my $rec = { k => $kind, op => $self->{op}, client => $self->{no}, %more };
	@$rec{qw(a b e)} = @$r{qw(a b b)};
	$rec->{err} = $r->{err} if defined $r->{err};
	$rec->{msg} = $r->{msg} if defined $r->{err};
	$rec->{tx} = 1 if $self->{in_tx};
	$rec->{kept} = defined $r->{err} || $self->{in_tx} ? 0 : 1;
	push @{ $self->{records} }, $rec;
	return $rec;
}

# Which task, that this client may do something with.
sub target
{
	my ($self) = @_;
	my @at = $self->any_target;
	$at[2]++ if !may_give($self->{no}) && is_given(@at[ 1, 2 ]);
	return @at;
}

# (round, client, n), mostly one of the newest.
sub any_target
{
	my ($self) = @_;
	my $round = $self->{round};
	my $n     = $self->{counts}{$round} // 0;
	if (rand() < 0.8 || $round == 0)
	{
		return ($round, int(rand($self->{clients})), max(0, $n - int(rand(10))));
	}
	my $back = min($round, 1 + int(rand(3)));
	return ($round - $back, int(rand($self->{clients})),
		int(rand(($self->{counts}{ $round - $back } // 0) + 1)));
}

sub shared_target { my ($self) = @_; return shared_id($self->{seed}, $self->target) }

# A run: one that this client has claimed, or any other.
sub shared_run
{
	my ($self) = @_;
	my $held = $self->{held};
	if (@$held && rand() < 0.8)
	{
		my $at = int(rand(@$held));
		return rand() < 0.85 ? @{ splice(@$held, $at, 1) } : @{ $held->[$at] };
	}
	return ($self->shared_target, int(rand(2)));
}

sub shared_create
{
	my ($self) = @_;
	my @at = ($self->{round}, $self->{no}, 0);
	my $other;
	if (rand() < 0.75)
	{
		$at[2] = $self->{counts}{ $self->{round} }++;
	}
	else
	{
		@at = $self->target;
		$other = rand() < 0.2;
	}
	my $d = shared_task($self->{seed}, @at, $self->{clients});
	$d->{payload} += 1_000_000 if $other;
	return $self->try_create($d);
}

sub try_create
{
	my ($self, $d) = @_;
	my $r = $self->call('SELECT tq.create_task($1, $2)', $d->{id}, definition_json($d));
	return $self->note('create', $r, ids => [ $d->{id} ], defs => [$d], st => $r->{rows}[0][0]);
}

sub shared_create_tasks
{
	my ($self) = @_;
	my $round = $self->{round};
	my @defs = map { shared_task($self->{seed}, $round, $self->{no}, $self->{counts}{$round}++, $self->{clients}) }
	  0 .. 1 + int(rand(4));
	return $self->try_create_tasks(shuffle(@defs));
}

sub try_create_tasks
{
	my ($self, @defs) = @_;
	my $r = $self->call('SELECT tq.create_tasks($1)', batch_json(@defs));
	return $self->note('create_tasks', $r, ids => [ map { $_->{id} } @defs ], defs => \@defs,
		new => $r->{rows}[0][0]);
}

my %verbs = (schedule => 'schedule_task', rerun => 'rerun_task', cancel => 'cancel_task', skip => 'skip_task',
	read => 'status', redrive => 'redrive');

sub try_verb
{
	my ($self, $verb, $id) = @_;
	my $r = $self->call("SELECT tq.$verbs{$verb}(\$1)", $id);
	return $self->note($verb, $r, ids => [$id], st => $r->{rows}[0][0]);
}

sub shared_schedule { return $_[0]->try_verb('schedule', $_[0]->shared_target) }
sub shared_rerun    { return $_[0]->try_verb('rerun',    $_[0]->shared_target) }
sub shared_cancel   { return $_[0]->try_verb('cancel',   $_[0]->shared_target) }
sub shared_skip     { return $_[0]->try_verb('skip',     $_[0]->shared_target) }
sub shared_read     { return $_[0]->try_verb('read',     $_[0]->shared_target) }

# Past the deadline that would be a new task, which no plan has.
sub shared_redrive
{
	my ($self) = @_;
	my @at = $self->target;
	my $d  = shared_task($self->{seed}, @at, $self->{clients});
	my $may = $d->{deadline} > round_start($self->{round}) && !defined policy_of($d)->{total};
	return $self->try_verb($may ? 'redrive' : 'read', $d->{id});
}

sub shared_defer
{
	my ($self) = @_;
	my ($loose) = grep { is_loose($_->[0]) } shuffle(@{ $self->{held} });
	return $self->try_defer(@$loose) if $loose && rand() < 0.9;
	for (1 .. 5)
	{
		my $id = $self->shared_target;
		return $self->try_defer($id, int(rand(2))) if is_loose($id);
	}
	return $self->shared_read;
}

sub try_defer
{
	my ($self, $id, $i) = @_;
	my $after = rand() < 0.6 ? 0 : random_wait(sub { return int(rand($_[0])) });
	my $r = $self->call("SELECT tq.defer_task(\$1, \$2, \$3::int * interval '1 ms')", $id, $i, $after);
	return $self->note('defer', $r, ids => [$id], run => $i, st => $r->{rows}[0][0]);
}

sub note_claims
{
	my ($self, $kind, $r, %more) = @_;
	my @claims = map { [ @$_[ 0, 1, 2, 3, 4 ] ] } @{ $r->{rows} // [] };
	my $rec = $self->note($kind, $r, %more, claims => \@claims);
	return $rec if $self->{phase} eq 'D';
	push @{ $self->{in_tx} ? $self->{tx_held} : $self->{held} }, map { [ @$_[ 0, 1 ] ] } @claims;
	splice(@{ $self->{held} }, 0, @{ $self->{held} } - 30) if @{ $self->{held} } > 30;
	return $rec;
}

sub shared_claim_work
{
	my ($self) = @_;
	return $self->try_claim_work(pick(Trust::to_work($self->{no})), $self->worker, 1 + int(rand(5)));
}

sub try_claim_work
{
	my ($self, @b) = @_;
	my $r = $self->call("SELECT $claim_columns FROM tq.claim_work(\$1, \$2, \$3, \$4)", @b);
	return $self->note_claims('claim_work', $r, ids => [], worker => "$b[1]/$b[2]", queue => $b[0], max => $b[3]);
}

sub shared_claim_task
{
	my ($self) = @_;
	return $self->try_claim_task($self->shared_target, int(rand(1.3)));
}

sub try_claim_task
{
	my ($self, $id, $i) = @_;
	my ($group, $worker) = $self->worker;
	my $r = $self->call("SELECT $claim_columns FROM tq.claim_task(\$1, \$2, \$3, \$4)", $id, $i, $group, $worker);
	return $self->note_claims('claim_task', $r, ids => [$id], run => $i, worker => "$group/$worker");
}

sub shared_reclaim
{
	my ($self) = @_;
	my $held = $self->{held};
	my ($id, $i) = @$held && rand() < 0.8 ? @{ pick(@$held) } : ($self->shared_target, 0);
	return $self->try_reclaim($id, $i);
}

sub try_reclaim
{
	my ($self, $id, $i) = @_;
	my $r = $self->call("SELECT $claim_columns FROM tq.reclaim_task(\$1, \$2)", $id, $i);
	return $self->note('reclaim', $r, ids => [$id], run => $i, taken => $r->{rows}[0][4]);
}

sub shared_report
{
	my ($self, $reason) = @_;
	return $self->try_report($self->shared_run, $reason);
}

sub try_report
{
	my ($self, $id, $i, $reason) = @_;
	my $r = $self->call(report_sql($reason, $id, $i, (words($reason))[0]));
	return $self->note('report', $r, ids => [$id], run => $i, reason => $reason, st => $r->{rows}[0][0]);
}

sub shared_completed { return $_[0]->shared_report('completed') }
sub shared_failed    { return $_[0]->shared_report('failed') }
sub shared_exception { return $_[0]->shared_report(pick(@exceptions)) }

sub shared_resolve
{
	my ($self) = @_;
	my $reason = rand() < 0.6 ? 'completed' : pick(@reasons);
	return $self->try_resolve($reason, shuffle(map { [ $self->shared_run ] } 0 .. int(rand(6))));
}

sub try_resolve
{
	my ($self, $reason, @runs) = @_;
	my $r = $self->call(
		'SELECT task_id, run_id, outcome FROM tq.resolve($1, $2, $3)',
		array_literal(map { $_->[0] } @runs), array_literal(map { $_->[1] } @runs), $reason);
	return $self->note('resolve', $r, ids => [ map { $_->[0] } @runs ], runs => \@runs, reason => $reason,
		outcomes => $r->{rows});
}

sub current_group
{
	my ($self) = @_;
	my $k = int(($self->{counts}{ $self->{round} } // 0) / Plan::GROUP_TASKS);
	return shared_group($self->{seed}, $self->{round}, max(0, $k - int(rand(3))));
}

sub shared_seal         { my ($s) = @_; return $s->try_seal($s->current_group) }
sub shared_cancel_group { my ($s) = @_; return $s->try_cancel_group($s->current_group) }

sub try_seal
{
	my ($self, $gid) = @_;
	my $r = $self->call('SELECT tq.seal_task_group($1)', $gid);
	return $self->note('seal', $r, ids => [], group => $gid);
}

sub try_cancel_group
{
	my ($self, $gid) = @_;
	my $r = $self->call(
		"SELECT r ->> 'taskGroupSize', ARRAY(SELECT jsonb_array_elements_text(r -> 'taskIds'))"
		  . ' FROM tq.cancel_task_group($1) AS r', $gid);
	return $self->note('cancel_group', $r, ids => $r->{rows}[0][1] // [], group => $gid, size => $r->{rows}[0][0]);
}

sub shared_upkeep
{
	my ($self) = @_;
	my $r = $self->call('SELECT step, tasks FROM tq.upkeep()');
	return $self->note('upkeep', $r, ids => []);
}

my @shared_operations = (
	create     => 22, create_tasks => 3,
	schedule   => 4,  rerun => 6, cancel => 3, read => 3, skip => 2, redrive => 1,
	claim_work => 18, claim_task => 6, reclaim => 4, defer => 5,
	completed  => 11, failed => 6, exception => 9, resolve => 8,
	seal       => 0.7, cancel_group => 0.7);

# ---- transactions and phases ----

sub choose
{
	my @weights = @_;
	my $sum = 0;
	$sum += $weights[ 2 * $_ + 1 ] for 0 .. @weights / 2 - 1;
	my $at = rand($sum);
	for (my $i = 0; $i < @weights; $i += 2)
	{
		$at -= $weights[ $i + 1 ];
		return $weights[$i] if $at < 0;
	}
	return $weights[0];
}

sub step
{
	my ($self, $own) = @_;
	my $name =
	    $own                    ? 'own_' . choose(@own_operations)
	  : $self->{phase} eq 'U'   ? 'shared_' . choose(@shared_operations, upkeep => 4)
	  :                           'shared_' . choose(@shared_operations);
	return $self->$name;
}

# Several operations in one transaction, which may come to nothing.
sub transaction
{
	my ($self, $own) = @_;
	my $dbh    = $self->{dbh};
	my $before = $own ? dclone($self->{model}) : undef;
	my $first  = @{ $self->{records} };
	my $keep   = rand() < 0.6;
	@$self{qw(in_tx tx_held)} = (1, []);
	$dbh->begin_work;
	for (0 .. 1 + int(rand(3)))
	{
		my $save  = rand() < 0.5;
		my $back  = $save && rand() < 0.3;
		my $inner = $own && $save ? dclone($self->{model}) : undef;
		my $at    = @{ $self->{records} };
		my $held  = @{ $self->{tx_held} };
		$dbh->do('SAVEPOINT s') if $save;
		$self->step($own);
		return $self->finish_transaction(0, $first, $before) if $self->{last_err} && !$save;
		if ($back || $self->{last_err})
		{
			$dbh->do('ROLLBACK TO SAVEPOINT s');
			$self->restore($inner) if $own;
			$_->{lost} = 1 for @{ $self->{records} }[ $at .. $#{ $self->{records} } ];
			splice(@{ $self->{tx_held} }, $held);
		}
		elsif ($save && rand() < 0.5)
		{
			$dbh->do('RELEASE SAVEPOINT s');
		}
	}
	return $self->finish_transaction($keep, $first, $before);
}

sub finish_transaction
{
	my ($self, $keep, $first, $before) = @_;
	my $dbh = $self->{dbh};
	$keep ? $dbh->commit : $dbh->rollback;
	my $end = $self->virtual;
	for my $rec (@{ $self->{records} }[ $first .. $#{ $self->{records} } ])
	{
		$rec->{e} = $end;
		$rec->{kept} = 1 if $keep && !$rec->{lost} && !$rec->{err};
	}
	if ($keep)
	{
		push @{ $self->{held} }, @{ $self->{tx_held} };
	}
	elsif ($before)
	{
		$self->restore($before);
	}
	$self->{in_tx} = 0;
	return;
}

# The model as it was, but for what is not rolled back.
sub restore
{
	my ($self, $model) = @_;
	$model->{claims} = $self->{model}{claims};
	$self->{model} = $model;
	return;
}

# Begin a round: the clock stands at its start, wherever the real one is.
sub start_round
{
	my ($self, $round, $shift_ms) = @_;
	@$self{qw(round shift_ms records)} = ($round, $shift_ms, []);
	$self->as_superuser(sub { $self->{dbh}->do(sprintf("SET tq.clock_offset = '%.6f s'", $shift_ms / 1000)) });
	Trust::use_up($self) if $round == 0;
	my $queue = $self->{queues}[1];
	$self->own_settings($queue, { keyConcurrentLimit => 2 }, 'SELECT tq.set_queue($1, $2)', $queue, '{"keyConcurrentLimit": 2}') if $round == 0;
	$self->{dbh}->do('SELECT tq.set_queue($1, $2)', undef, "own$self->{no}/f",
		'{"fairnessWeights": {' . join(',', map { "\"$_\": $weights{$_}" } sort keys %weights) . '}}') if $round == 0;
	return;
}

# P: own and shared tasks, no client does upkeep.  U: shared tasks and upkeep.
sub phase
{
	my ($self, $phase, $ops) = @_;
	my $until = $self->{done} + $ops;
	$self->{phase} = $phase;
	while ($self->{done} < $until && !@{ $self->{faults} })
	{
		$self->{op}++;
		srand((seed_numbers('op', $self->{seed}, $self->{no}, $self->{op}))[0]);
		my $own = rand() < 0.5 && $phase eq 'P';
		if (rand() < 0.1 && ($own || $self->{round} % 2))
		{
			$self->transaction($own);
		}
		else
		{
			$self->step($own);
		}
	}
	return;
}

# D: all clients at one task at the same moment (Duel.pm).
sub duel
{
	my ($self, $step, $slot) = @_;
	return if @{ $self->{faults} };
	$self->{phase} = 'D';
	$self->{op}++;
	srand((seed_numbers('duel', $self->{seed}, $self->{no}, $self->{round}, $slot, $step))[0]);
	Duel::prepare($self, $slot) if $step eq 'prepare';
	Duel::fire($self, $slot) if $step eq 'fire';
	return;
}

# A transaction that lasts long enough for the others to come in between.
sub hold
{
	my ($self, $keep, $work) = @_;
	my $first = @{ $self->{records} };
	@$self{qw(in_tx tx_held)} = (1, []);
	$self->{dbh}->begin_work;
	my $rec = $work->();
	if ($rec->{err})
	{
		$keep = 0;
	}
	else
	{
		$self->{dbh}->do('SELECT pg_sleep(' . HOLD_MS / 1000 . ')');
	}
	$self->finish_transaction($keep, $first, undef);
	return $rec;
}

# After upkeep, by which all was done between these times that was due: compare
# everything.  In calm no other session has done upkeep.
sub settle
{
	my ($self, $from, $to, $is_calm) = @_;
	my $m = $self->{model};
	return if @{ $self->{faults} };
	my $r    = $self->call('SELECT task_id, status FROM tq.statuses($1)', array_literal($m->ids));
	my %text = map { $_->[0] => $_->[1] } @{ $r->{rows} };
	my %got  = map { $_ => parse_status($text{$_}) } keys %text;
	$self->{dbh}->do('RESET SESSION AUTHORIZATION');
	my $waits = $self->call('SELECT t.task_id FROM tq_internal.delayed d JOIN tq_internal.task t ON t.id = d.task'
		  . " WHERE d.visible_at = 'infinity' AND t.task_id = ANY (\$1::tq.slugid[])", array_literal($m->ids));
	my %parked = map { $_->[0] => 1 } @{ $waits->{rows} };
	my $holders = $self->call('SELECT t.task_id FROM tq_internal.gate_member g JOIN tq_internal.task t ON t.id = g.task'
		  . ' WHERE g.kind = 1 AND g.state = 0 AND t.task_id = ANY ($1::tq.slugid[])', array_literal($m->ids));
	my %holding = map { $_->[0] => 1 } @{ $holders->{rows} };
	$self->{dbh}->do($self->take_role);
	$m->at($from, $to);
	$self->fault("round $self->{round}: $_") for $m->upkeep($is_calm, \%got, \%parked, \%holding);
	for my $id (grep { $m->task($_) } sort keys %got)
	{
		my $bad = $m->differs($id, $got{$id});
		$self->fault("round $self->{round}: $bad in $text{$id}") if $bad;
	}
	$self->own_counts;
	$self->own_progress;
	$self->own_letters;
	$self->forget unless $is_calm;
	return;
}

# Own tasks that can change no more need no more comparing.
sub forget
{
	my ($self) = @_;
	my $m   = $self->{model};
	my $now = round_start($self->{round});
	$self->{own} = [ @{ $self->{own} }[ max(0, @{ $self->{own} } - 60) .. $#{ $self->{own} } ] ];
	my %near = map { $_ => 1 } @{ $self->{own} };
	my %reached = map { $_ => 1 } $m->downstream(map { keys %{ $m->{groups}{ Model::group_of($_->{def}) }{tasks} // {} } } grep { $_ } map { $m->task($_) } @{ $self->{own} });
	for my $id ($m->ids)
	{
		my $t = $m->task($id);
		next if $near{$id} || $reached{$id} || Model::deadline_of($t) >= $now;
		my $gid = $t->{def}{group} // $id;
		my $key = Model::key_of($t->{def});
		next if $t->{admitted} || defined $key && ($m->{keys}{$key} // '') eq $id;
		next if grep { $m->task($_) } keys %{ $t->{dependents} };
		next if $near{$gid} || grep { $near{$_} } keys %{ $m->{groups}{$gid}{tasks} // {} };
		push @{ $self->{old} }, Model::expiry_of($t);
		delete $m->{groups}{$gid};
		delete $m->{tasks}{$id};
		delete $m->task($_)->{dependents}{$id} for grep { $m->task($_) } @{ $t->{def}{deps} };
	}
	return;
}

# How many own tasks the server must have at least, and may have at most.
sub own_total
{
	my ($self) = @_;
	my $limit = round_start($self->{round});
	@{ $self->{old} } = grep { $_ >= $limit - EXPIRY_MS } @{ $self->{old} };
	my $known = keys %{ $self->{model}{tasks} };
	return ($known + grep({ $_ >= $limit } @{ $self->{old} }), $known + @{ $self->{old} });
}

1;
