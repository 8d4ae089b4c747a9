# Status.pm
#	  Reads a status structure and judges it by itself.
#
# A status holds the whole history of its task: every transition that ever
# happened is in its runs.  So each one that the server returns can be checked
# alone: runs are dense, only the last is unresolved, each follows from the one
# before, and retriesLeft follows from all of them; so do, by the policy of the
# task, the attempts, the times before which a run cannot be claimed, and the
# deadline that holds.
package Status;

use strict;
use warnings;

use Exporter 'import';

use Plan qw(MAX_RUNS SKEW_MS ms_of policy_of has_policy first_delay budget_of delay_of is_loose);

our @EXPORT_OK = qw(parse_status status_faults rank_of run_final extends
  is_retry is_delayed pending_until state_for %retry_name %worker_reasons @exceptions);

# Reasons that a worker reports; and those for which there is report_exception().
our @exceptions     = qw(internal-error intermittent-task malformed-payload resource-unavailable worker-shutdown);
our %worker_reasons = map { $_ => 1 } qw(completed failed failed-terminal canceled), @exceptions;

# What a run is called that is a retry after another, if a policy has it so; and
# all reasons that there are.
our %retry_name = (
	'failed'               => 'failure-retry',
	'worker-shutdown'      => 'retry',
	'intermittent-task'    => 'task-retry',
	'resource-unavailable' => 'retry',
	'internal-error'       => 'retry',
	'claim-expired'        => 'retry',
	'pending-timeout'      => 'retry',
	'run-timeout'          => 'retry');
my %known = map { $_ => 1 } keys %retry_name, keys %worker_reasons, qw(deadline-exceeded skipped);

# A run that was never claimed can end for one of these; and so can one that
# was, and was deferred since.
my %without_claim = map { $_ => 1 } qw(canceled deadline-exceeded skipped pending-timeout);
my %while_waiting = map { $_ => 1 } qw(canceled deadline-exceeded skipped run-timeout);

my %times = map { $_ => 1 } qw(scheduled started resolved takenUntil visibleAt deadline);

sub fields
{
	my ($text) = @_;
	my %f;
	while ($text =~ /"(\w+)": (?:"([^"]*)"|(\d+))/g)
	{
		my $value = defined $2 ? $2 : $3;
		$f{$1} = $times{$1} ? ms_of($value) : $value;
	}
	return \%f;
}

