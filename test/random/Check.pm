# Check.pm
#	  Judges what all clients did to the shared tasks in one round.
#
# A status holds the whole history of its task, so the statuses at the end of
# the round show every transition, in order, with its time.  The clients'
# records show every operation, its answer, and when it began and ended.  Both
# must explain each other:
#
# - each transition was made by an operation that was committed and returned
#   success, or by time, or by a dependency; a claim by exactly one;
# - each operation that returned success left its trace permanently, and what
#   was rolled back left none;
# - each answer, also each error, was right at some moment between the call and
#   the return: an operation sees all that had ended before it began;
# - nothing that had to happen is missing: a release, an expired claim, a
#   timeout, a deadline, an expiry, a retry, the end of a group, a dead letter.
#
# A rank (Status.pm) is a point in a task's history.  -1: it does not exist.  A
# run that is deferred stays at its rank; of tasks for which that is done (loose
# ones, Plan.pm) less is asked.
package Check;

use strict;
use warnings;

use List::Util qw(max min);

use Client;
use Plan qw(SKEW_MS EXPIRY_MS MAX_RUNS shared_queues round_start array_literal policy_fault policy_of
  is_tolerated is_fatal is_dead outcome_of is_loose);
use Status qw(parse_status status_faults rank_of run_final extends is_retry is_delayed pending_until
  %worker_reasons);

use constant DRIFT_MS => 15 * 60_000;
use constant FOREVER  => 9e18;

sub new
{
	my ($class, %arg) = @_;
	return bless { %arg, tasks => {}, gone => {}, old => [], sealed => {}, faults => [], frozen => {}, seen => {},
		by_worker => {}, fatal => {} }, $class;
}

