# Model.pm
#	  The reference model: what the server must do with one client's own tasks.
#
# Plain data and the rules of spec/taskcluster.md, outside the server.  Each
# operation is called after the server's answer is known, with the window of
# virtual time in which the server was at work, and returns the SQLSTATE it
# expects or undef.  A time that only the server knows is a window [from, to]
# until it is seen, and must stay as it was seen from then on.
# Who changes the model's tasks: only this client, and upkeep between phases.
package Model;

use strict;
use warnings;

use List::Util qw(max min);

use Plan qw(MAX_RUNS SLACK_MS EXPIRY_MS definition_json);
use Status qw(%worker_reasons);

use constant DRIFT_MS => 15 * 60_000;
use constant DAY_MS   => 86_400_000;

sub new
{
	my ($class) = @_;
	return bless { tasks => {}, groups => {}, workers => {}, batch => 0, win => [ 0, 0 ] }, $class;
}

# The server was at work between these virtual times, in ms.
sub at
{
	my ($m, $from, $to) = @_;
	$m->{win} = [ $from, $to ];
	$m->{now} = $from;
	$m->{batch}++;
	return;
}

sub task    { return $_[0]{tasks}{ $_[1] } }
sub ids     { return sort keys %{ $_[0]{tasks} } }
sub expires { my ($d) = @_; return $d->{expires} // $d->{deadline} + 366 * DAY_MS }

sub state_of
{
	my ($t) = @_;
	return @{ $t->{runs} } ? $t->{runs}[-1]{state} : 'unscheduled';
}

sub is_resolved { return state_of($_[0]) =~ /^(?:completed|failed|exception)$/ }

# ---- creation ----

sub bad_dates
{
	my ($m, $d) = @_;
	my $now = $m->{now};
	return
		 $d->{created} < $now - DRIFT_MS
	  || $d->{created} > $now + DRIFT_MS
	  || $d->{created} > $d->{deadline}
	  || $d->{deadline} < $now
	  || $d->{deadline} - $now > 5 * DAY_MS + DRIFT_MS
	  || $d->{deadline} > expires($d);
}

sub group_conflict
{
	my ($m, $d) = @_;
	my $g = $m->{groups}{ $d->{group} // $d->{id} } or return 0;
	return $g->{sealed} || $g->{scheduler} ne ($d->{scheduler} // '-');
}

sub bad_dependencies
{
	my ($m, $d) = @_;
	for my $dep (@{ $d->{deps} })
	{
		next if $dep eq $d->{id};
		my $t = $m->{tasks}{$dep} or return 1;
		return 1 if expires($t->{def}) < $d->{deadline};
	}
	return 0;
}

sub add_pending
{
	my ($m, $t, $why) = @_;
	push @{ $t->{runs} }, { state => 'pending', reasonCreated => $why, scheduled => $m->{win} };
	$t->{batch} = $m->{batch};
	return;
}

sub add_task
{
	my ($m, $d) = @_;
	my $gid = $d->{group} // $d->{id};
	my $g   = $m->{groups}{$gid} //= { scheduler => $d->{scheduler} // '-', tasks => {} };
	$g->{tasks}{ $d->{id} } = 1;
	return $m->{tasks}{ $d->{id} } =
	  { def => $d, runs => [], left => $d->{retries}, unmet => {}, dependents => {} };
}

# An edge is met by what its required task is now, or by what it becomes.
sub add_edges
{
	my ($m, $t) = @_;
	for my $dep (@{ $t->{def}{deps} })
	{
		my $r = $m->{tasks}{$dep};
		$r->{dependents}{ $t->{def}{id} } = 1;
		my $state = state_of($r);
		my $met   = $t->{def}{all} ? is_resolved($r) : $state eq 'completed';
		$t->{unmet}{$dep} = 1 unless $met;
	}
	$m->add_pending($t, 'scheduled') unless %{ $t->{unmet} };
	return;
}

sub create
{
	my ($m, $d) = @_;
	return 'TQ400' if $m->bad_dates($d);
	return 'TQ409' if $m->group_conflict($d);
	if (my $t = $m->{tasks}{ $d->{id} })
	{
		return definition_json($t->{def}) eq definition_json($d) ? undef : 'TQ409';
	}
	return 'TQ400' if $m->bad_dependencies($d);
	$m->add_edges($m->add_task($d));
	return;
}

# New tasks that may name each other; nothing in it is there already.
sub create_many
{
	my ($m, @defs) = @_;
	return 'TQ400' if grep { $m->bad_dates($_) } @defs;
	return 'TQ409' if grep { $m->group_conflict($_) } @defs;
	my @tasks = map { $m->add_task($_) } @defs;
	if (grep { $m->bad_dependencies($_) } @defs)
	{
		$m->remove_task($_->{id}) for @defs;
		return 'TQ400';
	}
	for my $t (@tasks)
	{
		$m->add_edges($t);
		$m->{batch}++;
	}
	return;
}

sub remove_task
{
	my ($m, $id) = @_;
	my $t   = delete $m->{tasks}{$id};
	my $gid = $t->{def}{group} // $id;
	for my $dep (@{ $t->{def}{deps} })
	{
		delete $m->{tasks}{$dep}{dependents}{$id} if $m->{tasks}{$dep};
	}
	my $g = $m->{groups}{$gid} or return;		# forgotten already
	delete $g->{tasks}{$id};
	delete $m->{groups}{$gid} unless %{ $g->{tasks} };
	return;
}

# ---- resolution ----

# These tasks are resolved for good: whom does that release?
sub release
{
	my ($m, @ids) = @_;
	for my $id (@ids)
	{
		my $t = $m->{tasks}{$id};
		for my $dep (sort keys %{ $t->{dependents} })
		{
			my $d = $m->{tasks}{$dep};
			next unless $d->{unmet}{$id} && ($d->{def}{all} || state_of($t) eq 'completed');
			delete $d->{unmet}{$id};
			$m->add_pending($d, 'scheduled')
			  if !%{ $d->{unmet} } && !@{ $d->{runs} } && $d->{def}{deadline} >= $m->{now};
		}
	}
	return;
}

# End the last run; true when the task is resolved for good by that.  There is
# no retry past the deadline.
sub end_run
{
	my ($m, $t, $reason, $retry) = @_;
	my $run = $t->{runs}[-1];
	$run->{state} =
	  $reason eq 'completed' || $reason eq 'failed' ? $reason : 'exception';
	$run->{reasonResolved} = $reason;
	$run->{resolved}       = $m->{win};
	if ($retry && $t->{left} > 0 && $m->{now} < $t->{def}{deadline})
	{
		$t->{left}--;
		$m->add_pending($t, $retry);
		return 0;
	}
	return 1;
}

# What cancel and the deadline do to a task that is not resolved.
sub end_task
{
	my ($m, $t, $reason) = @_;
	if (!@{ $t->{runs} })
	{
		push @{ $t->{runs} },
		  {
			state          => 'exception',
			reasonCreated  => 'exception',
			reasonResolved => $reason,
			scheduled      => $m->{win},
			resolved       => $m->{win}
		  };
		return;
	}
	$m->end_run($t, $reason, '');
	return;
}

# One run of a batch: its outcome, and whether the task is resolved for good.
sub resolve_run
{
	my ($m, $id, $i, $reason) = @_;
	my $t = $m->{tasks}{$id} or return ('not-found', 0);
	my $run = $i >= 0 && $t->{runs}[$i] or return ('not-found', 0);
	if ($i == $#{ $t->{runs} } && $run->{state} eq 'running')
	{
		my $final = $m->end_run($t, $reason, $worker_reasons{$reason});
		return ($final ? 'resolved' : 'retried', $final);
	}
	my $after = $reason eq 'completed' || $reason eq 'failed' ? 0 : 1;
	return ('repeated', 0)
	  if ($run->{reasonResolved} // '') eq $reason && $#{ $t->{runs} } - $i <= $after;
	return ('conflict', 0);
}

# The batch; one report is a batch of one.  Returns the outcomes.
sub resolve
{
	my ($m, $reason, @runs) = @_;
	my (@outcomes, @final);
	for my $r (@runs)
	{
		my ($outcome, $final) = $m->resolve_run(@$r, $reason);
		push @outcomes, $outcome;
		push @final, $r->[0] if $final;
	}
	$m->release(@final);
	return @outcomes;
}

# ---- what anybody may do ----

sub schedule
{
	my ($m, $id) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $t->{def}{deadline} < $m->{now};
	$m->add_pending($t, 'scheduled') unless @{ $t->{runs} };
	return;
}

sub rerun
{
	my ($m, $id) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $t->{def}{deadline} < $m->{now};
	my $n = @{ $t->{runs} };
	return if $n && !is_resolved($t);
	return 'TQ409' if $n >= MAX_RUNS;
	$t->{left} = min($t->{def}{retries}, MAX_RUNS - ($n + 1));
	$m->add_pending($t, 'rerun');
	return;
}

sub cancel
{
	my ($m, $id) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $t->{def}{deadline} < $m->{now};
	return if is_resolved($t);
	$m->end_task($t, 'canceled');
	$m->release($id);
	return;
}

sub seal
{
	my ($m, $gid) = @_;
	my $g = $m->{groups}{$gid} or return 'TQ404';
	$g->{sealed} = 1;
	return;
}

# Returns an SQLSTATE, or undef and the ids that were cancelled.
sub cancel_group
{
	my ($m, $gid) = @_;
	my $g = $m->{groups}{$gid} or return 'TQ404';
	return 'TQ409' unless $g->{sealed};
	my @ids = grep { my $t = $m->{tasks}{$_}; !is_resolved($t) && $t->{def}{deadline} > $m->{now} }
	  sort keys %{ $g->{tasks} };
	$m->end_task($m->{tasks}{$_}, 'canceled') for @ids;
	$m->release(@ids);
	return (undef, @ids);
}

# ---- workers ----

sub quarantined
{
	my ($m, @worker) = @_;
	return ($m->{workers}{ join('/', @worker) } // 0) > $m->{now};
}

sub quarantine
{
	my ($m, $until, @worker) = @_;
	return 'TQ404' unless exists $m->{workers}{ join('/', @worker) };
	$m->{workers}{ join('/', @worker) } = $until;
	return;
}

sub start_run
{
	my ($m, $t, $group, $worker, $timeout, $by_task) = @_;
	my $run = $t->{runs}[-1];
	@$run{qw(state workerGroup workerId by_task started takenUntil)} = (
		'running', $group, $worker, $by_task, $m->{win},
		[ map { $_ + $timeout } @{ $m->{win} } ]);
	return;
}

# Pending runs of a queue in the order of claims: [priority, batch, id].
sub line
{
	my ($m, $queue) = @_;
	return sort { $b->[0] <=> $a->[0] || $a->[1] <=> $b->[1] }
	  map { [ $_->{def}{priority}, $_->{batch}, $_->{def}{id} ] }
	  grep {
		     $_->{def}{queue} eq $queue
		  && state_of($_) eq 'pending'
		  && $_->{def}{deadline} > $m->{now}
	  } values %{ $m->{tasks} };
}

# The server handed out these [id, run]; returns what is wrong with that.
# Runs that became pending by one operation are in no order among themselves.
sub claim_work
{
	my ($m, $queue, $group, $worker, $n, $timeout, @got) = @_;
	my $away = $m->quarantined($queue, $group, $worker);
	$m->{workers}{"$queue/$group/$worker"} //= 0;
	my @line = $away ? () : $m->line($queue);
	my %at   = map { $_->[2] => $_ } @line;
	my $want = min($n, scalar @line);
	return "$want claims expected" if @got != $want;
	for my $i (0 .. $#got)
	{
		my ($id, $run) = @{ $got[$i] };
		my $row = delete $at{$id} or return "$id was not to be claimed";
		return "$id is out of order"
		  if $row->[0] != $line[$i][0] || $row->[1] != $line[$i][1];
		my $t = $m->{tasks}{$id};
		return "$id: run $run" if $run != $#{ $t->{runs} };
		$m->start_run($t, $group, $worker, $timeout, 0);
	}
	return;
}

# Returns an SQLSTATE, or undef and the number of rows.
sub claim_task
{
	my ($m, $id, $i, $group, $worker, $timeout) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $t->{def}{deadline} <= $m->{now};
	return (undef, 0) if $m->quarantined($t->{def}{queue}, $group, $worker);
	my $run = $t->{runs}[$i] or return 'TQ404';
	return 'TQ409' if $i != $#{ $t->{runs} };
	return (undef, 1)
	  if $run->{state} eq 'running'
	  && $run->{by_task}
	  && $run->{workerGroup} eq $group
	  && $run->{workerId} eq $worker;
	return 'TQ409' if $run->{state} ne 'pending';
	$m->start_run($t, $group, $worker, $timeout, 1);
	return (undef, 1);
}

sub reclaim
{
	my ($m, $id, $i, $timeout) = @_;
	my $t   = $m->{tasks}{$id} or return 'TQ404';
	my $run = $t->{runs}[$i]   or return 'TQ404';
	return 'TQ409' if $t->{def}{deadline} <= $m->{now};
	return 'TQ409' if $i != $#{ $t->{runs} } || $run->{state} ne 'running';
	$m->{workers}{"$t->{def}{queue}/$run->{workerGroup}/$run->{workerId}"} //= 0;
	my $taken = $run->{takenUntil};
	my $least = ref $taken ? $taken->[0] : $taken;
	$run->{takenUntil} = [ map { max($least, $_ + $timeout) } @{ $m->{win} } ];
	return;
}

# ---- time ----

# Upkeep until nothing is due: deadlines, expired claims, expiry.  These ids the
# server has afterwards: a task that has expired may be among them for a while.
# Returns what is wrong with that.
sub upkeep
{
	my ($m, @there) = @_;
	my (@final, @bad);
	my $now = $m->{now};
	for my $t (map { $m->{tasks}{$_} } $m->ids)
	{
		next if is_resolved($t);
		my $run = $t->{runs}[-1];
		if ($t->{def}{deadline} < $now)
		{
			$m->end_task($t, 'deadline-exceeded');
			push @final, $t->{def}{id};
		}
		elsif ($run && $run->{state} eq 'running' && taken_before($run, $now))
		{
			push @final, $t->{def}{id} if $m->end_run($t, 'claim-expired', 'retry');
		}
	}
	$m->release(@final);
	my %there = map { $_ => 1 } @there;
	for my $id ($m->ids)
	{
		my $age = $now - expires($m->{tasks}{$id}{def});
		push @bad, "$id has not expired" if $there{$id} && $age > SLACK_MS + EXPIRY_MS;
		next if $there{$id};
		push @bad, "$id is lost" if $age <= SLACK_MS;
		$m->remove_task($id);
	}
	return @bad;
}

sub taken_before
{
	my ($run, $now) = @_;
	my $taken = $run->{takenUntil};
	return (ref $taken ? $taken->[1] : $taken) < $now;
}

# ---- comparison ----

# What differs between a status of the server and the model; times that are
# seen for the first time are learnt.
sub differs
{
	my ($m, $id, $s) = @_;
	my $t    = $m->{tasks}{$id} or return 'there is no such task';
	my $runs = $t->{runs};
	return 'state ' . state_of($t) . " expected" if $s->{state} ne state_of($t);
	return scalar(@$runs) . ' runs expected' if @$runs != @{ $s->{runs} };
	return "retriesLeft $t->{left} expected" if $s->{retriesLeft} != $t->{left};
	for my $i (0 .. $#$runs)
	{
		my ($want, $got) = ($runs->[$i], $s->{runs}[$i]);
		for my $k (qw(state reasonCreated reasonResolved workerGroup workerId))
		{
			return "run $i: $k " . ($want->{$k} // 'absent') . ' expected'
			  if ($want->{$k} // '') ne ($got->{$k} // '');
		}
		for my $k (qw(scheduled started takenUntil resolved))
		{
			return "run $i: $k" if exists $want->{$k} != exists $got->{$k};
			next unless exists $want->{$k};
			if (ref $want->{$k})
			{
				return "run $i: $k not in its window"
				  if $got->{$k} < $want->{$k}[0] || $got->{$k} > $want->{$k}[1];
				$want->{$k} = $got->{$k};
			}
			return "run $i: $k has changed" if $got->{$k} != $want->{$k};
		}
	}
	return;
}

# Numbers of a group by state, for group_progress().
sub group_counts
{
	my ($m, $gid) = @_;
	my %n;
	$n{ state_of($m->{tasks}{$_}) }++ for keys %{ $m->{groups}{$gid}{tasks} };
	return \%n;
}

# Pending and running of a queue, as task_queue_counts() counts them.
sub queue_counts
{
	my ($m, $queue) = @_;
	my @all     = grep { $_->{def}{queue} eq $queue } values %{ $m->{tasks} };
	my $running = grep { state_of($_) eq 'running' && !taken_before($_->{runs}[-1], $m->{now}) } @all;
	my @line = $m->line($queue);
	return (scalar(@line), $running);
}

1;
