# Model.pm
#	  The reference model: what the server must do with one client's own tasks.
#
# Plain data and the rules of doc/spec/taskcluster.md and doc/spec/policy.md, outside the
# server.  Each operation is called after the server's answer is known, with the
# window of virtual time in which the server was at work, and returns the
# SQLSTATE it expects or undef.  A time that only the server knows is a window
# [from, to] until it is seen, and must stay as it was seen from then on.
# Only this client changes the model's tasks, and upkeep between phases.
#
# What upkeep does when several things are due at once depends on which session
# is first, and a group that a task takes with it is cancelled sooner or later
# than that.  So there the model follows the server, among what may be (upkeep()).
package Model;

use strict;
use warnings;

use List::Util qw(max min sum0);

use Plan qw(MAX_RUNS EXPIRY_MS NEAR_MS definition_json policy_fault policy_of has_policy first_delay
  budget_of delay_of is_tolerated is_fatal is_dead outcome_of bytes_of);
use Status qw(state_for %retry_name);

use constant DRIFT_MS => 15 * 60_000;
use constant DAY_MS   => 86_400_000;

sub new
{
	my ($class) = @_;
	return bless { tasks => {}, groups => {}, workers => {}, letters => {}, settings => {}, claims => {}, keys => {}, made => 0, batch => 0, win => [ 0, 0 ] }, $class;
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

# When the task expires, which a repair may have changed.
sub expiry_of { my ($t) = @_; return $t->{expires} // expires($t->{def}) }

sub state_of
{
	my ($t) = @_;
	return @{ $t->{runs} } && !$t->{waits} ? $t->{runs}[-1]{state} : 'unscheduled';
}

# The run of which the state is, unless the task is unscheduled.
sub last_run { my ($t) = @_; return $t->{waits} ? undef : $t->{runs}[-1] }

# The earliest that a time can be, of which a window may be all that is known.
sub least { my ($time) = @_; return ref $time ? $time->[0] : $time }

# The latest that it can be.
sub most { my ($time) = @_; return ref $time ? $time->[1] : $time }

# Is a time over?  Nothing is near that is not over (Plan.pm), or that did not
# begin with this round, as what takes no time at all does.
sub is_over { my ($m, $time) = @_; return defined $time && least($time) <= $m->{now} + NEAR_MS / 2 }

# A time, and so many ms more, or up to so many.
sub later
{
	my ($time, $ms, $most) = @_;
	return ref $time ? [ $time->[0] + $ms, $time->[1] + ($most // $ms) ] : $time + $ms;
}

# The deadline that holds.
sub deadline_of { my ($t) = @_; return defined $t->{due} ? least($t->{due}) : $t->{def}{deadline} }
sub is_late     { my ($m, $t) = @_; return $m->is_over(deadline_of($t)) }

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
		return 1 if expiry_of($t) < $d->{deadline};
	}
	return 0;
}

# ---- runs ----

# A run that is pending: what: attempt, lost; wait: from and to so many ms from
# now; until: when it is pending too long, if it inherits that.
sub add_run
{
	my ($m, $t, $why, $wait, %what) = @_;
	my $p   = policy_of($t->{def});
	my $run = { state => 'pending', reasonCreated => $why, scheduled => $m->{win}, %what };

	$run->{visibleAt} = later($m->{win}, @$wait) if $wait->[1] > 0;
	$run->{until} //= later($run->{visibleAt} // $m->{win}, $p->{pending}) if defined $p->{pending};
	my $is_first = is_new($t);
	delete $t->{waits};
	push @{ $t->{runs} }, $run;
	$t->{batch} = $t->{since} = $m->{batch};
	$run->{parked} = 1 if $wait->[1] <= 0 && $m->is_gated($t);
	begin_total_time($t, $m->{win}) if $is_first;
	return;
}

# Was this task never pending?
sub is_new { my ($t) = @_; return !grep { $_->{reasonCreated} !~ /^(?:exception|skip)$/ } @{ $t->{runs} } }

# The total time begins when a task becomes pending for the first time.
sub begin_total_time
{
	my ($t, $now) = @_;
	my $p = policy_of($t->{def});
	return if !defined $p->{total} || $p->{alert};
	my $due = later($now, $p->{total});
	@$t{qw(due untimed)} = ($due, $t->{due}) if least($due) < deadline_of($t);
	return;
}

sub add_first
{
	my ($m, $t) = @_;
	my $delay = first_delay($t->{def});
	my $why   = $t->{waits} ? 'rerun' : 'scheduled';
	$m->add_run($t, $why, [ $delay, $delay ], attempt => 0, lost => policy_of($t->{def})->{lost}, first => 1);
	return;
}

sub add_task
{
	my ($m, $d) = @_;
	my $gid = $d->{group} // $d->{id};
	my $g   = $m->{groups}{$gid} //= { scheduler => $d->{scheduler} // '-', tasks => {} };
	$g->{tasks}{ $d->{id} } = 1;
	$m->{queues}{ $d->{queue} } = 1;
	return $m->{tasks}{ $d->{id} } =
	  { def => $d, runs => [], left => $d->{retries}, unmet => {}, dependents => {} };
}

sub is_successful
{
	my ($t) = @_;
	my $run = $t->{runs}[-1];
	return $run->{state} eq 'completed' || is_tolerated($t->{def}, @$run{qw(reasonResolved by_worker)});
}

# Is a dependency of this task on that one met by the state of that one?
sub is_met
{
	my ($t, $r) = @_;
	return is_resolved($r) && ($t->{def}{all} || is_successful($r));
}

# A dependency is met by the state of its required task now, or by its next one.
sub add_edges
{
	my ($m, $t) = @_;
	@$t{qw(no born)} = ($m->{made}++, $m->{batch});
	for my $dep (@{ $t->{def}{deps} })
	{
		my $r = $m->{tasks}{$dep};
		$r->{dependents}{ $t->{def}{id} } = 1;
		$t->{unmet}{$dep} = 1 unless is_met($t, $r);
	}
	$m->add_first($t) unless %{ $t->{unmet} };
	return;
}

# Returns an SQLSTATE, or undef and, if another task holds the unique key, its id.
sub create
{
	my ($m, $d) = @_;
	return 'TQ400' if $m->bad_dates($d) || policy_fault($d);
	my $t      = $m->{tasks}{ $d->{id} };
	my $holder = $t ? undef : $m->holder_for($d);
	return 'TQ409' if defined $holder ? rejects($d) : $m->group_conflict($d);
	if (defined $holder)
	{
		$m->replace($holder, $d);
		return (undef, $holder);
	}
	if ($t)
	{
		return 'TQ409' if definition_json($t->{def}) ne definition_json($d);
		# a repair has moved expires, and another one has set an early deadline
		return 'TQ409' if defined $t->{expires} && deadline_of($t) <= $d->{deadline};
		my $key = key_of($d);
		$m->{keys}{$key} //= $d->{id} if defined $key;
		return;
	}
	return 'TQ400' if $m->bad_dependencies($d);
	$m->add_edges($m->add_task($d));
	my $bad = $m->refuse_if_full($d);
	$m->take_keys($d) unless $bad;
	return $bad;
}

# These definitions in the order in which the server numbers their tasks: each after those
# that it requires, otherwise as they are given; unchanged if they form a cycle.  What requires itself
# is none.
sub numbered
{
	my (@defs) = @_;
	my %in = map { $_->{id} => 1 } @defs;
	my (%blocked, %dependents);
	for my $d (@defs)
	{
		my @required = grep { $in{$_} && $_ ne $d->{id} } @{ $d->{deps} };
		$blocked{ $d->{id} } = @required;
		push @{ $dependents{$_} }, $d for @required;
	}
	my @order = grep { !$blocked{ $_->{id} } } @defs;
	for (my $i = 0; $i < @order; $i++)
	{
		push @order, grep { !--$blocked{ $_->{id} } } @{ $dependents{ $order[$i]{id} } // [] };
	}
	return @order == @defs ? @order : @defs;
}

# New tasks that may name each other; nothing in it is there already.  Returns an
# SQLSTATE, or undef and how many were created.
sub create_many
{
	my ($m, @defs) = @_;
	return 'TQ400' if grep { $m->bad_dates($_) || policy_fault($_) } @defs;
	my ($bad, $new, @met) = $m->share_keys(@defs);
	return $bad if $bad;
	my %met = map { $_->[1]{id} => 1 } @met;
	return 'TQ409' if grep { $m->group_conflict($_) } @$new;
	return 'TQ409' if grep { $met{$_} } map { @{ $_->{deps} } } @$new;
	my @tasks = map { $m->add_task($_) } numbered(@$new);
	if (grep { $m->bad_dependencies($_) } @$new)
	{
		$m->remove_task($_->{id}) for @$new;
		return 'TQ400';
	}
	for my $t (@tasks)
	{
		$m->add_edges($t);
		$m->{batch}++;
	}
	$bad = $m->refuse_if_full(@$new);
	return $bad if $bad;
	$m->take_keys(@$new);
	$m->replace(@$_) for @met;
	return (undef, scalar @$new);
}

# ---- unique keys (doc/spec/policy.md 11.1) ----

# The unique key of a definition, with its scope.
sub key_of
{
	my ($d) = @_;
	my $p = policy_of($d);
	return unless defined $p->{uniqueKey};
	return ($p->{uniqueScope} // 'queue') eq 'database' ? "/$p->{uniqueKey}" : "$d->{queue}/$p->{uniqueKey}";
}

sub rejects { my ($d) = @_; return (policy_of($d)->{onConflict} // 'return') eq 'reject' }

# The task that holds the key of this definition, by what its policy says.
sub holder_for
{
	my ($m, $d) = @_;
	my $key = key_of($d) // return;
	my $p   = policy_of($d);
	my $t   = $m->{tasks}{ $m->{keys}{$key} // '' } or return;
	my $state = state_of($t);
	return $t->{def}{id} if defined $p->{uniquePeriod} && $m->{now} < $t->{def}{created} + $p->{uniquePeriod};
	return $t->{def}{id} if grep { $_ eq $state } @{ $p->{uniqueStates} // [qw(unscheduled pending running)] };
	return;
}

# These tasks were created or rerun last of those with their keys.
sub take_keys
{
	my ($m, @defs) = @_;
	for my $d (@defs)
	{
		my $key = key_of($d);
		$m->{keys}{$key} = $d->{id} if defined $key;
	}
	return;
}

# Who of the tasks of a call gets its key: the first one, if no other task has it.
# Returns an SQLSTATE, or undef, those that are created, and pairs of the id that
# is there and the definition that is not created.
sub share_keys
{
	my ($m, @defs) = @_;
	my (%first, @new, @met);
	for my $d (@defs)
	{
		my $key    = key_of($d);
		my $holder = defined $key ? $first{$key} // $m->holder_for($d) : undef;
		return 'TQ409' if defined $holder && rejects($d);
		push @met, [ $holder, $d ] if defined $holder;
		next if defined $holder;
		push @new, $d;
		$first{$key} = $d->{id} if defined $key;
	}
	return (undef, \@new, @met);
}

# Gives a task that was never claimed the payload, priority and delay of another
# one, if that says so.
sub replace
{
	my ($m, $id, $d) = @_;
	my $t   = $m->{tasks}{$id};
	my $run = $t->{runs}[0];
	return if (policy_of($d)->{onConflict} // '') ne 'replace' || $t->{def}{queue} ne $d->{queue};
	return if @{ $t->{runs} } > 1 || $run && ($run->{state} ne 'pending' || exists $run->{started});
	my $delay = first_delay($d);
	my $late  = least($m->{win}) + $delay >= deadline_of($t);
	my $stays = !$run || (!$delay && !is_delayed($t)) || $late;
	$t->{def} = { %{ $t->{def} }, payload => $d->{payload}, priority => $d->{priority}, replaced => 1 };
	$t->{def}{delay} = $delay unless $late || $t->{def}{created} + $delay > $t->{def}{deadline};
	return if $stays;
	@$run{qw(visibleAt ready parked)} = (later($m->{win}, $delay), !$delay, !$delay && $m->is_gated($t));
	$t->{batch} = $t->{since} = $m->{batch};
	return;
}

sub remove_task
{
	my ($m, $id) = @_;
	my $t   = delete $m->{tasks}{$id};
	my $gid = $t->{def}{group} // $id;
	my $key = key_of($t->{def});
	delete $m->{keys}{$key} if defined $key && ($m->{keys}{$key} // '') eq $id;
	for my $dep (@{ $t->{def}{deps} })
	{
		delete $m->{tasks}{$dep}{dependents}{$id} if $m->{tasks}{$dep};
	}
	my $g = $m->{groups}{$gid} or return;		# forgotten already
	delete $g->{tasks}{$id};
	delete $m->{groups}{$gid} unless %{ $g->{tasks} };
	return;
}

# ---- queues (doc/spec/policy.md 6) ----

sub settings { my ($m, $queue) = @_; return $m->{settings}{$queue} // {} }

# Merges these settings into those of a queue; undef removes one.
sub set_queue
{
	my ($m, $queue, %given) = @_;
	my %all = (%{ $m->settings($queue) }, %given);
	delete @all{ grep { !defined $all{$_} } keys %all };
	$m->{settings}{$queue} = \%all;
	$m->{queues}{$queue} = 1;
	return;
}

# How many tasks of a queue are pending, delayed and running: what time has
# ended counts until upkeep has seen it.
sub rows_of
{
	my ($m, $queue) = @_;
	my %n = (pending => 0, delayed => 0, running => 0);
	$n{ is_delayed($_) ? 'delayed' : state_of($_) }++ for grep { $_->{def}{queue} eq $queue } values %{ $m->{tasks} };
	return \%n;
}

# These tasks were added: are they too many for their queue?
sub is_too_much
{
	my ($m, $queue, @new) = @_;
	my $s = $m->settings($queue);
	return 0 unless grep { $s->{$_} } qw(maxPending maxDelayed maxRunning);
	my $n = $m->rows_of($queue);
	return 1 if $s->{maxRunning} && $n->{running} >= $s->{maxRunning};
	for my $state (qw(pending delayed))
	{
		next unless grep { state_of($_) eq 'pending' && (is_delayed($_) ? 'delayed' : 'pending') eq $state } @new;
		my $limit = $s->{ 'max' . ucfirst $state };
		return 1 if $limit && $n->{$state} > $limit;
	}
	return 0;
}

# Removes the tasks of these definitions again if their queues have no room.
sub refuse_if_full
{
	my ($m, @defs) = @_;
	my %of;
	push @{ $of{ $_->{queue} } }, $m->{tasks}{ $_->{id} } for @defs;
	return unless grep { $m->is_too_much($_, @{ $of{$_} }) } keys %of;
	$m->remove_task($_->{id}) for @defs;
	return 'TQ409';
}

# Claims of this round.  None of the round before is in an interval any more.
sub claims_of
{
	my ($m, $queue) = @_;
	return grep { $_->{at} > $m->{now} - NEAR_MS } @{ $m->{claims}{$queue} // [] };
}

# A claim counts when it is made, also if it is rolled back: so this is no part
# of what a rollback restores.
sub note_claims
{
	my ($m, $queue, $n) = @_;
	push @{ $m->{claims}{$queue} }, { at => $m->{now}, n => $n, counted => !!$m->settings($queue)->{rateCount} } if $n > 0;
	return;
}

# How many runs a queue hands out at least, and at most.  Claims that were made
# while it had no rate may count or not.
sub allowed
{
	my ($m, $queue) = @_;
	my $s = $m->settings($queue);
	return (0, 0) if ($s->{paused} // '') eq 'true';
	my ($least, $most) = (9e9, 9e9);
	$least = $most = max(0, $s->{concurrentLimit} - $m->rows_of($queue)->{running}) if $s->{concurrentLimit};
	return ($least, $most) unless $s->{rateCount};
	my @claims = $m->claims_of($queue);
	return (min($least, max(0, $s->{rateCount} - sum0(map { $_->{n} } @claims))),
		min($most, max(0, $s->{rateCount} - sum0(map { $_->{n} } grep { $_->{counted} } @claims))));
}

# ---- resolution ----

# These tasks are resolved for good: releases their dependents.
sub release
{
	my ($m, @ids) = @_;
	for my $id (@ids)
	{
		my $t = $m->{tasks}{$id};
		for my $dep (sort keys %{ $t->{dependents} })
		{
			my $d = $m->{tasks}{$dep};
			next unless $d->{unmet}{$id} && is_met($d, $t);
			delete $d->{unmet}{$id};
			$m->add_first($d) if !%{ $d->{unmet} } && state_of($d) eq 'unscheduled' && deadline_of($d) >= $m->{now};
		}
	}
	return;
}

# The run that follows one that has ended, if there is one (section 4).  There is
# none at or past the deadline.
sub follow
{
	my ($m, $t, $reason) = @_;
	my $p      = policy_of($t->{def});
	my $run    = $t->{runs}[-1];
	my $budget = budget_of($t->{def}, $reason);
	return 0 if $budget eq 'none' || $m->is_late($t) || @{ $t->{runs} } >= MAX_RUNS;
	if ($budget eq 'lost')
	{
		return 0 if $run->{lost} <= 0;
		$m->add_run($t, $retry_name{$reason}, [ 0, 0 ],
			attempt => $run->{attempt}, lost => $run->{lost} - 1, until => $run->{until}, retry_delay => $run->{retry_delay});
		return 1;
	}
	my $left = delete $run->{further} // $t->{left};
	return 0 if $left <= 0;
	my $delay = $run->{retry_delay} // delay_of($p, $run->{attempt});
	my $jitter = defined $run->{retry_delay} ? 0 : $p->{jitter} // 0;
	$t->{left} = $left - 1;
	$m->add_run($t, $retry_name{$reason}, [ $delay, $delay + $jitter ],
		attempt => $run->{attempt} + 1, lost => $run->{lost}, retry_delay => $run->{retry_delay});
	return 1;
}

# End the last run; true when the task is resolved for good by that.
sub end_run
{
	my ($m, $t, $reason, %more) = @_;
	my $run = $t->{runs}[-1];
	@$run{ qw(state reasonResolved resolved), keys %more } = (state_for($reason), $reason, $m->{win}, values %more);
	return 0 if $m->follow($t, $reason);
	$m->{letters}{ $t->{def}{id} } = $reason if is_dead($t->{def}, $reason);
	return 1;
}

# What ends a task that is not resolved, whatever is left to it: cancel, skip, the
# deadline.
sub end_task
{
	my ($m, $t, $reason, %more) = @_;
	push @{ $t->{runs} },
	  {
		state         => 'pending',
		reasonCreated => $reason eq 'skipped' ? 'skip' : 'exception',
		attempt       => 0,
		lost          => policy_of($t->{def})->{lost},
		scheduled     => $m->{win}
	  }
	  if state_of($t) eq 'unscheduled';
	delete $t->{waits};
	return $m->end_run($t, $reason, %more);
}

sub group_of { my ($d) = @_; return $d->{group} // $d->{id} }

# Unresolved tasks of a group that are not past their deadlines.
sub unresolved
{
	my ($m, $gid) = @_;
	return grep { my $t = $m->{tasks}{$_}; !is_resolved($t) && !$m->is_late($t) } sort keys %{ $m->{groups}{$gid}{tasks} };
}

# Cancel a task with its group.  If it was released by what did that, or would
# have been, it may be cancelled before or after that.
sub cancel_member
{
	my ($m, $t) = @_;
	my $run  = last_run($t);
	my $both = !$run ? @{ $t->{def}{deps} } > 0 : $run->{first} && $t->{batch} == $m->{batch};
	return $m->end_task($t, 'canceled', $both ? (both => 1) : ());
}

sub is_fatal_end
{
	my ($t) = @_;
	return is_fatal($t->{def}, @{ $t->{runs}[-1] }{qw(reasonResolved by_worker)});
}

# Tasks that ended so take their groups with them.
sub cancel_groups
{
	my ($m, @ids) = @_;
	my %groups = map { group_of($_->{def}) => 1 } grep { is_fatal_end($_) } map { $m->{tasks}{$_} } @ids;
	for my $gid (sort keys %groups)
	{
		my @members = $m->unresolved($gid);
		$m->cancel_member($m->{tasks}{$_}) for @members;
		$m->release(@members);
	}
	return;
}

# One run of a batch: its outcome, and whether the task is resolved for good.
sub resolve_run
{
	my ($m, $id, $i, $reason, $words) = @_;
	my $t = $m->{tasks}{$id} or return ('not-found', 0);
	my $run = $i >= 0 && $t->{runs}[$i] or return ('not-found', 0);
	if ($i == $#{ $t->{runs} } && $run->{state} eq 'running')
	{
		my $final = $m->end_run($t, $reason, by_worker => 1, %{ $words // {} });
		return ($final ? 'resolved' : 'retried', $final);
	}
	my $next  = $t->{runs}[ $i + 1 ];
	my $after = $run->{state} eq 'exception' || $next && $next->{reasonCreated} =~ /retry$/ ? 1 : 0;
	return ('repeated', 0)
	  if ($run->{reasonResolved} // '') eq $reason && $#{ $t->{runs} } - $i <= $after
	  && ($reason ne 'canceled' || $run->{by_worker});
	return ('conflict', 0);
}

# The batch; one report is a batch of one, and may have words: an error or a
# result; and what replaces the delay and the number of attempts that follow.
# Returns the outcomes.
sub resolve
{
	my ($m, $reason, $words, @runs) = @_;
	return $m->resolve_each(map { [ @$_, $reason, $words ] } @runs);
}

# The same, with a reason for each run.
sub resolve_each
{
	my ($m, @reports) = @_;
	my (@outcomes, @final);
	for my $r (@reports)
	{
		my ($outcome, $final) = $m->resolve_run(@$r);
		push @outcomes, $outcome;
		push @final, $r->[0] if $final;
	}
	$m->release(@final);
	$m->cancel_groups(@final);
	return @outcomes;
}

# ---- what every client may do ----

sub schedule
{
	my ($m, $id) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $m->is_late($t);
	$m->add_first($t) if state_of($t) eq 'unscheduled';
	return;
}

sub rerun
{
	my ($m, $id) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $m->is_late($t);
	return if state_of($t) =~ /^(?:pending|running)$/;
	return 'TQ409' if @{ $t->{runs} } >= MAX_RUNS || ($m->holder_for($t->{def}) // $id) ne $id;
	$m->take_keys($t->{def});
	$m->run_again($t);
	return;
}

# The task has its budgets again.
sub refill
{
	my ($m, $t) = @_;
	$t->{left} = min($t->{def}{retries}, MAX_RUNS - (@{ $t->{runs} } + 1));
	delete $m->{letters}{ $t->{def}{id} };
	return;
}

sub run_again
{
	my ($m, $t) = @_;
	$m->refill($t);
	$m->add_run($t, 'rerun', [ 0, 0 ], attempt => 0, lost => policy_of($t->{def})->{lost});
	return;
}

# ---- repairs (doc/spec/taskcluster.md 2.4, 2.20) ----

sub is_unsuccessful { my ($t) = @_; return state_of($t) =~ /^(?:failed|exception)$/ }

# Tasks in the order of their creation.
sub by_creation { return sort { $a->{no} <=> $b->{no} } @_ }

# These tasks, and all that depend on them.
sub downstream
{
	my ($m, @next) = @_;
	my %seen;
	while (defined(my $id = shift @next))
	{
		next if $seen{$id}++ || !$m->{tasks}{$id};
		push @next, keys %{ $m->{tasks}{$id}{dependents} };
	}
	return keys %seen;
}

# Does a resolved task wait again if what it depends on does?
sub waits_again { my ($t, $how) = @_; return is_unsuccessful($t) || !$how->{is_group} && state_of($t) eq 'completed' }

# What becomes of each task of a repair, by id: rerun, wait, or stays, which its
# dependents wait for.
sub fates
{
	my ($m, $how, @starts) = @_;
	my %fate = map { $_ => state_of($m->{tasks}{$_}) =~ /^(?:pending|running)$/ ? 'stays' : 'rerun' } @starts;
	my @next = $how->{downstream} ? @starts : ();
	while (defined(my $id = shift @next))
	{
		for my $t (map { $m->{tasks}{$_} // () } sort keys %{ $m->{tasks}{$id}{dependents} })
		{
			next if $fate{ $t->{def}{id} } || !waits_again($t, $how) && state_of($t) ne 'unscheduled';
			$fate{ $t->{def}{id} } = waits_again($t, $how) ? 'wait' : 'stays';
			push @next, $t->{def}{id};
		}
	}
	return %fate;
}

# The dependencies that a task of a repair waits for.
sub unmet_again
{
	my ($m, $t, $fate) = @_;
	my $own = $t->{def}{id};
	return grep {
		$_ eq $own ? is_new($t) : $m->{tasks}{$_} && ($fate->{$_} || $t->{unmet}{$_})
	} @{ $t->{def}{deps} };
}

# Of the tasks that are to run, some have to wait; a repair without what is
# downstream leaves those alone.
sub decide_waits
{
	my ($m, $how, $fate) = @_;
	my %unmet;
	for my $t (by_creation(map { $m->{tasks}{$_} } keys %$fate))
	{
		my $id = $t->{def}{id};
		next unless $fate->{$id} eq 'wait' || $fate->{$id} eq 'rerun' && $how->{is_group};
		$unmet{$id}  = [ $m->unmet_again($t, $fate) ];
		$fate->{$id} = @{ $unmet{$id} } ? 'wait' : 'rerun';
		delete $fate->{$id} if @{ $unmet{$id} } && !$how->{downstream};
	}
	return \%unmet;
}

# Is a repair refused?
sub refuses
{
	my ($m, $how, $fate, @starts) = @_;
	my (%starts, %keys);
	$starts{$_} = 1 for @starts;
	for my $t (map { $m->{tasks}{$_} } sort keys %$fate)
	{
		my $id     = $t->{def}{id};
		my $stays  = $fate->{$id} eq 'stays';
		next if $stays && !$starts{$id};
		return 1 if !defined $how->{deadline} && $m->is_late($t);
		next if $stays;
		return 1 if @{ $t->{runs} } >= MAX_RUNS;
		my $key = key_of($t->{def});
		next unless defined $key;
		return 1 if $keys{$key}++ || ($m->holder_for($t->{def}) // $id) ne $id;
	}
	return 0;
}

sub set_deadline
{
	my ($m, $t, $deadline) = @_;
	my $former = max(deadline_of($t), $t->{def}{deadline});
	$t->{due} = $deadline;
	delete $t->{untimed};
	$t->{moves} = expiry_of($t) < least($deadline);
	$t->{expires} = least($deadline) + expiry_of($t) - $former if $t->{moves};
	return;
}

# A deadline of a repair.  A task that stays as it is keeps a later one of its own,
# and within the window either may be the later one.
sub move_deadline
{
	my ($m, $t, $deadline, $stays) = @_;
	my $own = deadline_of($t);
	return if $stays && $own >= most($deadline);
	$m->set_deadline($t, $stays && $own > least($deadline) ? [ $own, most($deadline) ] : $deadline);
	return;
}

# A task waits again: it keeps its runs.
sub wait_again
{
	my ($m, $t, @unmet) = @_;
	$m->refill($t);
	delete $t->{admitted};
	@$t{qw(waits unmet)} = (1, { map { $_ => 1 } @unmet });
	return;
}

# Returns an SQLSTATE, or undef and how many tasks run or wait again.
sub repair
{
	my ($m, $how, @starts) = @_;
	my %fate  = $m->fates($how, @starts);
	my $unmet = $m->decide_waits($how, \%fate);
	my %starts = map { $_ => 1 } @starts;
	my $n     = 0;
	return 'TQ409' if $m->refuses($how, \%fate, @starts);
	my $deadline = defined $how->{deadline} ? later($m->{win}, $how->{deadline}) : undef;
	for my $t (by_creation(map { $m->{tasks}{$_} } keys %fate))
	{
		my $id = $t->{def}{id};
		$m->move_deadline($t, $deadline, $fate{$id} eq 'stays' && !$starts{$id}) if defined $deadline;
		if ($fate{$id} eq 'stays')
		{
			$t->{unmet}{$_} = 1 for $starts{$id} ? () : grep { $_ ne $id && $fate{$_} } @{ $t->{def}{deps} };
			next;
		}
		$m->take_keys($t->{def});
		$n++;
		if ($fate{$id} eq 'wait') { $m->wait_again($t, @{ $unmet->{$id} }) }
		else                      { $m->run_again($t) }
		$t->{unmet} = { map { $_ => 1 } @{ $unmet->{$id} } } if $unmet->{$id};
	}
	return (undef, $n);
}

sub repair_task
{
	my ($m, $id, $how) = @_;
	return 'TQ404' unless $m->{tasks}{$id};
	return ($m->repair($how, $id))[0];
}

# Those of a group that ended for one of these reasons; all but two if there are
# none.
sub repair_group
{
	my ($m, $gid, $how, @reasons) = @_;
	my $g = $m->{groups}{$gid} or return 'TQ404';
	my %wanted = map { $_ => 1 } @reasons;
	return $m->repair({ %$how, is_group => 1 },
		grep {
			my $t = $m->{tasks}{$_};
			my $reason = is_unsuccessful($t) ? $t->{runs}[-1]{reasonResolved} : 'canceled';
			is_unsuccessful($t) && (@reasons ? $wanted{$reason} : $reason !~ /^(?:canceled|superseded)$/)
		} sort keys %{ $g->{tasks} });
}

# ---- another time for a run (doc/spec/taskcluster.md 2.21) ----

# In so many ms, or now.
sub reschedule
{
	my ($m, $id, $after) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $m->is_late($t) || state_of($t) ne 'pending';
	return 'TQ400' if $after && least($m->{win}) + $after >= deadline_of($t);
	return if !$after && !is_delayed($t);
	my $run = $t->{runs}[-1];
	my $p   = policy_of($t->{def});
	@$run{qw(visibleAt ready parked)} = (later($m->{win}, $after), !$after, !$after && $m->is_gated($t));
	$run->{until} = later($run->{visibleAt}, $p->{pending}) if defined $p->{pending} && !exists $run->{started};
	$t->{batch} = $t->{since} = $m->{batch};
	return;
}

# ---- further dependencies (doc/spec/taskcluster.md 2.22) ----

# Ids in the order of their bytes, each once.
sub in_order
{
	my %seen;
	return sort { bytes_of($a) cmp bytes_of($b) } grep { !$seen{$_}++ } @_;
}

# Does one of these tasks wait for that one, through unscheduled tasks, or is it it?
sub wait_for_it
{
	my ($m, $id, @next) = @_;
	my %seen;
	while (defined(my $at = shift @next))
	{
		return 1 if $at eq $id;
		my $t = $m->{tasks}{$at};
		push @next, @{ $t->{def}{deps} } if $t && !$seen{$at}++ && state_of($t) eq 'unscheduled';
	}
	return 0;
}

sub add_dependencies
{
	my ($m, $id, @deps) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	my %old = map { $_ => 1 } @{ $t->{def}{deps} };
	my @new = in_order(grep { !$old{$_} } @deps) or return;
	return 'TQ409' if $m->is_late($t) || state_of($t) ne 'unscheduled';
	for my $r (map { $m->{tasks}{$_} } @new)
	{
		return 'TQ400' if !$r || expiry_of($r) < deadline_of($t);
	}
	return 'TQ400' if $m->wait_for_it($id, @new);
	$t->{def} = { %{ $t->{def} }, deps => [ @{ $t->{def}{deps} }, @new ] };
	for my $dep (@new)
	{
		my $r = $m->{tasks}{$dep};
		$r->{dependents}{$id} = 1;
		$t->{unmet}{$dep} = 1 unless is_met($t, $r);
	}
	return;
}

# A dead letter is tried again, before its task's deadline.
sub redrive
{
	my ($m, $id) = @_;
	return 'TQ404' unless exists $m->{letters}{$id};
	return $m->rerun($id);
}

# Past the deadline that is a new task; $s is its status, by the server.  Returns
# an SQLSTATE, or undef and its id.  What the old one depended on is asked for
# again if it never ran.
sub redrive_late
{
	my ($m, $id, $s) = @_;
	my $t = $m->{tasks}{$id};
	return 'TQ404' unless $t && exists $m->{letters}{$id};
	my $letter = $m->{letters}{$id};
	my %d = (%{ $t->{def} }, id => $s->{taskId} // 'unknown', group => group_of($t->{def}), redriven => 1);
	my $ran = @{ $t->{runs} } > 1 || $t->{runs}[0]{reasonCreated} ne 'exception';
	$d{deps}    = $ran ? [] : [ map { $_ eq $id ? $d{id} : $_ } @{ $d{deps} } ];
	$d{span} //= $d{deadline} - $d{created};
	$d{expires} = expires(\%d) - $d{deadline};
	@d{qw(created deadline)} = ($m->{win}[0], $m->{win}[0] + $d{span});
	$d{expires} += $d{deadline};
	return 'TQ409' if ($m->holder_for(\%d) // $id) ne $id || $m->group_conflict(\%d);
	return 'TQ400' if $m->bad_dependencies(\%d);
	$d{deadline} = $s->{deadline} if ($s->{deadline} // 0) >= $d{deadline} && $s->{deadline} <= $d{deadline} + $m->{win}[1] - $m->{win}[0];
	delete $m->{letters}{$id};
	$m->add_edges($m->add_task(\%d));
	if ($m->refuse_if_full(\%d))
	{
		$m->{letters}{$id} = $letter;
		return 'TQ409';
	}
	$m->take_keys(\%d);
	return (undef, $d{id});
}

sub discard
{
	my ($m, $id) = @_;
	return exists $m->{letters}{$id} && defined delete $m->{letters}{$id} ? undef : 'TQ404';
}

sub cancel
{
	my ($m, $id) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $m->is_late($t);
	return if is_resolved($t);
	$m->end_task($t, 'canceled');
	$m->release($id);
	return;
}

sub skip
{
	my ($m, $id, $output) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $m->is_late($t);
	my $state = state_of($t);
	return if $state eq 'completed' && $t->{runs}[-1]{reasonResolved} eq 'skipped';
	return 'TQ409' unless $state eq 'unscheduled' || $state eq 'pending';
	$m->end_task($t, 'skipped', result => $output);
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
	my @ids = $m->unresolved($gid);
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

# When a claim ends that begins now: by the policy, or by the settings of the
# queue, or of the session.
sub end_of_claim
{
	my ($m, $t, $timeout) = @_;
	my $of_queue = $m->settings($t->{def}{queue})->{claimTimeout};
	return later($m->{win}, policy_of($t->{def})->{claim} // (defined $of_queue ? $of_queue * 1000 : $timeout));
}

sub start_run
{
	my ($m, $t, $group, $worker, $timeout, $by_task) = @_;
	my $run = $t->{runs}[-1];
	@$run{qw(state workerGroup workerId by_task takenUntil)} =
	  ('running', $group, $worker, $by_task, $m->end_of_claim($t, $timeout));
	$run->{started} //= $m->{win};
	return;
}

# Does the last run wait in delayed?  When its time comes, it waits for upkeep; or
# it waits for other tasks with its keys.
sub is_delayed
{
	my ($t) = @_;
	my $run = $t->{runs}[-1];
	return state_of($t) eq 'pending' && ($run->{parked} || defined $run->{visibleAt} && !$run->{ready});
}

# Is the last run pending for too long?  Not if it was deferred.
sub is_pending_too_long
{
	my ($m, $t) = @_;
	my $run = $t->{runs}[-1];
	return $run->{state} eq 'pending' && !exists $run->{started} && !policy_of($t->{def})->{alert}
	  && $m->is_over($run->{until});
}

sub is_claimable
{
	my ($m, $t) = @_;
	return state_of($t) eq 'pending' && !is_delayed($t) && !$m->is_pending_too_long($t) && !$m->is_late($t);
}

# Pending runs of a queue in the order of claims: [priority, batch, id].
sub line
{
	my ($m, $queue) = @_;
	return sort { $b->[0] <=> $a->[0] || $a->[1] <=> $b->[1] }
	  map { [ $_->{def}{priority}, $_->{batch}, $_->{def}{id} ] }
	  grep { $_->{def}{queue} eq $queue && $m->is_claimable($_) } values %{ $m->{tasks} };
}

# A claim from one queue makes that known; one from several does if it gets nothing.
sub claim_work
{
	my ($m, $queue, @more) = @_;
	$m->{queues}{$queue} = 1;
	return $m->claim_from($queue, @more);
}

# The server handed out these [id, run]; returns what is wrong with that.
# Runs that became pending by one operation are in no order among themselves.
sub claim_from
{
	my ($m, $queue, $group, $worker, $n, $timeout, @got) = @_;
	my $away = $m->quarantined($queue, $group, $worker);
	$m->{workers}{"$queue/$group/$worker"} //= 0 if $m->{queues}{$queue};
	my @line = $away ? () : $m->line($queue);
	my %at   = map { $_->[2] => $_ } @line;
	my ($least, $most) = map { min($n, scalar @line, $_) } $m->allowed($queue);
	return "$least to $most claims expected" if @got < $least || @got > $most;
	$m->note_claims($queue, scalar @got);
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

# Claims from several queues: [queue, id, run] in order.  In strict order each
# queue is asked for what is still wanted, in turns only the sum is known.
sub claim_queues
{
	my ($m, $strict, $queues, $group, $worker, $n, $timeout, @got) = @_;
	my ($least, $most) = (0, 0);
	my @names = map { $_->[0] } @got;
	$m->{queues}{$_} = 1 foreach @got ? () : @$queues;
	return 'the queues are not in order' if $strict && "@names" ne join(' ', map { my $q = $_; grep { $_ eq $q } @names } @$queues);
	for my $queue (@$queues)
	{
		my @of    = map { [ @$_[ 1, 2 ] ] } grep { $_->[0] eq $queue } @got;
		my $there = $m->quarantined($queue, $group, $worker) ? 0 : scalar(my @line = $m->line($queue));
		my @may   = map { min($n, $there, $_) } $m->allowed($queue);
		($least, $most) = ($least + $may[0], $most + $may[1]);
		my $bad = $m->claim_from($queue, $group, $worker, $strict ? $n : scalar @of, $timeout, @of);
		return "$queue: $bad" if $bad;
		$n -= @of if $strict;
	}
	return if $strict;
	($least, $most) = (min($n, $least), min($n, $most));
	return @got < $least || @got > $most ? "$least to $most claims expected" : undef;
}

# Returns an SQLSTATE, or undef and the number of rows; of which the server may
# have chosen one.
sub claim_task
{
	my ($m, $id, $i, $group, $worker, $timeout, $rows) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return 'TQ409' if $m->is_late($t);
	return (undef, 0) if $m->quarantined($t->{def}{queue}, $group, $worker);
	my $run = $t->{runs}[$i] or return 'TQ404';
	return 'TQ409' if $i != $#{ $t->{runs} };
	return (undef, 1)
	  if $run->{state} eq 'running'
	  && $run->{by_task}
	  && $run->{workerGroup} eq $group
	  && $run->{workerId} eq $worker;
	return 'TQ409' unless $m->is_claimable($t);
	my ($least, $most) = map { min($_, 1) } $m->allowed($t->{def}{queue});
	return (undef, $least) if $rows < $least || $rows > $most || !$rows;
	$m->note_claims($t->{def}{queue}, 1);
	$m->start_run($t, $group, $worker, $timeout, 1);
	return (undef, 1);
}

sub reclaim
{
	my ($m, $id, $i, $timeout) = @_;
	my $t   = $m->{tasks}{$id} or return 'TQ404';
	my $run = $t->{runs}[$i]   or return 'TQ404';
	return 'TQ409' if $m->is_late($t);
	return 'TQ409' if $i != $#{ $t->{runs} } || $run->{state} ne 'running';
	$m->{workers}{"$t->{def}{queue}/$run->{workerGroup}/$run->{workerId}"} //= 0;
	my $least = least($run->{takenUntil});
	$run->{takenUntil} = [ map { max($least, $_) } @{ $m->end_of_claim($t, $timeout) } ];
	return;
}

# The same run waits again; what it has used up stays so.
sub defer
{
	my ($m, $id, $i, $after) = @_;
	my $t   = $m->{tasks}{$id} or return 'TQ404';
	my $run = $t->{runs}[$i]   or return 'TQ404';
	return 'TQ409' if $m->is_late($t);
	return 'TQ409' if $i != $#{ $t->{runs} } || $run->{state} ne 'running';
	delete $run->{takenUntil};
	@$run{qw(state visibleAt ready parked)} = ('pending', later($m->{win}, $after), $after == 0, $after == 0 && $m->is_gated($t));
	$t->{batch} = $t->{since} = $m->{batch};
	return;
}

# ---- time ----

# What may end the last run of this task now, in the order in which a pass of
# upkeep looks.
sub due_reasons
{
	my ($m, $t) = @_;
	my $p = policy_of($t->{def});
	my $run = last_run($t);
	my @due;
	return 'deadline-exceeded' if $m->is_late($t);
	return unless $run;
	push @due, 'run-timeout'
	  if defined $p->{run} && !$p->{alert} && exists $run->{started} && $m->is_over(later($run->{started}, $p->{run}));
	push @due, 'pending-timeout' if $m->is_pending_too_long($t);
	push @due, 'claim-expired' if $run->{state} eq 'running' && $m->is_over($run->{takenUntil});
	return @due;
}

# The reason for which the server has ended the last run of this task.
sub server_reason
{
	my ($t, $s) = @_;
	my $run = $s ? $s->{runs}[ state_of($t) eq 'unscheduled' ? @{ $t->{runs} } : $#{ $t->{runs} } ] : undef;
	return $run ? $run->{reasonResolved} : undef;
}

# Do what is due of a task, if anything is.  Of several things in any order the
# server may have chosen one.
sub end_due
{
	my ($m, $t, $is_calm, $s) = @_;
	my @due = $m->due_reasons($t) or return 0;
	my $reason = server_reason($t, $s) // '';
	return 0 if $reason eq 'canceled' && $due[0] ne 'deadline-exceeded';
	$reason = $due[0] if $is_calm || !grep { $_ eq $reason } @due;
	my $final = $due[0] eq 'deadline-exceeded' ? $m->end_task($t, $reason) : $m->end_run($t, $reason);
	push @{ $m->{ended} }, $t->{def}{id} if $final;
	return 1;
}

# A member of a group that is being cancelled: at once, or when the server says
# that other things came first.
sub end_with_group
{
	my ($m, $t, $s) = @_;
	return 0 if (server_reason($t, $s) // '') ne 'canceled';
	$m->cancel_member($t);
	push @{ $m->{ended} }, $t->{def}{id};
	return 1;
}

# Upkeep until nothing is due: deadlines, timeouts, expired claims, groups, delayed
# runs.  In calm there was one session that did it all, so each step came after
# the other.
sub pass_time
{
	my ($m, $is_calm, $server) = @_;
	my (%doomed, $busy);
	do
	{
		$busy = 0;
		$m->{ended} = [];
		for my $id (grep { !is_resolved($m->{tasks}{$_}) } $m->ids)
		{
			my $t = $m->{tasks}{$id};
			$busy++ if $m->end_due($t, $is_calm, $server->{$id});
			$busy++ if !is_resolved($t) && $doomed{ group_of($t->{def}) } && $m->end_with_group($t, $server->{$id});
		}
		$doomed{ group_of($_->{def}) } = 1 for grep { is_fatal_end($_) } map { $m->{tasks}{$_} } @{ $m->{ended} };
		$m->release(@{ $m->{ended} });
	} while ($busy);

	# what is left should be gone, if the server has been wrong
	for my $t (grep { !is_resolved($_) } values %{ $m->{tasks} })
	{
		my @due = $m->due_reasons($t);
		push @due, 'canceled' if $doomed{ group_of($t->{def}) };
		$m->end_task($t, $due[0]) if @due;
		next unless is_delayed($t) && $m->is_over($t->{runs}[-1]{visibleAt});
		$t->{runs}[-1]{ready}  = 1;
		$t->{runs}[-1]{parked} = $m->is_gated($t);
		$t->{batch} = $t->{since} = $m->{batch};
	}
	return;
}

# Time has passed: $server is what it has now, by id, $parked are the ids of tasks
# that wait for others, $holding of those that hold their serial key.  A task that
# has expired may be there for a while.  Returns what is wrong with that.
sub upkeep
{
	my ($m, $is_calm, $server, $parked, $holding) = @_;
	my @bad;
	$m->pass_time($is_calm, $server);
	for my $id ($m->ids)
	{
		my $age = $m->{now} - expiry_of($m->{tasks}{$id});
		push @bad, "$id has not expired" if $server->{$id} && $age > EXPIRY_MS;
		next if $server->{$id};
		push @bad, "$id is lost" if $age < 0;
		$m->remove_task($id);
	}
	return (@bad, $m->admit($is_calm, $parked, $holding));
}

# ---- serial and concurrency keys (doc/spec/policy.md 11.2, 11.3) ----

# Has a run of this task to wait until its keys let it pass?
sub is_gated
{
	my ($m, $t) = @_;
	my $p = policy_of($t->{def});
	return defined $p->{serialKey} || defined $p->{concurrencyKey} && !!$m->settings($t->{def}{queue})->{keyConcurrentLimit};
}

# Can the last run be claimed, or is it running?
sub is_open
{
	my ($t) = @_;
	return state_of($t) eq 'running' || state_of($t) eq 'pending' && !is_delayed($t);
}

# Does the end of this task keep its serial key?
sub does_hold
{
	my ($t) = @_;
	return (policy_of($t->{def})->{serialOnFailure} // 'continue') eq 'hold' && state_of($t) ne 'completed'
	  && (last_run($t)->{reasonResolved} // '') ne 'canceled';
}

# Does this task hold its serial key, having passed before?
sub is_admitted
{
	my ($t) = @_;
	return $t->{admitted} && (!is_resolved($t) || does_hold($t));
}

# Which tasks may pass is up to the order in which things happened while time has
# passed; so the server says which wait now, and these say whether that may be.
# Of a serial key, the server also says which tasks hold it: one may have passed
# and ended meanwhile, or wait for its concurrency key.
sub admit
{
	my ($m, $is_calm, $parked, $holding) = @_;
	my (@bad, %serial, %limited);
	for my $t (sort { $a->{no} <=> $b->{no} } values %{ $m->{tasks} })
	{
		my ($id, $p, $queue) = ($t->{def}{id}, policy_of($t->{def}), $t->{def}{queue});
		my $run = last_run($t) or next;
		my ($was, $is) = map { !!$_ } $run->{parked} && !is_resolved($t), $parked->{$id};
		push @bad, "$id waits for others" if $is && !$was;
		my $ended = is_resolved($t) && does_hold($t) && $holding->{$id};
		$t->{opened} = $was && !$is;
		$t->{passed} = $t->{opened} || $ended || $is && $holding->{$id};
		delete $run->{parked} if !$is;
		$t->{batch} = @{ $t->{runs} } == 1 ? $t->{born} : $m->{batch} if $t->{opened};
		delete $t->{admitted} unless is_admitted($t);
		push @{ $serial{"$queue/$p->{serialKey}"} }, $t if defined $p->{serialKey} && (!is_resolved($t) || $t->{admitted} || $ended);
		push @{ $limited{$queue}{ $p->{concurrencyKey} } }, $t
		  if defined $p->{concurrencyKey} && $m->settings($queue)->{keyConcurrentLimit} && !is_resolved($t);
	}
	push @bad, $m->serial_faults(@{ $serial{$_} }) for sort keys %serial;
	for my $queue (sort keys %limited)
	{
		push @bad, $m->limit_faults($is_calm, $m->settings($queue)->{keyConcurrentLimit}, @{ $limited{$queue}{$_} })
		  for sort keys %{ $limited{$queue} };
	}
	return @bad;
}

# Of these tasks with one serial key, in order of creation, the first one passes.
# Which is first may have changed since it did, by one that became pending.
sub serial_faults
{
	my ($m, @tasks) = @_;
	my @bad;
	for my $t (grep { $_->{passed} && !$_->{admitted} } @tasks)
	{
		my $id = $t->{def}{id};
		push @bad, map { "$id passes $_->{def}{id}, which holds their serial key" } grep { $_->{admitted} } @tasks;
		push @bad, map { "$id passes $_->{def}{id}, which was created before it" } grep { $_->{no} < $t->{no} && $_->{since} < $m->{batch} } @tasks;
		$t->{admitted} = 1;
	}
	my @admitted = grep { $_->{admitted} } @tasks;
	my ($next) = @admitted ? @admitted : @tasks;
	push @bad, join(' ', map { $_->{def}{id} } @admitted) . ' hold one serial key' if @admitted > 1;
	push @bad, "$next->{def}{id} waits, but is the first one with its serial key"
	  if !is_resolved($next) && $next->{runs}[-1]{parked} && !defined policy_of($next->{def})->{concurrencyKey};
	return @bad;
}

# Of these tasks with one concurrency key, as many pass as the limit says.
sub limit_faults
{
	my ($m, $is_calm, $limit, @tasks) = @_;
	my @open    = grep { is_open($_) } @tasks;
	my @opened  = grep { $_->{opened} } @open;
	my @waiting = grep { $_->{runs}[-1]{parked} && !defined policy_of($_->{def})->{serialKey} } grep { @{ $_->{runs} } } @tasks;
	my @bad;
	push @bad, "$opened[0]{def}{id} passes, but " . @open . " of its key do, not $limit" if @opened && @open > $limit;
	push @bad, "$waiting[0]{def}{id} waits, but " . @open . " of its key pass, not $limit" if @waiting && @open < $limit;
	return @bad if !$is_calm;
	for my $w (grep { $_->{since} < $m->{batch} } @waiting)
	{
		my @rank = ($w->{def}{priority}, -$w->{no});
		push @bad, map { "$_->{def}{id} passes $w->{def}{id}" }
		  grep { $_->{def}{priority} < $rank[0] || $_->{def}{priority} == $rank[0] && -$_->{no} < $rank[1] } @opened;
	}
	return @bad;
}

# ---- fairness keys (doc/spec/policy.md 11.4) ----

# Gives these tasks their places: so many turns behind the last one of their key,
# or behind the last claim.  Claims before which a key came say nothing else.
sub place
{
	my ($m, $weights, @ids) = @_;
	for my $t (map { $m->{tasks}{$_} } @ids)
	{
		my $key  = policy_of($t->{def})->{fairnessKey} // '';
		my $fair = $m->{fair}{ $t->{def}{queue} }{ $t->{def}{priority} } //= { time => 0 };
		$t->{place} = $fair->{last}{$key} = max($fair->{last}{$key} // 0, $fair->{time}) + 1 / ($weights->{$key} // 1);
	}
	return;
}

# Are these the best places of a queue, in order?  Then they are taken.
sub take_places
{
	my ($m, $queue, @ids) = @_;
	my @line = sort { $b->[0] <=> $a->[0] || $a->[1] <=> $b->[1] }
	  map { [ $_->{def}{priority}, $_->{place} ] } grep { $_->{def}{queue} eq $queue && $m->is_claimable($_) } values %{ $m->{tasks} };
	my @want = map { "$_->[0]/$_->[1]" } @line[ 0 .. min($#ids, $#line) ];
	my @got  = map { my $t = $m->{tasks}{$_}; $t ? "$t->{def}{priority}/$t->{place}" : $_ } @ids;
	return "places @got instead of @want" if "@got" ne "@want";
	for my $t (map { $m->{tasks}{$_} } @ids)
	{
		my $fair = $m->{fair}{$queue}{ $t->{def}{priority} };
		$fair->{time} = max($fair->{time}, $t->{place});
	}
	return;
}

# ---- many tasks (doc/spec/policy.md 12) ----

# Tasks of a queue before their deadlines in one of these states.
sub wanted
{
	my ($m, $queue, @states) = @_;
	my %states = map { $_ => 1 } @states;
	return grep { $_->{def}{queue} eq $queue && $states{ state_of($_) } && !$m->is_late($_) } values %{ $m->{tasks} };
}

# Cancels all of them, also those that become pending by that.  Unscheduled ones
# are cancelled before they are released, or after that.  Returns how many.
sub cancel_tasks
{
	my ($m, $queue, @states) = @_;
	my $n = 0;
	while (my @tasks = $m->wanted($queue, @states))
	{
		$m->cancel_member($_) for @tasks;
		$m->release(map { $_->{def}{id} } @tasks);
		$n += @tasks;
	}
	return $n;
}

# The server has moved so many tasks, and these are in that queue now.  The order
# is unscheduled, delayed, and pending ones as in claims.  Returns what is wrong.
sub move_tasks
{
	my ($m, $from, $to, $most, $n, %there) = @_;
	my @may   = grep { !has_keys($_->{def}) } $m->wanted($from, qw(unscheduled pending));
	my @moved = grep { $there{ $_->{def}{id} } } @may;
	my $want  = min(scalar @may, $most // scalar @may);
	return "$n and " . @moved . " tasks instead of $want" if $n != $want || @moved != $want;
	for my $t (@moved)
	{
		my @rank = rank_in_line($t);
		my ($bad) = grep { my @other = rank_in_line($_); $other[0] < $rank[0] || $other[0] == $rank[0] && $other[1] < $rank[1] }
		  grep { !$there{ $_->{def}{id} } } @may;
		return "$t->{def}{id} is moved before $bad->{def}{id}" if $bad;
	}
	$_->{def} = { %{ $_->{def} }, queue => $to } for @moved;
	$m->{queues}{$to} = 1;
	return;
}

# Was this task ever resolved?
sub was_resolved
{
	my ($t) = @_;
	my ($first, @more) = @{ $t->{runs} };
	return is_resolved($t) || $t->{waits} && defined $first || grep { $_->{reasonCreated} eq 'rerun' } @more;
}

# What apply() does to a task that it finds, by its action: returns what it is refused for.
my %apply = (
	rerun    => sub { my ($m, $t) = @_; return $m->rerun($t->{def}{id}) },
	redrive  => sub { my ($m, $t) = @_; return $m->redrive($t->{def}{id}) },
	schedule => sub { my ($m, $t) = @_; return $m->schedule($t->{def}{id}) },
	delay    => sub { my ($m, $t, $how) = @_; return $m->reschedule($t->{def}{id}, $how->{after}) },
	priority => sub {
		my ($m, $t, $how) = @_;
		return 'TQ409' if $m->is_late($t) || was_resolved($t) || $t->{def}{priority} == $how->{priority};
		$t->{def} = { %{ $t->{def} }, priority => $how->{priority} };
		return;
	},
	move => sub {
		my ($m, $t, $how) = @_;
		return 'left' if $m->is_late($t) || state_of($t) !~ /^(?:unscheduled|pending)$/ || has_keys($t->{def}) || $t->{def}{queue} eq $how->{queue};
		$t->{def} = { %{ $t->{def} }, queue => $how->{queue} };
		$m->{queues}{ $how->{queue} } = 1;
		return;
	},
	cancel => sub {
		my ($m, $t) = @_;
		return 'left' if $m->is_late($t) || is_resolved($t);
		$m->cancel_member($t);
		return;
	});

# An action on these tasks, in the order of their creation (17.3).  Returns how many it changes.
sub apply
{
	my ($m, $action, $how, @ids) = @_;
	return scalar grep { !defined $m->discard($_) } @ids if $action eq 'discard';
	my @done = grep { !defined $apply{$action}->($m, $_, $how) } map { $m->{tasks}{$_} // () } @ids;
	$m->release(map { $_->{def}{id} } @done) if $action eq 'cancel';
	return scalar @done;
}

sub has_keys
{
	my ($d) = @_;
	my $p = policy_of($d);
	return grep { defined $p->{$_} } qw(uniqueKey serialKey concurrencyKey fairnessKey);
}

# What comes first when a queue is emptied: a class, and a place in it.
sub rank_in_line
{
	my ($t) = @_;
	return (0, 0) if state_of($t) eq 'unscheduled';
	return (1, 0) if is_delayed($t);
	return (2, $t->{batch} - $t->{def}{priority} * 1e9);
}

# ---- comparison ----

# A run that was cancelled with its group before it was released, or after that:
# the server says which.
sub settle_both
{
	my ($t, $i, $s) = @_;
	my $run = $t->{runs}[$i];
	return unless delete $run->{both};
	my $created = $s->{runs}[$i]{reasonCreated};
	return if $created ne ($i > 0 ? 'rerun' : 'scheduled') && $created ne 'exception';
	if ($created eq 'exception')
	{
		delete @$run{qw(visibleAt until)};
		$t->{due} = delete $t->{untimed} if exists $t->{untimed} && @{ $t->{runs} } == 1;
	}
	elsif ($run->{reasonCreated} eq 'exception')
	{
		my $delay = first_delay($t->{def});
		$run->{visibleAt} = later($run->{scheduled}, $delay) if $delay;
		begin_total_time($t, $run->{scheduled});
	}
	$run->{reasonCreated} = $created;
	return;
}

# Compare a time that may be a window; it is learnt.
sub time_differs
{
	my ($want, $got) = @_;
	if (ref $$want)
	{
		return 'not in its window' if $got < $$want->[0] || $got > $$want->[1];
		$$want = $got;
	}
	return $got == $$want ? undef : 'has changed';
}

sub run_differs
{
	my ($t, $i, $want, $got) = @_;
	my %say = (%$want);
	$say{attempt} = undef unless has_policy($t->{def}) && ($i > 0 || $want->{attempt} > 0);
	for my $k (qw(state reasonCreated reasonResolved workerGroup workerId attempt error))
	{
		return "$k " . ($say{$k} // 'absent') . ' expected' if ($say{$k} // '') ne ($got->{$k} // '');
	}
	for my $k (qw(scheduled started takenUntil resolved visibleAt))
	{
		# a run that is deferred for no time may be visible when it was scheduled
		next if $k eq 'visibleAt' && !exists $got->{$k} && $want->{$k} && least($want->{$k}) <= $got->{scheduled};
		return $k if exists $want->{$k} != exists $got->{$k};
		next unless exists $want->{$k};
		my $bad = time_differs(\$want->{$k}, $got->{$k});
		return "$k $bad" if $bad;
	}
	return;
}

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
	settle_both($t, $_, $s) for 0 .. $#$runs;
	for my $i (0 .. $#$runs)
	{
		my $bad = run_differs($t, $i, $runs->[$i], $s->{runs}[$i]);
		return "run $i: $bad" if $bad;
	}
	$t->{due} //= $t->{def}{deadline};
	my $least = least($t->{due});
	my $bad = time_differs(\$t->{due}, $s->{deadline});
	$t->{expires} += least($t->{due}) - $least if $t->{moves};		# the expiry is known as well as the deadline
	my $due = $t->{due};
	delete $t->{due} if !ref $due && $due == $t->{def}{deadline};
	return $bad ? "deadline $bad: " . (ref $due ? "@$due" : $due) : undef;
}

# Numbers of a group by state, for group_progress(): delayed, tolerated; and the
# outcomes that there may be.
sub group_counts
{
	my ($m, $gid) = @_;
	my %n = (outcomes => {});
	my ($active, $forgiven) = (0, 0);
	for my $t (map { $m->{tasks}{$_} } keys %{ $m->{groups}{$gid}{tasks} })
	{
		$n{tasks}++;
		$n{ is_delayed($t) ? 'delayed' : state_of($t) }++;
		$active ||= !is_resolved($t);
		next if !is_resolved($t) || $t->{runs}[-1]{state} eq 'completed';
		my @end = @{ $t->{runs}[-1] }{qw(reasonResolved by_worker)};
		$n{tolerated}++ if is_tolerated($t->{def}, @end);
		if (is_tolerated($t->{def}, @end) && policy_of($t->{def})->{effect} eq 'forgive')
		{
			$forgiven = 1;
			next;
		}
		$n{outcomes}{ outcome_of($end[0]) } = 1;
	}
	$n{outcomes}{ $forgiven ? 'completed-with-errors' : 'completed' } = 1 unless %{ $n{outcomes} };
	$n{outcomes} = { '' => 1 } if $active;
	return \%n;
}

# What result() of a task says.
sub result
{
	my ($m, $id) = @_;
	my $t = $m->{tasks}{$id} or return 'TQ404';
	return (undef, @{ $t->{runs} } ? $t->{runs}[-1]{result} : undef);
}

# Pending, delayed and running of a queue, as task_queue_counts() counts them.
sub queue_counts
{
	my ($m, $queue) = @_;
	my @all     = grep { $_->{def}{queue} eq $queue } values %{ $m->{tasks} };
	my $running = grep { state_of($_) eq 'running' && !$m->is_over($_->{runs}[-1]{takenUntil}) } @all;
	my $pending = grep { state_of($_) eq 'pending' && !is_delayed($_) && !$m->is_late($_) } @all;
	return ($pending, $running);
}

1;