# Text of a jsonb status to a hash.  Ids and names have no braces in them, and
# an error that a worker gave no object in an object.  The details of a run become
# keys of it.
sub parse_status
{
	my ($text) = @_;
	$text =~ s/"error": \{([^{}]*)\}/'"error": "' . ($1 =~ tr{"}{'}r) . '"'/ge;
	my $runs = $text =~ s/"runs": \[(.*?)\]/"runs": 0/s ? $1 : '';
	my $details = $text =~ s/"runDetails": \[(.*?)\]/"runDetails": 0/s ? $1 : '';
	my $s    = fields($text);
	$s->{runs} = [ map { fields($_) } $runs =~ /\{[^{}]*\}/g ];
	for my $run (@{ $s->{runs} })
	{
		$run->{misplaced} = 1 if grep { exists $run->{$_} } qw(attempt error progress visibleAt);
	}
	for my $detail (map { fields($_) } $details =~ /\{[^{}]*\}/g)
	{
		my $run = $s->{runs}[ $detail->{runId} ];
		%$run = (%$run, %$detail);
	}
	return $s;
}

sub is_retry { my ($run) = @_; return $run->{reasonCreated} =~ /retry$/ }

# The state of a run that ended so.
sub state_for
{
	my ($reason) = @_;
	return 'completed' if $reason eq 'completed' || $reason eq 'skipped';
	return $reason =~ /^failed/ ? 'failed' : 'exception';
}

# Is a task still not claimable at that time?
sub is_delayed
{
	my ($s, $at) = @_;
	return $s->{state} eq 'pending' && ($s->{runs}[-1]{visibleAt} // 0) > $at;
}

# Is run i of these resolved for good, that is, not followed by a retry?
sub run_final
{
	my ($runs, $i) = @_;
	return 0 if $runs->[$i]{state} eq 'pending' || $runs->[$i]{state} eq 'running';
	return $i == $#$runs || !is_retry($runs->[ $i + 1 ]);
}

my %rank_of_state = (pending => 1, running => 2, completed => 3, failed => 3, exception => 3);

# How far a task has come, as one growing number: a run that was deferred has
# come as far as one that is running.
sub rank_of
{
	my ($s) = @_;
	my $n = @{ $s->{runs} } or return 0;
	return $n * 4 + 2 if $s->{runs}[-1]{state} eq 'pending' && exists $s->{runs}[-1]{started};
	return $n * 4 + $rank_of_state{ $s->{runs}[-1]{state} };
}

sub resolution_faults
{
	my ($run) = @_;
	my ($state, $reason) = @$run{qw(state reasonResolved)};
	my $claimed = exists $run->{started};
	my @bad;

	return 'resolved without a reason or time' unless defined $reason && exists $run->{resolved};
	return "unknown reason $reason" unless $known{$reason};
	push @bad, "$state for $reason" if $state ne state_for($reason);
	push @bad, "$reason but never claimed" if !$claimed && !$without_claim{$reason};
	push @bad, "$reason but claimed" if $claimed && $reason eq 'pending-timeout';
	push @bad, "$reason while it was deferred" if $claimed && !exists $run->{takenUntil} && !$while_waiting{$reason};
	if ($run->{reasonCreated} =~ /^(?:exception|skip)$/)
	{
		push @bad, 'born resolved but claimed' if $claimed;
		push @bad, 'born resolved at two times' if $run->{scheduled} != $run->{resolved};
		push @bad, "$run->{reasonCreated} for $reason" if ($run->{reasonCreated} eq 'skip') != ($reason eq 'skipped');
	}
	push @bad, 'times out of order'
	  if $run->{resolved} < ($run->{started} // $run->{scheduled}) - SKEW_MS;
	return @bad;
}

sub run_faults
{
	my ($run) = @_;
	my $state   = $run->{state};
	my $claimed = exists $run->{started};
	my @bad;

	push @bad, 'keys in runs that belong to runDetails' if $run->{misplaced};
	push @bad, 'started without a worker or the reverse'
	  if grep { $claimed != exists $run->{$_} } qw(workerGroup workerId);
	push @bad, 'no time of scheduling' unless exists $run->{scheduled};
	push @bad, 'visible when it was scheduled' if exists $run->{visibleAt} && $run->{visibleAt} <= $run->{scheduled};
	push @bad, 'times out of order' if $claimed && $run->{started} < $run->{scheduled} - SKEW_MS;
	push @bad, 'taken but not started' if exists $run->{takenUntil} && !$claimed;
	if ($state eq 'pending' || $state eq 'running')
	{
		push @bad, "$state but resolved" if grep { exists $run->{$_} } qw(reasonResolved resolved error);
		push @bad, "$state but taken or not" if ($state eq 'running') != exists $run->{takenUntil};
		return @bad;
	}
	return (@bad, resolution_faults($run));
}

# What a first run and a rerun have to spend.
sub fresh
{
	my ($def, $i) = @_;
	my $room = MAX_RUNS - ($i + 1);
	return (
		left    => $def->{retries} < $room || $i == 0 ? $def->{retries} : $room,
		attempt => 0,
		lost    => policy_of($def)->{lost},
		delay   => [ 0, 0 ]);
}

# Is another run paid for after one that ended so, with that much left?
sub is_paid
{
	my ($def, $reason, $has) = @_;
	my $budget = budget_of($def, $reason);
	return $budget eq 'lost' ? $has->{lost} > 0 : $budget eq 'retries' && $has->{left} > 0;
}

# What run i has, if it follows from the ones before, which left that much.
sub step
{
	my ($def, $runs, $i, $has, $bad) = @_;
	my $run     = $runs->[$i];
	my $created = $run->{reasonCreated};
	my $before  = $i > 0 ? $runs->[ $i - 1 ]{reasonResolved} // '' : '';

	if ($created eq 'rerun')
	{
		push @$bad, "run $i: rerun of what had retries left"
		  if $i > 0 && is_paid($def, $before, $has) && $runs->[ $i - 1 ]{resolved} < $has->{deadline};
		return { %$has, fresh($def, $i), until => undef };
	}
	if ($i == 0)
	{
		push @$bad, "run 0 was created by $created" unless $created =~ /^(?:scheduled|exception|skip)$/;
		return { %$has, delay => $created eq 'scheduled' ? [ (first_delay($def)) x 2 ] : [ 0, 0 ] };
	}
	if ($created ne ($retry_name{$before} // '') || budget_of($def, $before) eq 'none')
	{
		push @$bad, "run $i was created by $created after $before";
		return $has;
	}
	push @$bad, "run $i: a retry without retries left" unless is_paid($def, $before, $has);
	push @$bad, "run $i: scheduled before its cause"
	  if $run->{scheduled} < $runs->[ $i - 1 ]{resolved} - SKEW_MS;
	return { %$has, lost => $has->{lost} - 1, delay => [ 0, 0 ] } if budget_of($def, $before) eq 'lost';
	my $delay = delay_of(policy_of($def), $has->{attempt});
	return { %$has, left => $has->{left} - 1, attempt => $has->{attempt} + 1, until => undef,
		delay => [ $delay, $delay + (policy_of($def)->{jitter} // 0) ] };
}

# Is the run of that attempt, and claimable no sooner than its policy has it?  And
# has no time of it ended it that was not over?
sub policy_faults
{
	my ($def, $run, $i, $has) = @_;
	my $p      = policy_of($def);
	my $loose  = is_loose($def->{id}) && exists $run->{started};
	my $wait   = ($run->{visibleAt} // $run->{scheduled}) - $run->{scheduled};
	my $reason = $run->{reasonResolved} // '';
	my @bad;

	push @bad, 'attempt ' . ($run->{attempt} // 'absent') . ", not $has->{attempt}"
	  if ($run->{attempt} // '') ne (has_policy($def) && ($i > 0 || $has->{attempt} > 0) ? $has->{attempt} : '');
	push @bad, "visible after $wait ms, not @{ $has->{delay} }"
	  if !$loose && ($wait < $has->{delay}[0] || $wait > $has->{delay}[1]);
	push @bad, 'claimed before it was visible' if !$loose && exists $run->{started} && $run->{started} < $run->{scheduled} + $wait - SKEW_MS;
	$has->{until} //= $run->{scheduled} + ($loose ? $has->{delay}[0] : $wait) + $p->{pending} if defined $p->{pending};
	if ($reason eq 'pending-timeout')
	{
		push @bad, 'pending for not too long' if !defined $p->{pending} || $p->{alert} || $run->{resolved} < $has->{until};
	}
	if ($reason eq 'run-timeout')
	{
		push @bad, 'running for not too long' if !defined $p->{run} || $p->{alert} || $run->{resolved} < $run->{started} + $p->{run};
	}
	return @bad;
}

# The deadline that holds: the total time may come before it, which begins when a
# task becomes pending for the first time.
sub deadline_of
{
	my ($def, $runs) = @_;
	my $p = policy_of($def);
	my ($first) = grep { $_->{reasonCreated} !~ /^(?:exception|skip)$/ } @$runs;
	return $def->{deadline} if !$first || !defined $p->{total} || $p->{alert};
	my $total = $first->{scheduled} + $p->{total};
	return $total < $def->{deadline} ? $total : $def->{deadline};
}

# Until when the last of these runs may wait for its first claim; undef: without
# limit, or it was deferred, so that its status does not show that any more.
sub pending_until
{
	my ($def, $s) = @_;
	my $p = policy_of($def);
	return if !defined $p->{pending} || $p->{alert} || $s->{state} ne 'pending' || exists $s->{runs}[-1]{started};
	my $run = $s->{runs}[-1];
	for (my $i = $#{ $s->{runs} }; $i > 0 && $run->{reasonCreated} eq 'retry'; $i--)
	{
		last if budget_of($def, $s->{runs}[ $i - 1 ]{reasonResolved}) ne 'lost';
		$run = $s->{runs}[ $i - 1 ];
		return if is_loose($def->{id}) && exists $run->{started} && exists $run->{visibleAt};
	}
	return ($run->{visibleAt} // $run->{scheduled}) + $p->{pending};
}

# What is wrong with this status of a task of that definition; a list of texts.
sub status_faults
{
	my ($def, $s) = @_;
	my $runs = $s->{runs};
	my $has  = { fresh($def, 0), deadline => deadline_of($def, $runs) };
	my @bad;

	push @bad, "taskId $s->{taskId}" if $s->{taskId} ne $def->{id};
	push @bad, 'taskGroupId' if $s->{taskGroupId} ne ($def->{group} // $def->{id});
	push @bad, 'taskQueueId' if $s->{taskQueueId} ne $def->{queue};
	push @bad, "deadline $s->{deadline}, not $has->{deadline}" if $s->{deadline} != $has->{deadline};
	push @bad, 'too many runs' if @$runs > MAX_RUNS;
	for my $i (0 .. $#$runs)
	{
		my $run = $runs->[$i];
		push @bad, "runs are not dense: $run->{runId} at $i" if $run->{runId} != $i;
		push @bad, map { "run $i: $_" } run_faults($run);
		push @bad, "run $i is unresolved but not the last"
		  if $i < $#$runs && !exists $run->{resolved};
		return @bad if @bad;
		$has = step($def, $runs, $i, $has, \@bad);
		push @bad, map { "run $i: $_" } policy_faults($def, $run, $i, $has);
	}
	my $state = @$runs ? $runs->[-1]{state} : 'unscheduled';
	push @bad, "state $s->{state}, last run $state" if $s->{state} ne $state;
	push @bad, "retriesLeft $s->{retriesLeft}, not $has->{left}" if $s->{retriesLeft} != $has->{left};
	push @bad, "no retry after $runs->[-1]{reasonResolved} with $has->{left} left"
	  if @$runs
	  && @$runs < MAX_RUNS
	  && exists $runs->[-1]{resolved}
	  && is_paid($def, $runs->[-1]{reasonResolved}, $has)
	  && $runs->[-1]{resolved} < $s->{deadline};
	return @bad;
}

# What another claim of a run that was deferred changes.
my %of_claim = map { $_ => 1 } qw(workerGroup workerId takenUntil visibleAt);

# Is $new the same history as $old, or what it can have become?
sub extends
{
	my ($old, $new) = @_;
	my $loose = is_loose($old->{taskId});
	return 0 if rank_of($new) < rank_of($old);
	for my $i (0 .. $#{ $old->{runs} })
	{
		my ($a, $b) = ($old->{runs}[$i], $new->{runs}[$i]);
		for my $k (keys %$a)
		{
			next if $k eq 'state' && !exists $a->{resolved};
			next if $loose && !exists $a->{resolved} && $of_claim{$k};
			return 0 unless exists $b->{$k};
			next if $k eq 'takenUntil' && $b->{$k} >= $a->{$k};
			return 0 if $a->{$k} ne $b->{$k};
		}
	}
	return 1;
}

1;
