# Status.pm
#	  Reads a status structure and judges it by itself.
#
# A status holds the whole history of its task: every transition that ever
# happened is in its runs.  So each one that the server returns can be checked
# alone: runs are dense, only the last is unresolved, each follows from the one
# before, and retriesLeft follows from all of them.
package Status;

use strict;
use warnings;

use Exporter 'import';

use Plan qw(MAX_RUNS SKEW_MS ms_of);

our @EXPORT_OK = qw(parse_status status_faults rank_of run_final extends
  is_retry %worker_reasons);

# Reasons that a worker reports, and what a retry for them is called.
our %worker_reasons = (
	'completed'            => '',
	'failed'               => '',
	'worker-shutdown'      => 'retry',
	'intermittent-task'    => 'task-retry',
	'malformed-payload'    => '',
	'resource-unavailable' => '',
	'internal-error'       => '');

my %retry_of = (%worker_reasons, 'claim-expired' => 'retry', 'canceled' => '', 'deadline-exceeded' => '');

my %times = map { $_ => 1 } qw(scheduled started resolved takenUntil);

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

# Text of a jsonb status to a hash.  Ids and names have no braces in them.
sub parse_status
{
	my ($text) = @_;
	my $runs = $text =~ s/"runs": \[(.*?)\]/"runs": 0/s ? $1 : '';
	my $s    = fields($text);
	$s->{runs} = [ map { fields($_) } $runs =~ /\{[^{}]*\}/g ];
	return $s;
}

sub is_retry
{
	my ($run) = @_;
	return $run->{reasonCreated} eq 'retry' || $run->{reasonCreated} eq 'task-retry';
}

# Is run i of these resolved for good, that is, not followed by a retry?
sub run_final
{
	my ($runs, $i) = @_;
	return 0 if $runs->[$i]{state} eq 'pending' || $runs->[$i]{state} eq 'running';
	return $i == $#$runs || !is_retry($runs->[ $i + 1 ]);
}

my %rank_of_state = (pending => 1, running => 2, completed => 3, failed => 3, exception => 3);

# How far a task has come, as one growing number.
sub rank_of
{
	my ($s) = @_;
	my $n = @{ $s->{runs} };
	return $n == 0 ? 0 : $n * 4 + $rank_of_state{ $s->{runs}[-1]{state} };
}

sub run_faults
{
	my ($run) = @_;
	my $state  = $run->{state};
	my $reason = $run->{reasonResolved};
	my @bad;
	my $claimed = exists $run->{started};

	for my $k (qw(workerGroup workerId takenUntil))
	{
		push @bad, "$k without started or the reverse" if $claimed != exists $run->{$k};
	}
	push @bad, 'no time of scheduling' unless exists $run->{scheduled};
	if ($state eq 'pending')
	{
		push @bad, 'pending but claimed' if $claimed;
	}
	elsif ($state ne 'exception')
	{
		push @bad, "$state but never claimed" unless $claimed;
	}
	if ($state eq 'pending' || $state eq 'running')
	{
		push @bad, "$state but resolved" if defined $reason || exists $run->{resolved};
		return @bad;
	}
	return (@bad, 'resolved without a reason or time')
	  unless defined $reason && exists $run->{resolved};
	return (@bad, "unknown reason $reason") unless exists $retry_of{$reason};
	my $target = $reason eq 'completed' || $reason eq 'failed' ? $reason : 'exception';
	push @bad, "$state for $reason" if $state ne $target;
	push @bad, "$reason but never claimed"
	  if !$claimed && $reason ne 'canceled' && $reason ne 'deadline-exceeded';
	if ($run->{reasonCreated} eq 'exception')
	{
		push @bad, 'born resolved but claimed' if $claimed;
		push @bad, 'born resolved at two times' if $run->{scheduled} != $run->{resolved};
	}
	push @bad, 'times out of order'
	  if $run->{resolved} < ($run->{started} // $run->{scheduled}) - SKEW_MS
	  || $claimed && $run->{started} < $run->{scheduled} - SKEW_MS;
	return @bad;
}

# Does run i follow from the ones before?  Returns retriesLeft after it.
sub step_faults
{
	my ($runs, $i, $left, $retries, $bad) = @_;
	my $run     = $runs->[$i];
	my $created = $run->{reasonCreated};
	my $room    = MAX_RUNS - ($i + 1);

	if ($created eq 'rerun')
	{
		push @$bad, "run $i: rerun of what had retries left"
		  if $i > 0 && $left > 0 && $retry_of{ $runs->[ $i - 1 ]{reasonResolved} // '' };
		return $retries < $room ? $retries : $room;
	}
	if ($i == 0)
	{
		push @$bad, "run 0 was created by $created"
		  unless $created eq 'scheduled' || $created eq 'exception';
		return $left;
	}
	my $want = $retry_of{ $runs->[ $i - 1 ]{reasonResolved} // '' };
	if (!$want || $created ne $want)
	{
		push @$bad, "run $i was created by $created";
		return $left;
	}
	push @$bad, "run $i: a retry without retries left" if $left <= 0;
	push @$bad, "run $i: scheduled before its cause"
	  if $run->{scheduled} < $runs->[ $i - 1 ]{resolved} - SKEW_MS;
	return $left - 1;
}

# What is wrong with this status of a task of that definition; a list of texts.
sub status_faults
{
	my ($def, $s) = @_;
	my $runs = $s->{runs};
	my $left = $def->{retries};
	my @bad;

	push @bad, "taskId $s->{taskId}" if $s->{taskId} ne $def->{id};
	push @bad, 'taskGroupId' if $s->{taskGroupId} ne ($def->{group} // $def->{id});
	push @bad, 'taskQueueId' if $s->{taskQueueId} ne $def->{queue};
	push @bad, 'too many runs' if @$runs > MAX_RUNS;
	for my $i (0 .. $#$runs)
	{
		my $run = $runs->[$i];
		push @bad, "runs are not dense: $run->{runId} at $i" if $run->{runId} != $i;
		push @bad, map { "run $i: $_" } run_faults($run);
		push @bad, "run $i is unresolved but not the last"
		  if $i < $#$runs && !exists $run->{resolved};
		$left = step_faults($runs, $i, $left, $def->{retries}, \@bad);
	}
	my $state = @$runs ? $runs->[-1]{state} : 'unscheduled';
	push @bad, "state $s->{state}, last run $state" if $s->{state} ne $state;
	push @bad, "retriesLeft $s->{retriesLeft}, not $left" if $s->{retriesLeft} != $left;
	push @bad, "no retry after $runs->[-1]{reasonResolved} with $left left"
	  if @$runs
	  && $left > 0
	  && $retry_of{ $runs->[-1]{reasonResolved} // '' }
	  && $runs->[-1]{resolved} < $def->{deadline};
	return @bad;
}

# Is $new the same history as $old, or what it can have become?
sub extends
{
	my ($old, $new) = @_;
	return 0 if rank_of($new) < rank_of($old);
	for my $i (0 .. $#{ $old->{runs} })
	{
		my ($a, $b) = ($old->{runs}[$i], $new->{runs}[$i]);
		for my $k (keys %$a)
		{
			next if $k eq 'state' && !exists $a->{resolved};
			return 0 unless exists $b->{$k};
			next if $k eq 'takenUntil' && $b->{$k} >= $a->{$k};
			return 0 if $a->{$k} ne $b->{$k};
		}
	}
	return 1;
}

1;