sub describe
{
	my ($rec) = @_;
	my $what = join(' ', grep { defined } $rec->{k}, @{ $rec->{ids} // [] }[ 0 .. 0 ], $rec->{run}, $rec->{reason},
		$rec->{group}, $rec->{err}, $rec->{msg});
	return sprintf('client %d operation %d [%.3f, %.3f]', @$rec{qw(client op a e)})
	  . ($rec->{kept} ? '' : ' (not kept)') . ": $what";
}

# A fault, with all that was recorded of the task, so that it can be understood.
sub fault
{
	my ($self, $text, $id) = @_;
	push @{ $self->{faults} }, "round $self->{round}: $text";
	return if !defined $id || @{ $self->{faults} } > 5;
	push @{ $self->{faults} }, '    ' . ($self->{now_text}{$id} // 'no status');
	push @{ $self->{faults} }, map { '    ' . describe($_) } sort { $a->{a} <=> $b->{a} } @{ $self->{by}{$id} // [] };
	return;
}

sub expires { my ($d) = @_; return $d->{expires} // $d->{deadline} + 366 * 86_400_000 }

sub def_of
{
	my ($self, $id) = @_;
	my $t = $self->{tasks}{$id} // $self->{frozen}{$id};
	return $t ? $t->{def} : $self->{new_def}{$id};
}

# ---- the round ----

# @records: of all clients.  [$from, $to]: when the round began, and ended with
# the last upkeep.
sub round
{
	my ($self, $round, $from, $to, @records) = @_;
	@$self{qw(round start from to by)} = ($round, round_start($round), $from, $to, {});
	$self->{records} = \@records;
	for my $rec (@records)
	{
		my %once = map { $_ => 1 } @{ $rec->{ids} }, map { $_->[0] } @{ $rec->{claims} // [] };
		push @{ $self->{by}{$_} }, $rec for keys %once;
	}
	$self->gather;
	$self->existence;
	$self->histories;
	$self->note_ends;
	$self->fetch_edges;
	$self->explain_transitions;
	$self->judge_operations;
	$self->dependencies;
	$self->doomed;
	$self->groups;
	$self->queues;
	$self->limits;
	$self->letters;
	$self->remember;
	return;
}

# What the server says of everything that can have changed.
sub gather
{
	my ($self) = @_;
	@$self{qw(new_def creators now now_text)} = ({}, {}, {}, {});
	my %ids = map { $_ => 1 } keys %{ $self->{tasks} };
	for my $rec (grep { $_->{k} =~ /^create/ } @{ $self->{records} })
	{
		for my $d (@{ $rec->{defs} })
		{
			$ids{ $d->{id} } = 1;
			push @{ $self->{creators}{ $d->{id} } }, $rec if $rec->{kept};
			$self->{new_def}{ $d->{id} } = $d if $rec->{kept} && !$self->{tasks}{ $d->{id} };
		}
	}
	my @all = sort grep { !$self->{frozen}{$_} } keys %ids;
	while (my @some = splice(@all, 0, 1000))
	{
		for my $row ($self->rows('SELECT task_id, status FROM tq.statuses($1)', array_literal(@some)))
		{
			$self->{now_text}{ $row->[0] } = $row->[1];
			$self->{now}{ $row->[0] }      = parse_status($row->[1]);
		}
	}
	$self->{candidates} = [ sort keys %ids ];
	return;
}

sub rows
{
	my ($self, $sql, @bind) = @_;
	return @{ $self->{dbh}->selectall_arrayref($sql, undef, @bind) };
}

# A task exists if a creation of it was committed and it has not expired.
sub existence
{
	my ($self) = @_;
	for my $id (@{ $self->{candidates} })
	{
		next if $self->{frozen}{$id};
		my $d       = $self->def_of($id);
		my $there   = exists $self->{now}{$id};
		my $expired = $d && expires($d) < $self->{start} - ($there ? EXPIRY_MS : 0);
		$self->fault("$id exists, but no creation of it was committed", $id) if $there && !$d;
		$self->fault("$id has not expired", $id) if $there && $expired;
		$self->fault("$id is lost",         $id) if !$there && $d && !$expired;
		if ($d && $expired)
		{
			my $t = delete $self->{tasks}{$id};
			$self->note_left($t) if $t;
			$self->{gone}{$id} = 1;
		}
		delete $self->{now}{$id} if $there && (!$d || $expired);
	}
	return;
}

# Each status is possible, and goes on from what it was.
sub histories
{
	my ($self) = @_;
	$self->{visits} = {};
	for my $id (sort keys %{ $self->{now} })
	{
		my $now = $self->{now}{$id};
		my $d   = $self->def_of($id);
		my $was = $self->{tasks}{$id} ? $self->{tasks}{$id}{status} : undef;
		$self->fault("$id: $_", $id) for status_faults($d, $now);
		$self->fault("$id was $self->{tasks}{$id}{text}", $id) if $was && !extends($was, $now);
		$self->{visits}{$id} = $self->visits($id, $d, $was, $now);
		$self->missed($id, $d, $now) unless $now->{state} =~ /^(?:completed|failed|exception)$/;
	}
	return;
}

# Has a time passed before this round without its effect?
sub missed
{
	my ($self, $id, $d, $now) = @_;
	my $run  = $now->{runs}[-1] // {};
	my $p    = policy_of($d);
	my $from = $self->{from};
	my $until = pending_until($d, $now);
	$self->fault("$id: the deadline was missed", $id) if $now->{deadline} < $from;
	$self->fault("$id: the claim has not expired", $id) if $now->{state} eq 'running' && $run->{takenUntil} < $from;
	$self->fault("$id: it is pending for too long", $id) if defined $until && $until < $from;
	$self->fault("$id: it is running for too long", $id)
	  if defined $p->{run} && !$p->{alert} && exists $run->{started} && $run->{started} + $p->{run} < $from;
	return;
}

# Points of the history in this round: { rank, from, until, what, run }, where
# the task was between the earliest and the latest possible time.
sub visits
{
	my ($self, $id, $d, $was, $now) = @_;
	my @v = ({ rank => $was ? rank_of($was) : -1, from => 0, what => 'before' });
	my $n = $was ? @{ $was->{runs} } : 0;
	if (!$was)
	{
		my @made = @{ $self->{creators}{$id} };
		push @v, { rank => 0, from => min(map { $_->{a} } @made), what => 'created' }
		  if !@{ $now->{runs} } || @{ $d->{deps} };
	}
	for my $i (0 .. $#{ $now->{runs} })
	{
		my $run  = $now->{runs}[$i];
		my $old  = $i < $n ? $was->{runs}[$i] : {};
		my $rank = ($i + 1) * 4;
		my %at   = (run => $i);
		push @v, { %at, rank => $rank + 1, from => $run->{scheduled}, what => 'pending' }
		  if $i >= $n && !is_retry($run) && $run->{reasonCreated} !~ /^(?:exception|skip)$/;
		push @v, { %at, rank => $rank + 2, from => $run->{started}, what => 'running' }
		  if exists $run->{started} && !exists $old->{started};
		push @v, { %at, from => $run->{resolved}, what => 'resolved',
			rank => run_final($now->{runs}, $i) ? $rank + 3 : $rank + 5 }
		  if exists $run->{resolved} && !exists $old->{resolved};
	}
	my @known = $self->observations($id);
	for my $k (0 .. $#v)
	{
		$v[$k]{until} = $k == $#v ? FOREVER : min(map({ $_->[1] } grep { $_->[0] >= $v[ $k + 1 ]{rank} } @known), $self->{to});
	}
	$v[0]{until} = min(map { $_->{e} } @{ $self->{creators}{$id} }) if !$was;
	return \@v;
}

# [rank, time]: the task had come so far at the latest by then.
sub observations
{
	my ($self, $id) = @_;
	my @known;
	for my $rec (grep { $_->{kept} } @{ $self->{by}{$id} // [] })
	{
		my $rank = observed($rec, $id);
		push @known, [ $rank, $rec->{e} ] if defined $rank;
	}
	return @known;
}

# The least rank of the task after this operation, by its answer.
sub observed
{
	my ($rec, $id) = @_;
	return rank_of($rec->{parsed} //= parse_status($rec->{st})) if defined $rec->{st};
	return 0 if $rec->{k} eq 'create_tasks';
	return 7 if $rec->{k} eq 'cancel_group';
	if ($rec->{k} eq 'resolve')
	{
		my ($o) = grep { $_->[0] eq $id && $_->[2] =~ /^re/ } @{ $rec->{outcomes} };
		return $o ? ($o->[1] + 1) * 4 + ($o->[2] eq 'retried' ? 5 : 3) : undef;
	}
	return ($rec->{run} + 1) * 4 + 2 if $rec->{k} =~ /^(?:reclaim|defer)$/;
	my ($c) = grep { $_->[0] eq $id } @{ $rec->{claims} // [] };
	return $c ? ($c->[1] + 1) * 4 + 2 : undef;
}

# Dependencies of tasks that are new in this round.
sub fetch_edges
{
	my ($self) = @_;
	my @new = grep { !$self->{tasks}{$_} && @{ $self->{new_def}{$_}{deps} } } sort keys %{ $self->{now} };
	$self->{edges} = {};
	my @rows = @new
	  ? $self->rows('SELECT d.task_id, r.task_id, e.from_run FROM tq_internal.task d'
		  . ' JOIN (SELECT dependent, required, from_run FROM tq_internal.dependency'
		  . ' UNION ALL SELECT dependent, required, from_run FROM tq_internal.foreign_dependency) AS e ON e.dependent = d.id'
		  . ' JOIN tq_internal.task r ON r.id = e.required'
		  . ' WHERE d.task_id = ANY ($1::tq.slugid[])', array_literal(@new))
	  : ();
	$self->{edges}{ $_->[0] }{ $_->[1] } = $_->[2] for @rows;
	for my $id (@new)
	{
		my $want = join(' ', sort @{ $self->{new_def}{$id}{deps} });
		my $got  = join(' ', sort keys %{ $self->{edges}{$id} // {} });
		$self->fault("$id: dependencies on $got", $id) if $got ne $want;
		$self->check_from_run($id, $_) for keys %{ $self->{edges}{$id} // {} };
	}
	return;
}

# A dependency counts runs from the one that was the last when it was created, or
# the next one if that was resolved.
sub check_from_run
{
	my ($self, $id, $dep) = @_;
	my $from  = $self->{edges}{$id}{$dep};
	my $was   = $self->{tasks}{$dep} // $self->{frozen}{$dep};
	my $least = $was ? @{ $was->{status}{runs} } : 0;
	my $runs  = $self->runs_of($dep);
	my $most  = $runs ? @$runs : 0;
	$self->fault("$id: dependency on $dep counts from run $from, not $least to $most", $id)
	  if $from < max(0, $least - 1) || $from > $most;

	# it was made when the run before that was the last, and did not suffice
	$self->fault("$id: dependency on $dep skips run $from", $id)
	  if $from > 0 && $from == $most && run_final($runs, $from - 1)
	  && ($self->def_of($id)->{all} || $self->is_successful($dep, $from - 1, $runs->[ $from - 1 ]));
	return;
}

sub runs_of
{
	my ($self, $id) = @_;
	my $t = $self->{now}{$id} // ($self->{frozen}{$id} && $self->{frozen}{$id}{status}) or return;
	return $t->{runs};
}

# ---- every transition has a cause ----

sub explain_transitions
{
	my ($self) = @_;
	for my $id (sort keys %{ $self->{now} })
	{
		my @visits = @{ $self->{visits}{$id} };
		shift @visits;
		my $made = $self->{made}{$id};
		for my $v (@visits)
		{
			my $why = "explain_$v->{what}";
			$self->$why($id, $v, $made) if $v->{what} ne 'created';
		}
		$self->check_taken($id, $_, $made) for map { $_->{run} } grep { $_->{what} eq 'running' } @visits;
		my $reruns = grep { $_->{what} eq 'pending' && $self->{now}{$id}{runs}[ $_->{run} ]{reasonCreated} eq 'rerun' } @visits;
		$self->fault("$id: $reruns reruns", $id) if $reruns > ($made->{rerun} // 0) + ($made->{redrive} // 0);
	}
	return;
}

# What the clients did to each task, and what follows from that for others.
sub note_ends
{
	my ($self) = @_;
	$self->{made} = {};
	for my $id (sort keys %{ $self->{now} })
	{
		$self->{made}{$id} = $self->causes($id);
		$self->note_fatal($id, $self->{made}{$id});
	}
	return;
}

# Which of its runs has a worker cancelled, who alone can do that so that it
# counts; and when has this task taken its group with it in this round?
sub note_fatal
{
	my ($self, $id, $made) = @_;
	my $d    = $self->def_of($id);
	my $runs = $self->{now}{$id}{runs};
	for my $v (grep { $_->{what} eq 'resolved' } @{ $self->{visits}{$id} })
	{
		my $run = $runs->[ $v->{run} ];
		$self->{by_worker}{"$id/$v->{run}"} = 1 if $made->{resolves}{ $v->{run} }{canceled};
		next
		  unless run_final($runs, $v->{run})
		  && is_fatal($d, $run->{reasonResolved}, $self->{by_worker}{"$id/$v->{run}"});
		push @{ $self->{fatal}{ $d->{group} // $id } }, { task => $id, at => $run->{resolved} };
	}
	return;
}

# A task has been deleted: if it was unresolved in the round before, it may have ended by
# its deadline in this one, and taken its group with it.
sub note_left
{
	my ($self, $t) = @_;
	my $d = $t->{def};
	$self->{left}{ $d->{group} // $d->{id} } = 1
	  if $t->{status}{state} !~ /^(?:completed|failed|exception)$/ && is_fatal($d, 'deadline-exceeded');
	return;
}

# Was this run cancelled with its group?
sub is_doomed
{
	my ($self, $id, $run) = @_;
	my $d = $self->def_of($id);
	return 1 if $self->{left}{ $d->{group} // $id };
	return grep { $_->{task} ne $id && $_->{at} <= $run->{resolved} + SKEW_MS } @{ $self->{fatal}{ $d->{group} // $id } // [] };
}

# What the kept operations say they did to this task.
sub causes
{
	my ($self, $id) = @_;
	my %made = (claims => {}, reports => {}, resolves => {}, taken => {}, defers => {});
	for my $rec (grep { $_->{kept} } @{ $self->{by}{$id} // [] })
	{
		$made{ $rec->{k} }++;
		push @{ $made{claims}{ $_->[1] } }, [ $rec->{k}, "$_->[2]/$_->[3]", $_->[4] ]
		  for grep { $_->[0] eq $id } @{ $rec->{claims} // [] };
		$made{reports}{ $rec->{run} }{ $rec->{reason} }++ if $rec->{k} eq 'report';
		push @{ $made{taken}{ $rec->{run} } }, $rec->{taken} if $rec->{k} eq 'reclaim';
		$made{defers}{ $rec->{run} }++ if $rec->{k} eq 'defer';
		for my $o (grep { $_->[0] eq $id && $_->[2] =~ /^(?:resolved|retried)$/ } @{ $rec->{outcomes} // [] })
		{
			$made{resolves}{ $o->[1] }{ $rec->{reason} }++;
		}
	}
	return \%made;
}

sub explain_pending
{
	my ($self, $id, $v, $made) = @_;
	my $run = $self->{now}{$id}{runs}[ $v->{run} ];
	return if $run->{reasonCreated} ne 'scheduled' || $made->{schedule};
	my $d = $self->def_of($id);
	if (!@{ $d->{deps} })
	{
		my ($created) = grep { $_->{a} - 1 <= $run->{scheduled} && $run->{scheduled} <= $_->{e} } @{ $self->{creators}{$id} // [] };
		$self->fault("$id was not scheduled when it was created", $id) unless $created;
		return;
	}
	my $met = $self->met_at($id);
	$self->fault("$id was scheduled before its dependencies were met", $id)
	  if !defined $met || $run->{scheduled} < $met - SKEW_MS;
	return;
}

sub explain_running
{
	my ($self, $id, $v, $made) = @_;
	my $run    = $self->{now}{$id}{runs}[ $v->{run} ];
	my @claims = @{ $made->{claims}{ $v->{run} } // [] };
	my $worker = "$run->{workerGroup}/$run->{workerId}";
	return $self->fault("$id: no client claimed run $v->{run}", $id) unless @claims;
	my $times  = 1 + ($made->{defers}{ $v->{run} } // 0);
	my $others = grep { $_->[1] ne $worker } @claims;
	return $self->fault("$id: run $v->{run} was given to another worker", $id) if $times == 1 ? $others : $others == @claims;
	my $works  = grep { $_->[0] eq 'claim_work' } @claims;
	$self->fault("$id: run $v->{run} was given out more than once", $id)
	  if $times == 1 ? $works && @claims > 1 : $works > $times;
	$self->{by_task}{"$id/$v->{run}"} = 1 if $claims[0][0] eq 'claim_task';
	return;
}

sub explain_resolved
{
	my ($self, $id, $v, $made) = @_;
	my $run    = $self->{now}{$id}{runs}[ $v->{run} ];
	my $reason = $run->{reasonResolved};
	my $d      = $self->def_of($id);
	if (exists $worker_reasons{$reason} && ($reason ne 'canceled' || $made->{resolves}{ $v->{run} }{$reason}))
	{
		my $batches = $made->{resolves}{ $v->{run} }{$reason} // 0;
		$self->fault("$id: no client reported run $v->{run}", $id)
		  unless $batches || $made->{reports}{ $v->{run} }{$reason};
		$self->fault("$id: run $v->{run} was resolved $batches times", $id) if $batches > 1;
	}
	elsif ($reason eq 'canceled')
	{
		$self->fault("$id: no client cancelled run $v->{run}", $id)
		  unless $made->{cancel} || $made->{cancel_group} || $self->is_doomed($id, $run);
	}
	elsif ($reason eq 'skipped')
	{
		$self->fault("$id: no client skipped it", $id) unless $made->{skip};
	}
	elsif ($reason eq 'deadline-exceeded')
	{
		$self->fault("$id: the deadline has not passed", $id) unless $self->late($id);
	}
	elsif ($reason eq 'claim-expired')
	{
		$self->fault("$id: the claim had not expired", $id)
		  if $run->{takenUntil} > $run->{resolved} || $self->late($id);
	}
	else
	{
		$self->fault("$id: $reason past the deadline", $id) if $self->late($id);
	}
	return;
}

# The claim expires at the latest time that a claim or reclaim returned.
sub check_taken
{
	my ($self, $id, $i, $made) = @_;
	my $run  = $self->{now}{$id}{runs}[$i];
	return if is_loose($id);
	my $want = max(map({ $_->[2] } @{ $made->{claims}{$i} // [] }), @{ $made->{taken}{$i} // [] });
	$self->fault("$id: run $i is taken until $run->{takenUntil}, not $want", $id)
	  if defined $want && $run->{takenUntil} != $want;
	return;
}

# ---- every answer was right ----

sub judge_operations
{
	my ($self) = @_;
	$self->{transactions} = [ map { [ $_->{a}, $_->{e} ] } grep { $_->{tx} } @{ $self->{records} } ];
	for my $rec (@{ $self->{records} })
	{
		if (defined $rec->{err})
		{
			$self->judge_error($rec);
		}
		else
		{
			$self->judge_status($rec) if defined $rec->{st};
			next unless $rec->{kept};
			my $judge = "judge_$rec->{k}";
			$self->$judge($rec) if $self->can($judge);
		}
	}
	return;
}

# A status is possible by itself; one that was committed is in the history.
sub judge_status
{
	my ($self, $rec) = @_;
	my $id = $rec->{ids}[0];
	my $s  = $rec->{parsed} //= parse_status($rec->{st});
	my $d  = $self->def_of($id) // ($rec->{defs} ? $rec->{defs}[0] : undef);
	if ($d)
	{
		$self->fault(describe($rec) . ": $_", $id) for status_faults($d, $s);
	}
	my $now = $self->{now}{$id};
	return unless $rec->{kept} && $now;
	return $self->fault(describe($rec) . ": its effect is lost: $rec->{st}", $id) unless extends($s, $now);
	my ($v) = grep { $_->{rank} == rank_of($s) } @{ $self->{visits}{$id} };
	return $self->fault(describe($rec) . ": saw what never was: $rec->{st}", $id) unless $v;
	$self->fault(describe($rec) . ": saw what was over: $rec->{st}", $id) if $v->{until} < $rec->{a};
	return;
}

# Is the deadline over that holds?
sub late
{
	my ($self, $id) = @_;
	my $now = $self->{now}{$id};
	my $d   = $self->def_of($id);
	return 1 if $self->{frozen}{$id};
	return $now ? $now->{deadline} < $self->{start} : $d && $d->{deadline} < $self->{start};
}

sub judge_create
{
	my ($self, $rec) = @_;
	$self->fault(describe($rec) . ': bad dates were accepted', $rec->{ids}[0])
	  if grep { $self->bad_dates($_) || policy_fault($_) } @{ $rec->{defs} };
	for my $d (grep { $_->{group} } @{ $rec->{defs} })
	{
		my ($seal) = $self->{sealed}{ $d->{group} }
		  || grep { $_->{k} eq 'seal' && $_->{kept} && $_->{group} eq $d->{group} && $_->{e} < $rec->{a} } @{ $self->{records} };
		$self->fault(describe($rec) . ": the group $d->{group} was sealed", $rec->{ids}[0]) if $seal;
	}
	for my $d (@{ $rec->{defs} })
	{
		my $other = $self->def_of($d->{id});
		$self->fault(describe($rec) . ': is another task', $d->{id})
		  if $other && $other->{payload} != $d->{payload};
	}
	return;
}

sub judge_create_tasks { my ($self, $rec) = @_; return $self->judge_create($rec) }

sub judge_schedule
{
	my ($self, $rec) = @_;
	my $id = $rec->{ids}[0];
	$self->fault(describe($rec) . ': is unscheduled', $id) if $rec->{parsed}{state} eq 'unscheduled';
	$self->fault(describe($rec) . ': the deadline has passed', $id) if $self->late($id);
	return;
}

sub judge_rerun
{
	my ($self, $rec) = @_;
	my $id = $rec->{ids}[0];
	$self->fault(describe($rec) . ": is $rec->{parsed}{state}", $id)
	  unless $rec->{parsed}{state} =~ /^(?:pending|running)$/;
	$self->fault(describe($rec) . ': the deadline has passed', $id) if $self->late($id);
	return;
}

sub judge_cancel
{
	my ($self, $rec) = @_;
	my $id = $rec->{ids}[0];
	$self->fault(describe($rec) . ": is $rec->{parsed}{state}", $id)
	  unless $rec->{parsed}{state} =~ /^(?:completed|failed|exception)$/;
	$self->fault(describe($rec) . ': the deadline has passed', $id) if $self->late($id);
	return;
}

sub judge_skip
{
	my ($self, $rec) = @_;
	my $id  = $rec->{ids}[0];
	my $run = $rec->{parsed}{runs}[-1];
	$self->fault(describe($rec) . ": is $rec->{parsed}{state}", $id)
	  unless $run && ($run->{reasonResolved} // '') eq 'skipped';
	$self->fault(describe($rec) . ': the deadline has passed', $id) if $self->late($id);
	return;
}

sub judge_redrive
{
	my ($self, $rec) = @_;
	my $id  = $rec->{ids}[0];
	my $run = $rec->{parsed}{runs}[-1];
	$self->fault(describe($rec) . ": is $rec->{parsed}{state}", $id)
	  unless $run && $run->{state} eq 'pending' && $run->{reasonCreated} eq 'rerun';
	return;
}

sub judge_defer
{
	my ($self, $rec) = @_;
	my $id  = $rec->{ids}[0];
	my $run = $rec->{parsed}{runs}[-1];
	$self->fault(describe($rec) . ": is $rec->{parsed}{state}", $id)
	  unless $run && $run->{runId} == $rec->{run} && $run->{state} eq 'pending' && exists $run->{started};
	$self->fault(describe($rec) . ': the deadline has passed', $id) if $self->late($id);
	return;
}

sub judge_report
{
	my ($self, $rec) = @_;
	my $runs = $rec->{parsed}{runs};
	my $last = may_follow($runs, $rec->{run});
	my $run  = $runs->[ $rec->{run} ];
	$self->fault(describe($rec) . ": $rec->{st}", $rec->{ids}[0])
	  if !$run || ($run->{reasonResolved} // '') ne $rec->{reason} || $#$runs - $rec->{run} > $last;
	return;
}

# How many runs may follow one of these for a report on it to be a repeat?
sub may_follow
{
	my ($runs, $i) = @_;
	my $next = $runs->[ $i + 1 ];
	return $runs->[$i]{state} eq 'exception' || $next && is_retry($next) ? 1 : 0;
}

sub judge_claims
{
	my ($self, $rec) = @_;
	$self->fault(describe($rec) . ': too many claims') if $rec->{k} eq 'claim_work' && @{ $rec->{claims} } > $rec->{max};
	my $last = 8;
	for my $c (@{ $rec->{claims} })
	{
		my ($id, $i, $group, $worker, $taken) = @$c;
		my $d   = $self->def_of($id);
		my $now = $self->{now}{$id};
		next if $self->{gone}{$id};
		return $self->fault(describe($rec) . ": claim of $id, which is not there", $id) unless $d && $now;
		my $run = $now->{runs}[$i];
		$self->fault(describe($rec) . ": the claim of $id/$i is lost", $id)
		  unless $run && (is_loose($id)
			|| ($run->{workerGroup} // '') eq $group && ($run->{workerId} // '') eq $worker && $run->{takenUntil} >= $taken);
		$self->fault(describe($rec) . ": $id is past its deadline", $id) if $self->late($id);
		my ($v) = grep { $_->{what} eq 'running' && $_->{run} == $i } @{ $self->{visits}{$id} };
		$self->fault(describe($rec) . ": $id/$i had been claimed before", $id)
		  if !$v && !is_loose($id) && !($rec->{k} eq 'claim_task' && $self->{by_task}{"$id/$i"});
		next if $rec->{k} eq 'claim_task';
		$self->fault(describe($rec) . ": $id is in queue $d->{queue}", $id) if $d->{queue} ne $rec->{queue};
		$self->fault(describe($rec) . ": $id is out of order",         $id) if $d->{priority} > $last;
		$last = $d->{priority};
	}
	return;
}

sub judge_claim_work { my ($self, $rec) = @_; return $self->judge_claims($rec) }
sub judge_claim_task { my ($self, $rec) = @_; return $self->judge_claims($rec) }

sub judge_reclaim
{
	my ($self, $rec) = @_;
	my $id  = $rec->{ids}[0];
	my $now = $self->{now}{$id} or return;
	my $run = $now->{runs}[ $rec->{run} ];
	$self->fault(describe($rec) . ': the claim is lost', $id)
	  unless $run && (is_loose($id) || exists $run->{takenUntil} && $run->{takenUntil} >= $rec->{taken});
	$self->fault(describe($rec) . ': the deadline has passed', $id) if $self->late($id);
	$self->fault(describe($rec) . ': was not running', $id)
	  unless $self->possible($id, $rec, sub { return $_[0] == ($rec->{run} + 1) * 4 + 2 });
	return;
}

sub judge_resolve
{
	my ($self, $rec) = @_;
	$self->fault(describe($rec) . ': ' . @{ $rec->{outcomes} } . ' outcomes') if @{ $rec->{outcomes} } != @{ $rec->{runs} };
	for my $o (@{ $rec->{outcomes} })
	{
		my ($id, $i, $outcome) = @$o;
		my $now = $self->{now}{$id};
		if ($outcome eq 'not-found' || $outcome eq 'conflict')
		{
			$self->judge_refusal($rec, $outcome eq 'conflict' ? 'TQ409' : 'TQ404', $id, $i);
			next;
		}
		next unless $now;
		my $run = $now->{runs}[$i];
		my $retried = $run && $i < $#{ $now->{runs} } && is_retry($now->{runs}[ $i + 1 ]);
		$self->fault(describe($rec) . ": $outcome of $id/$i is lost", $id)
		  if !$run || ($run->{reasonResolved} // '') ne $rec->{reason}
		  || $outcome eq 'retried' && !$retried
		  || $outcome eq 'resolved' && $retried;
		my ($v) = grep { $_->{what} eq 'resolved' && $_->{run} == $i } @{ $self->{visits}{$id} };
		$self->fault(describe($rec) . ": $id/$i had been resolved before", $id) if $outcome ne 'repeated' && !$v;
	}
	return;
}

# Everything of the group that was unresolved is cancelled.
sub judge_cancel_group
{
	my ($self, $rec) = @_;
	my $gid = $rec->{group};
	my %hit = map { $_ => 1 } @{ $rec->{ids} };
	my ($least, $most) = (0, 0);
	$self->fault(describe($rec) . ': the group was not sealed')
	  unless $self->{sealed}{$gid}
	  || grep { $_->{k} eq 'seal' && $_->{kept} && $_->{group} eq $gid && $_->{a} < $rec->{b} } @{ $self->{records} };
	for my $id (keys %{ $self->{now} })
	{
		my $d = $self->def_of($id);
		next if ($d->{group} // '') ne $gid;
		my $made = $self->{tasks}{$id} ? 0 : min(map { $_->{a} } @{ $self->{creators}{$id} });
		my $sure = $self->{tasks}{$id} ? 0 : min(map { $_->{e} } @{ $self->{creators}{$id} });
		$least++ if $sure < $rec->{a};
		$most++  if $made < $rec->{b};
		$self->fault(describe($rec) . ": does not cancel $id", $id)
		  if ($sure < $rec->{a}) && !$hit{$id} && !$self->late($id)
		  && !$self->possible($id, $rec, sub { return $_[0] % 4 == 3 });
	}
	# no task joins a group once its seal was committed
	$least = $most = grep { ($self->def_of($_)->{group} // '') eq $gid } keys %{ $self->{now} }
	  if !$self->{vague}{$gid}
	  && ($self->{sealed}{$gid}
		|| grep { $_->{k} eq 'seal' && $_->{kept} && $_->{group} eq $gid && $_->{e} < $rec->{a} } @{ $self->{records} });
	$self->fault(describe($rec) . ": size $rec->{size}, not $least to $most")
	  if $rec->{size} < $least || $rec->{size} > $most;
	for my $id (grep { $self->{now}{$_} } keys %hit)
	{
		$self->fault(describe($rec) . ": $id was not cancelled", $id)
		  unless grep { $_->{what} eq 'resolved' && $self->{now}{$id}{runs}[ $_->{run} ]{reasonResolved} eq 'canceled' } @{ $self->{visits}{$id} };
	}
	return;
}

# Can the task have been at a rank that pleases while the operation ran?
sub possible
{
	my ($self, $id, $rec, $pleases) = @_;
	my $visits = $self->{visits}{$id};
	if (!$visits)
	{
		my $old = $self->{frozen}{$id} or return $pleases->(-1);
		return $pleases->(rank_of($old->{status}));
	}
	return !!grep { $_->{from} - 1 <= $rec->{b} && $_->{until} >= $rec->{a} && $pleases->($_->{rank}) } @$visits;
}

sub judge_error
{
	my ($self, $rec) = @_;
	my $err = $rec->{err};
	if ($err eq '40P01')
	{
		# only a transaction of several operations can lock in a wrong order
		$self->fault(describe($rec) . ': a deadlock of single operations')
		  unless grep { $_->[0] <= $rec->{b} && $_->[1] >= $rec->{a} } @{ $self->{transactions} };
		return;
	}
	return $self->fault(describe($rec) . ': unexpected', $rec->{ids}[0]) if $err !~ /^TQ40[049]$/;
	return if $rec->{tx};
	return $self->judge_create_error($rec) if $rec->{k} =~ /^create/;
	return $self->judge_group_error($rec) if defined $rec->{group};
	return $self->judge_refusal($rec, $err, $rec->{ids}[0], $rec->{run});
}

sub judge_refusal
{
	my ($self, $rec, $err, $id, $i) = @_;
	return if $self->{gone}{$id} || $err eq 'TQ404' && $self->{frozen}{$id} && expires($self->{frozen}{$id}{def}) < $self->{start};
	my $ok;
	if ($err eq 'TQ404')
	{
		# nor is there always a dead letter
		$ok = $rec->{k} eq 'redrive'
		  || $self->possible($id, $rec, sub { my ($r) = @_; return $r < 0 || defined $i && int($r / 4) <= $i });
	}
	elsif ($err eq 'TQ409')
	{
		$ok = $rec->{k} !~ /^(?:report|resolve)$/ && $self->late($id)
		  || $self->possible($id, $rec, sub { return $self->conflicts($rec, $id, $i, $_[0]) });
	}
	$self->fault(describe($rec) . ": $err without cause for $id", $id) unless $ok;
	return;
}

# Is this operation a conflict when the task is there?
sub conflicts
{
	my ($self, $rec, $id, $i, $rank) = @_;
	return 0 if $rank < 0;
	my $n    = int($rank / 4);
	my $runs = $self->runs_of($id);
	return $rank % 4 == 3 && $n >= MAX_RUNS if $rec->{k} =~ /^(?:rerun|redrive)$/;
	return $rank % 4 >= 2 if $rec->{k} eq 'skip';
	return 0 if !defined $i || $i >= $n;
	return 1 if $i != $n - 1 && $rec->{k} =~ /^(?:claim_task|reclaim|defer)$/;
	if (is_loose($id) && $i == $n - 1 && $rank % 4 == 2)
	{
		# it is running, or deferred
		return 1;
	}
	return $rank % 4 != 1 || $self->may_have_to_wait($id, $runs->[$i]) if $rec->{k} eq 'claim_task';
	return $rank % 4 != 2 if $rec->{k} =~ /^(?:reclaim|defer)$/;
	return 0 if $i == $n - 1 && $rank % 4 == 2;
	my $there = $i < $n - 1 || $rank % 4 == 3 ? $runs->[$i]{reasonResolved} // '' : '';
	return $there ne $rec->{reason} || $n - 1 - $i > may_follow($runs, $i)
	  || $there eq 'canceled' && !$self->{by_worker}{"$id/$i"};
}

# Can a run that is pending not be claimed yet, or not any more?
sub may_have_to_wait
{
	my ($self, $id, $run) = @_;
	return exists $run->{visibleAt} || defined policy_of($self->def_of($id))->{pending};
}

sub bad_dates
{
	my ($self, $d) = @_;
	return $d->{created} < $self->{start} - DRIFT_MS || $d->{deadline} < $self->{start};
}

sub judge_create_error
{
	my ($self, $rec) = @_;
	my %batch = map { $_->{id} => $_ } @{ $rec->{defs} };
	my $ok;
	for my $d (@{ $rec->{defs} })
	{
		$ok ||= $self->bad_dates($d) || policy_fault($d) if $rec->{err} eq 'TQ400';
		$ok ||= $self->bad_dependency($rec, $d, \%batch) if $rec->{err} eq 'TQ400';
		$ok ||= $self->create_conflict($rec, $d) if $rec->{err} eq 'TQ409';
	}
	$self->fault(describe($rec) . ': without cause', $rec->{ids}[0]) unless $ok;
	return;
}

sub bad_dependency
{
	my ($self, $rec, $d, $batch) = @_;
	for my $dep (grep { $_ ne $d->{id} } @{ $d->{deps} })
	{
		if ($batch->{$dep})
		{
			return 1 if expires($batch->{$dep}) < $d->{deadline};
			next;
		}
		return 1 if $self->{gone}{$dep};
		my $t = $self->{tasks}{$dep} // $self->{frozen}{$dep};
		my $def = $t ? $t->{def} : $self->{new_def}{$dep};
		return 1 if !$def || expires($def) < $d->{deadline};
		next if $t;
		return 1 unless grep { $_->{e} < $rec->{a} } @{ $self->{creators}{$dep} };
	}
	return 0;
}

sub create_conflict
{
	my ($self, $rec, $d) = @_;
	my $gid = $d->{group};
	return 1 if $gid && $self->{sealed}{$gid};
	return 1
	  if $gid && grep { $_->{k} eq 'seal' && $_->{kept} && $_->{group} eq $gid && $_->{a} <= $rec->{b} } @{ $self->{records} };
	my $other = $self->def_of($d->{id});
	return $other && $other->{payload} != $d->{payload};
}

sub judge_group_error
{
	my ($self, $rec) = @_;
	my $gid = $rec->{group};
	my $ok;
	if ($rec->{err} eq 'TQ404')
	{
		$ok = !grep {
			($self->def_of($_)->{group} // '') eq $gid
			  && ($self->{tasks}{$_} || grep { $_->{e} < $rec->{a} } @{ $self->{creators}{$_} })
		} keys %{ $self->{now} };
	}
	elsif ($rec->{err} eq 'TQ409')
	{
		$ok = $rec->{k} eq 'cancel_group' && !$self->{sealed}{$gid}
		  && !grep { $_->{k} eq 'seal' && $_->{kept} && $_->{group} eq $gid && $_->{e} < $rec->{a} } @{ $self->{records} };
	}
	$self->fault(describe($rec) . ': without cause') unless $ok;
	return;
}

# ---- nothing is missing ----

# Does the end of that run count as completed for its dependents?
sub is_successful
{
	my ($self, $id, $i, $run) = @_;
	return $run->{state} eq 'completed'
	  || is_tolerated($self->def_of($id), $run->{reasonResolved}, $self->{by_worker}{"$id/$i"});
}

# When were all dependencies of this task met?  undef: they are not.
sub met_at
{
	my ($self, $id) = @_;
	my $d     = $self->def_of($id);
	my $edges = $self->{tasks}{$id} ? $self->{tasks}{$id}{edges} : $self->{edges}{$id};
	my $when  = 0;
	for my $dep (keys %{ $edges // {} })
	{
		my $runs = $self->runs_of($dep);
		my $met;
		for my $i ($edges->{$dep} .. $#{ $runs // [] })
		{
			$met //= $runs->[$i]{resolved}
			  if run_final($runs, $i) && ($d->{all} || $self->is_successful($dep, $i, $runs->[$i]));
		}
		return unless defined $met;
		$when = max($when, $met);
	}
	return $when;
}

sub dependencies
{
	my ($self) = @_;
	for my $id (sort keys %{ $self->{now} })
	{
		next if $self->{now}{$id}{state} ne 'unscheduled';
		my $met = $self->met_at($id);
		$self->fault("$id: all dependencies are met, but it was not released", $id) if defined $met;
	}
	return;
}

# A task took its group with it: all that were there before, and were unresolved,
# have ended.  A task that was rerun since then need not have.
sub doomed
{
	my ($self) = @_;
	for my $id (sort keys %{ $self->{now} })
	{
		my $now = $self->{now}{$id};
		next if $now->{state} =~ /^(?:completed|failed|exception)$/ || $self->late($id);
		my $d    = $self->def_of($id);
		my $made = $self->{creators}{$id} ? min(map { $_->{e} } @{ $self->{creators}{$id} }) : 0;
		my ($again) = map { $_->{scheduled} + SKEW_MS } grep { $_->{reasonCreated} eq 'rerun' } reverse @{ $now->{runs} };
		$self->fault("$id: it was not cancelled with its group by $_->{task}", $id)
		  for grep { $_->{at} > max($made, $again // 0) } @{ $self->{fatal}{ $d->{group} // $id } // [] };
	}
	@$self{qw(fatal left)} = ({}, {});
	return;
}

# Dead letters, of tasks that are known: just those of which the last run is final
# without success.
sub letters
{
	my ($self) = @_;
	my %got;
	for my $q (shared_queues())
	{
		my ($after, @rows);
		do
		{
			@rows = $self->rows('SELECT task_id, reason FROM tq.list_dead_letters($1, $2, 1000)', $q, $after);
			$got{ $_->[0] } = $_->[1] for @rows;
			$after = $rows[-1][0] if @rows;
		} while (@rows == 1000);
	}
	for my $id (sort keys %{ $self->{now} }, keys %{ $self->{frozen} })
	{
		my $s    = $self->{now}{$id} // $self->{frozen}{$id}{status};
		my $end  = @{ $s->{runs} } ? $s->{runs}[-1]{reasonResolved} : undef;
		my $want = defined $end && is_dead($self->def_of($id), $end) ? $end : 'no';
		my $got  = $got{$id} // 'no';
		$self->fault("$id: $got dead letter instead of $want", $id) if $got ne $want;
	}
	return;
}

# How the tasks of a group that are resolved ended.
sub count_end
{
	my ($self, $count, $id, $s) = @_;
	my $i   = $#{ $s->{runs} };
	my $run = $s->{runs}[$i];
	my $d   = $self->def_of($id);
	return if $s->{state} eq 'completed';
	my $tolerated = is_tolerated($d, $run->{reasonResolved}, $self->{by_worker}{"$id/$i"});
	$count->{tolerated}++ if $tolerated;
	if ($tolerated && policy_of($d)->{effect} eq 'forgive')
	{
		$count->{forgiven}++;
		return;
	}
	$count->{outcomes}{ outcome_of($run->{reasonResolved}) } = 1;
	return;
}

sub count_task
{
	my ($self, $count, $id, $s) = @_;
	$count->{tasks}++;
	$count->{ is_delayed($s, $self->{to}) ? 'delayed' : $s->{state} }++;
	if ($s->{state} =~ /^(?:completed|failed|exception)$/)
	{
		$self->count_end($count, $id, $s);
	}
	else
	{
		$count->{active} = 1;
	}
	return;
}

# Numbers of the groups that are in use, and whether they are sealed; not of
# groups with tasks that may have expired.
sub groups
{
	my ($self) = @_;
	my %count;
	for my $id (keys %{ $self->{now} })
	{
		my $gid = $self->def_of($id)->{group} or next;
		$self->count_task($count{$gid} //= {}, $id, $self->{now}{$id});
	}
	for my $id (sort keys %{ $self->{frozen} })
	{
		my $t = $self->{frozen}{$id};
		my $gid = $t->{def}{group} or next;
		$self->count_task($count{$gid}, $id, $t->{status}) if $count{$gid};
		$self->{vague}{$gid} = 1 if expires($t->{def}) < $self->{start};
	}
	$self->{sealed}{ $_->{group} } = 1 for grep { $_->{k} eq 'seal' && $_->{kept} } @{ $self->{records} };
	for my $gid (grep { !$self->{vague}{$_} } sort keys %count)
	{
		my $count = $count{$gid};
		my ($row) = $self->rows('SELECT tasks, unscheduled, delayed, pending, running, completed, failed, exception, tolerated,'
			  . " tq.get_task_group(\$1) ->> 'sealed', outcome FROM tq.group_progress(\$1)", $gid);
		my $want = join(' ', map({ $count->{$_} // 0 }
				qw(tasks unscheduled delayed pending running completed failed exception tolerated)),
			$self->{sealed}{$gid} // 0);
		my $got = join(' ', @$row[ 0 .. 8 ], $row->[9] ? 1 : 0);
		my %may = $count->{active} ? ('' => 1) : %{ $count->{outcomes} // {} };
		$may{ $count->{forgiven} ? 'completed-with-errors' : 'completed' } = 1 unless %may;
		$self->fault("group $gid: $got " . ($row->[10] // '') . " instead of $want " . join('|', sort keys %may))
		  if $got ne $want || !$may{ $row->[10] // '' };
	}
	return;
}

sub queues
{
	my ($self) = @_;
	for my $q (shared_queues())
	{
		my @all = grep { $self->def_of($_)->{queue} eq $q } keys %{ $self->{now} };
		my $pending = grep { $self->{now}{$_}{state} eq 'pending' && !is_delayed($self->{now}{$_}, $self->{to}) } @all;
		my $running = grep { $self->{now}{$_}{state} eq 'running' } @all;
		my ($row) = $self->rows("SELECT (tq.task_queue_counts(\$1) -> 'pendingTasks')::bigint, c ->> 'pendingTasks', c ->> 'claimedTasks'"
			  . ' FROM tq.task_queue_counts($1) AS c', $q);
		$self->fault("queue $q: @$row instead of $pending $pending $running")
		  if "@$row" ne "$pending $pending $running";
	}
	return;
}

# ---- limits ----

# No queue has had more runs at a time than its limit, nor more claims.
sub limits
{
	my ($self) = @_;
	for my $rec (grep { $_->{k} eq 'limit' && $_->{kept} } @{ $self->{records} })
	{
		my $limit  = $rec->{limit};
		my %in     = map { $_ => 1 } grep { $self->def_of($_)->{queue} eq $limit->{queue} } keys %{ $self->{now} };
		my @claims = without_repeats(grep { grep { $in{ $_->[0] } } @{ $_->{claims} // [] } } @{ $self->{records} });
		push @{ $self->{limited} }, $limit;
		$self->slots($limit, @claims) if $limit->{concurrentLimit};
		$self->rates($limit, @claims) if $limit->{rateCount};
	}
	return;
}

# A worker that claims again the run that it has gets the same claim, with the
# same end.  One that was rolled back is repeated in its transaction only.
sub without_repeats
{
	my (%kept, %undone, @once);
	for my $rec (sort { $a->{b} <=> $b->{b} } @_)
	{
		my $seen = $rec->{kept} ? \%kept : \%undone;
		my @new = grep { my $claim = "@$_[ 0 .. 4 ]"; !$kept{$claim} && !$seen->{$claim}++ } @{ $rec->{claims} };
		push @once, { %$rec, claims => \@new } if @new;
	}
	return @once;
}

# A slot is taken at the latest when the claim returns, and free at the earliest
# when the run is resolved, by the server's clock; or, if the claim was rolled
# back, when the client has slept after it (Client.pm).
sub slots
{
	my ($self, $limit, @claims) = @_;
	my @at;
	for my $rec (@claims)
	{
		for my $claim (@{ $rec->{claims} })
		{
			my $run = $self->{now}{ $claim->[0] }{runs}[ $claim->[1] ];
			my $end = $rec->{kept} ? $run->{resolved} // $self->{to} : $rec->{b} + Client::HOLD_MS;
			push @at, [ $rec->{b}, 1 ], [ $end, -1 ] if $end > $rec->{b};
		}
	}
	my ($n, $most) = (0, 0);
	for my $at (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } @at)
	{
		$n += $at->[1];
		$most = max($most, $n);
	}
	$self->fault("$limit->{queue}: $most tasks at a time, not $limit->{concurrentLimit}") if $most > $limit->{concurrentLimit};
	return;
}

# Claims that began and returned within an interval, those rolled back included.
sub rates
{
	my ($self, $limit, @claims) = @_;
	for my $first (@claims)
	{
		my $n = 0;
		$n += @{ $_->{claims} } for grep { $_->{a} >= $first->{a} && $_->{b} < $first->{a} + 1000 * $limit->{rateInterval} } @claims;
		$self->fault("$limit->{queue}: $n claims, not $limit->{rateCount}") if $n > $limit->{rateCount};
	}
	return;
}

# At the very end: what is free of a limit can be claimed, and no more.
sub limits_left
{
	my ($self) = @_;
	for my $limit (grep { $_->{concurrentLimit} } @{ $self->{limited} })
	{
		my @in = grep { $_->{def}{queue} eq $limit->{queue} } values %{ $self->{tasks} };
		my $running = grep { $_->{status}{state} eq 'running' } @in;
		my $pending = grep { $_->{status}{state} eq 'pending' && !is_delayed($_->{status}, $self->{to}) } @in;
		my $want = min($pending, max(0, $limit->{concurrentLimit} - $running));
		my ($got) = $self->rows("SELECT count(*) FROM tq.claim_work(\$1, 'g', 'last', 100)", $limit->{queue});
		$self->fault("$limit->{queue}: $got->[0] of $pending pending tasks beside $running, not $want") if $got->[0] != $want;
	}
	return;
}

# Keep what the next round starts from.  A task past its deadline is final: it
# is kept as it is, and looked at once more at the very end.
sub remember
{
	my ($self) = @_;
	for my $id (keys %{ $self->{now} })
	{
		my $t = $self->{tasks}{$id} //= { def => $self->{new_def}{$id}, edges => $self->{edges}{$id} };
		$t->{status} = $self->{now}{$id};
		$t->{text}   = $self->{now_text}{$id};
		next if $t->{status}{deadline} >= $self->{start};
		$self->{seen}{ $t->{status}{runs}[-1]{reasonResolved} }++;
		$self->{frozen}{$id} = delete $self->{tasks}{$id};
	}
	my $limit = $self->{start};
	for my $id (keys %{ $self->{frozen} })
	{
		next if expires($self->{frozen}{$id}{def}) >= $limit;
		push @{ $self->{old} }, expires($self->{frozen}{$id}{def});
		delete $self->{frozen}{$id};
		$self->{gone}{$id} = 1;
	}
	return;
}

# How many shared tasks the server must have at least, and may have at most.
sub total
{
	my ($self) = @_;
	my $limit = $self->{start};
	@{ $self->{old} } = grep { $_ >= $limit - EXPIRY_MS } @{ $self->{old} };
	my $n = keys(%{ $self->{tasks} }) + keys(%{ $self->{frozen} });
	return ($n, $n + @{ $self->{old} });
}

# At the very end: what was final has not changed.
sub finish
{
	my ($self) = @_;
	my @all = sort keys %{ $self->{frozen} };
	while (my @some = splice(@all, 0, 1000))
	{
		my %got = map { $_->[0] => $_->[1] }
		  $self->rows('SELECT task_id, status FROM tq.statuses($1)', array_literal(@some));
		for my $id (@some)
		{
			$self->fault("$id: changed at last from $self->{frozen}{$id}{text} to " . ($got{$id} // 'nothing'))
			  if ($got{$id} // '') ne $self->{frozen}{$id}{text};
		}
	}
	return;
}

1;
