# Plan.pm
#	  What the randomised test does: ids, definitions and choices, by the seed.
#
# Everything here is a function of the seed: the id and the definition of task
# n of client c in round r, and the random numbers of operation i.  So any
# client can name, repeat or depend on any other's task without asking it, and
# the same seed gives the same plan.  Knows neither the server nor the model.
package Plan;

use strict;
use warnings;

use Digest::MD5 qw(md5);
use Exporter 'import';
use List::Util qw(max);
use MIME::Base64;
use Time::Local qw(timegm);

our @EXPORT_OK = qw(ROUND_MS SKEW_MS EXPIRY_MS NEAR_MS MAX_RUNS SHARED_QUEUES shared_queues is_given may_give slug_of bytes_of shared_task
  shared_id shared_group definition_json round_start ms_of time_of
  seed_numbers pick array_literal random_policy random_wait delay_of policy_fault
  policy_of has_policy first_delay budget_of is_tolerated is_fatal is_dead outcome_of is_loose
  is_calm);

# The virtual clock: round r begins at BASE + r * ROUND_MS, and a round takes
# far less real time than the first of what follows.  Deadlines lie half-way
# between two rounds, and so does all expiry: none passes while a round is going
# on.  All that a policy makes due is due within CALM_MS of the middle, too, for
# it counts from something that happens while a round is going on.
#
use constant ROUND_MS      => 600_000;
use constant CALM_MS       => 180_000;

# What is not due so long from now is not due while a round is going on.
use constant NEAR_MS       => 50_000;

# Tasks must stay until they expire, and be gone EXPIRY_MS later: upkeep skips what
# is locked, and looks at it again in the next round.
use constant EXPIRY_MS     => 600_000;

# A session reads the clock when its call begins, and may then wait for a lock:
# so what follows may bear a time that is so much earlier than its cause.
use constant SKEW_MS       => 2_000;

use constant BASE_MS       => 2_208_988_800_000;    # 2040-01-01T00:00:00Z
use constant MAX_RUNS      => 6;
use constant SHARED_QUEUES => 3;
use constant GROUP_TASKS   => 8;

my @priorities = qw(lowest very-low low medium high very-high highest);

sub round_start
{
	my ($round) = @_;
	return BASE_MS + $round * ROUND_MS;
}

# 2040-01-01T00:00:00.000Z and back; minutes are remembered, for speed.
my %minutes;

sub ms_of
{
	my ($text) = @_;
	my $minute = substr($text, 0, 16);
	my $base   = $minutes{$minute} //= 1000 * timegm(
		0,
		substr($text, 14, 2),
		substr($text, 11, 2),
		substr($text, 8,  2),
		substr($text, 5,  2) - 1,
		substr($text, 0,  4));
	return $base + substr($text, 17, 2) * 1000 + substr($text, 20, 3);
}

sub time_of
{
	my ($ms) = @_;
	my @t = gmtime(int($ms / 1000));
	return sprintf('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ',
		$t[5] + 1900, $t[4] + 1, @t[ 3, 2, 1, 0 ], $ms % 1000);
}

# A version 4 slug that follows from any words.
sub slug_of
{
	my @b = unpack('C16', md5(join('/', @_)));
	$b[6] = ($b[6] & 0x0f) | 0x40;
	$b[8] = ($b[8] & 0x3f) | 0x80;
	my $slug = encode_base64(pack('C16', @b), '');
	$slug =~ tr{+/}{-_};
	return substr($slug, 0, 22);
}

# The bytes of a slug.
sub bytes_of
{
	my ($slug) = @_;
	$slug =~ tr{-_}{+/};
	return decode_base64("$slug==");
}

# Eight numbers that follow from any words.
sub seed_numbers
{
	return unpack('N8', md5(join('/', 'a', @_)) . md5(join('/', 'b', @_)));
}

sub pick
{
	my @choices = @_;
	return $choices[ int(rand(@choices)) ];
}

# A source of small numbers that follows from a seed.
sub dice_of
{
	my ($state) = @_;
	return sub {
		my ($sides) = @_;
		$state = ($state * 1_103_515_245 + 12_345) & 0x7fff_ffff;
		return ($state >> 12) % $sides;
	};
}

# ---- policies (doc/spec/policy.md 2) ----

# Reasons that a policy may name in retryOn, and those that it does by default.
my @retriable = qw(failed claim-expired worker-shutdown resource-unavailable internal-error intermittent-task
  pending-timeout run-timeout);
our @default_retry_on = qw(claim-expired worker-shutdown intermittent-task);

# Is a time that is so far from something in a round itself in none?
sub is_calm
{
	my ($ms) = @_;
	my $off = abs($ms % ROUND_MS - ROUND_MS / 2);
	return $ms == 0 || $off <= CALM_MS;
}

# A time to wait, in ms; most come to an end between this round and the next.
sub random_wait
{
	my ($dice) = @_;
	my $rounds = (0, 0, 0, 0, 0, 1, 1, 2)[ $dice->(8) ];
	return $rounds * ROUND_MS + (2, 3, 4, 6, 7, 8)[ $dice->(6) ] * 60_000;
}

# The delay before the attempt that follows this one, without jitter (section 4).
sub delay_of
{
	my ($p, $attempt) = @_;
	my $delay = $p->{delay} // 0;
	$delay *= ($p->{factor} // 1) * ($attempt + 1) if ($p->{kind} // '') eq 'linear';
	$delay *= 2**$attempt if ($p->{kind} // '') eq 'exponential';
	return $p->{max} && $delay > $p->{max} ? $p->{max} : $delay;
}

# Is a time to wait calm, and as long in rounds with all of its jitter?
sub is_calm_wait
{
	my ($ms, $jitter) = @_;
	return is_calm($ms) if !$jitter;
	return $ms > 0 && is_calm($ms) && is_calm($ms + $jitter)
	  && int($ms / ROUND_MS) == int(($ms + $jitter) / ROUND_MS);
}

# Does nothing that this policy and delay bring about fall into a round?
sub is_all_calm
{
	my ($p, $first) = @_;
	my $pending = $p->{pending} // 0;
	return 0 unless is_calm_wait($pending, 0) && is_calm_wait($first, 0) && is_calm_wait($first + $pending, 0);
	for my $attempt (0 .. MAX_RUNS - 2)
	{
		my $ms = delay_of($p, $attempt);
		return 0 unless is_calm_wait($ms, $p->{jitter} // 0);
		return 0 unless is_calm_wait($ms + $pending, $p->{jitter} // 0);
	}
	return 1;
}

sub random_backoff
{
	my ($p, $dice) = @_;
	$p->{delay} = random_wait($dice) if $dice->(3);
	$p->{kind} = (qw(fixed linear exponential))[ $dice->(3) ] if $dice->(3);
	$p->{factor} = 1 + $dice->(3) if ($p->{kind} // '') eq 'linear' && $dice->(2);
	$p->{max}    = random_wait($dice) if $dice->(3) == 0;
	$p->{jitter} = 1000 * (1 + $dice->(90)) if $dice->(2);
	return;
}

sub random_timeouts
{
	my ($p, $dice) = @_;
	for my $which (qw(claim run pending total))
	{
		$p->{$which} = $which eq 'claim' || $dice->(12) ? random_wait($dice) : 0 if $dice->(3) == 0;
	}
	delete $p->{run}   if defined $p->{run} && defined $p->{total} && $p->{run} > $p->{total};
	delete $p->{claim} if defined $p->{claim} && defined $p->{run} && $p->{claim} > $p->{run};
	$p->{alert} = 1 if $dice->(8) == 0;
	return;
}

# A policy by these numbers, for a definition with so many retries and a delay of
# its own or none.  One task of two has none.
sub random_policy
{
	my ($dice, $retries, $delay) = @_;
	return if $dice->(2);
	my $p;
	do
	{
		$p = { retry_on => [@default_retry_on] };
		$p->{retries} = $dice->(MAX_RUNS) if $dice->(2);
		if ($dice->(2))
		{
			my %on = map { $_ => 1 } map { $retriable[ $dice->(scalar @retriable) ] } 0 .. $dice->(6);
			$p->{retry_on} = [ sort keys %on ];
			$p->{says_on} = 1;
		}
		$p->{lost} = $dice->(MAX_RUNS - ($p->{retries} // $retries)) if $dice->(3) == 0;
		random_backoff($p, $dice) if $dice->(2);
		random_timeouts($p, $dice);
		$p->{pending} //= random_wait($dice) if defined $p->{lost} && $dice->(2);
		$p->{first} = $dice->(6) ? random_wait($dice) : 0 if $dice->(5) == 0;
		$p->{effect} = (qw(block cancel-group cancel-group tolerate forgive))[ $dice->(5) ] if $dice->(4);
		$p->{dead} = $dice->(2) if $dice->(2);
		$p->{form} = $dice->(5);
	} until (is_all_calm($p, $delay // $p->{first} // 0) && policy_json($p) ne '{}');
	return $p;
}

# The policy of a definition; that of Taskcluster for one that has none.
my $plain = { retry_on => [@default_retry_on] };

sub policy_of { my ($d) = @_; return $d->{policy} // $plain }

# An empty policy is none: the runs of such a task have no attempt.
sub has_policy { my ($d) = @_; return $d->{policy} && policy_json($d->{policy}) ne '{}' }

# Milliseconds from scheduled until the first run of such a task is claimable.
sub first_delay { my ($d) = @_; return $d->{delay} // policy_of($d)->{first} // 0 }

# Which budget pays for another run after that reason: retries, lost or none.
sub budget_of
{
	my ($d, $reason) = @_;
	my $p = policy_of($d);
	return 'none' unless grep { $_ eq $reason } @{ $p->{retry_on} };
	return $reason eq 'claim-expired' && defined $p->{lost} ? 'lost' : 'retries';
}

# Does the end of a task for that reason count as completed (section 8, C10)?
# Not if another session than its worker cancelled it.
sub is_tolerated
{
	my ($d, $reason, $by_worker) = @_;
	return 0 if $reason =~ /^(?:completed|skipped)$/ || $reason eq 'canceled' && !$by_worker;
	return (policy_of($d)->{effect} // '') =~ /^(?:tolerate|forgive)$/;
}

# Does it take its group with it?
sub is_fatal
{
	my ($d, $reason, $by_worker) = @_;
	return 0 if $reason =~ /^(?:completed|skipped)$/ || $reason eq 'canceled' && !$by_worker;
	return (policy_of($d)->{effect} // '') eq 'cancel-group';
}

# Is it kept as a dead letter?
sub is_dead
{
	my ($d, $reason) = @_;
	return $reason !~ /^(?:completed|skipped|canceled)$/ && !!policy_of($d)->{dead};
}

# How a group ended of which this was the first end that counts (section 10.7).
sub outcome_of
{
	my ($reason) = @_;
	return 'canceled' if $reason eq 'canceled';
	return $reason =~ /^(?:deadline-exceeded|claim-expired|pending-timeout|run-timeout)$/ ? 'timed-out' : 'failed';
}

# Some of the shared tasks may be deferred: which worker has claimed them is less
# certain, because they change between workers.
sub is_loose { my ($id) = @_; return (seed_numbers('loose', $id))[0] % 4 == 0 }

# The rule that a policy of a definition breaks, if it does: TQ400.
sub policy_fault
{
	my ($d) = @_;
	my $p    = $d->{policy};
	my $wait = $d->{delay} // ($p ? $p->{first} : undef) // 0;
	return 'delay' if $wait > $d->{deadline} - $d->{created};
	return unless $p;
	return 'runs' if $d->{retries} + ($p->{lost} // 0) > MAX_RUNS - 1;
	return 'claimTimeout' if defined $p->{claim} && defined $p->{run} && $p->{claim} > $p->{run};
	return 'runTimeout' if defined $p->{run} && defined $p->{total} && $p->{run} > $p->{total};
	return $p->{wrong};
}

# Milliseconds as a duration, in one of its forms.
sub duration_json
{
	my ($ms, $form) = @_;
	my $s = $ms / 1000;
	return $s if $form < 2 || $ms % 1000;
	return "\"$s s\"" if $form == 2;
	return sprintf('"%02d:%02d:%02d"', $s / 3600, $s / 60 % 60, $s % 60) if $form == 3;
	return sprintf('"%d minutes %d seconds"', $s / 60, $s % 60);
}

# Fields of a policy that are texts, under their own names (section 11).
my @key_names = qw(uniqueKey uniqueScope onConflict serialKey serialOnFailure concurrencyKey fairnessKey);

sub policy_json
{
	my ($p) = @_;
	my %ms = (claim => 'claimTimeout', run => 'runTimeout', pending => 'pendingTimeout', total => 'totalTimeout', first => 'delay');
	my @backoff = map { "\"$_\":" . duration_json($p->{$_}, $p->{form}) } grep { defined $p->{$_} } qw(delay max jitter);
	push @backoff, "\"kind\":\"$p->{kind}\"" if $p->{kind};
	push @backoff, "\"factor\":$p->{factor}" if defined $p->{factor};
	my @keys = map { "\"$ms{$_}\":" . duration_json($p->{$_}, $p->{form}) } grep { defined $p->{$_} } sort keys %ms;
	push @keys, "\"retries\":$p->{retries}" if defined $p->{retries};
	push @keys, "\"lostRetries\":$p->{lost}" if defined $p->{lost};
	push @keys, '"retryOn":[' . join(',', map { "\"$_\"" } @{ $p->{retry_on} }) . ']' if $p->{says_on};
	push @keys, '"retryBackoff":{' . join(',', @backoff) . '}' if @backoff;
	push @keys, '"timeoutAlertOnly":true' if $p->{alert};
	push @keys, "\"onUnsuccessful\":\"$p->{effect}\"" if $p->{effect};
	push @keys, '"deadLetter":' . ($p->{dead} ? 'true' : 'false') if defined $p->{dead};
	push @keys, map { "\"$_\":\"$p->{$_}\"" } grep { defined $p->{$_} } @key_names;
	push @keys, '"uniqueStates":[' . join(',', map { "\"$_\"" } @{ $p->{uniqueStates} }) . ']' if $p->{uniqueStates};
	push @keys, '"uniquePeriod":' . $p->{uniquePeriod} / 1000 if defined $p->{uniquePeriod};
	push @keys, "\"$p->{wrong}\":-1" if $p->{wrong};
	return '{' . join(',', @keys) . '}';
}

# Some tasks of every second client are in a queue on which all others may only
# depend.
sub may_give { my ($client) = @_; return $client % 2 == 0 }
sub is_given { my ($client, $n) = @_; return may_give($client) && $n % 3 == 1 }

sub shared_queues { return (map({ "shared/q$_" } 0 .. SHARED_QUEUES - 1), 'given/q') }

sub shared_id
{
	my ($seed, $round, $client, $n) = @_;
	return slug_of('task', $seed, $round, $client, $n);
}

# Groups move on with the tasks, so that some are sealed while they are filled.
sub shared_group
{
	my ($seed, $round, $k) = @_;
	return slug_of('group', $seed, $round, $k);
}

my @spans   = (0, 1, 1, 2, 2, 3, 4, 6, 10);
my @expires = (0, 2, 2, 12, 12, undef, undef, undef);

# Task n of a client in a round, as every client defines it.  It depends on
# tasks of lower n only, so there are no cycles; and on what may not be there.
sub shared_task
{
	my ($seed, $round, $client, $n, $clients) = @_;
	my @r     = seed_numbers('def', $seed, $round, $client, $n);
	my $id    = shared_id($seed, $round, $client, $n);
	my $start = round_start($round);
	my $span  = $spans[ $r[0] % @spans ];
	my $dead  = $start + $span * ROUND_MS + ROUND_MS / 2;
	my $late  = $expires[ ($r[0] >> 8) % @expires ];
	my %deps;

	if ($r[1] % 10 < 5 && $n > 0)
	{
		for my $i (0 .. ($r[1] >> 8) % 3)
		{
			my ($d) = seed_numbers('dep', $seed, $id, $i);
			my $other  = ($d >> 8) % $clients;
			my $back   = 1 + ($d >> 16) % ($n < 6 ? $n : 6);
			my $before = $round > 0 && $d % 10 == 0;
			($other, $back) = ($other - $other % 2, $n - max(1, $n - $back - ($n - $back - 1) % 3))
			  if !may_give($client) && $n > 1 && ($d >> 4) % 3;
			$deps{
				$before
				? shared_id($seed, $round - 1, $other, ($d >> 16) % 16)
				: shared_id($seed, $round, $other, $n - $back)
			} = 1;
		}
		$deps{$id} = 1 if $r[1] % 100 < 5;
	}
	my $dice   = dice_of($r[6]);
	my $delay  = $dice->(12) ? undef : random_wait($dice);
	my $policy = random_policy($dice, $r[5] % MAX_RUNS, $delay);

	# for these it would be unknown whether the deadline has passed
	delete $policy->{total} if $policy && defined $policy->{total} && !$policy->{total};
	return {
		id       => $id,
		queue    => is_given($client, $n) ? 'given/q' : 'shared/q' . $r[2] % SHARED_QUEUES,
		group    => $r[3] % 10 < 4 && !is_given($client, $n) ? shared_group($seed, $round, int($n / GROUP_TASKS)) : undef,
		deps     => [ sort keys %deps ],
		all      => $r[4] % 2,
		priority => 1 + $r[4] / 2 % 7,
		policy   => $policy,
		delay    => $delay,
		given    => $r[5] % MAX_RUNS,
		retries  => $policy && $policy->{retries} // $r[5] % MAX_RUNS,
		created  => $start,
		deadline => $dead,
		expires  => defined $late ? $dead + $late * ROUND_MS : undef,
		payload  => $n
	};
}

sub priority_name { my ($number) = @_; return $priorities[ $number - 1 ] }

# The definition as JSON; nothing in it needs escaping.
sub definition_json
{
	my ($d) = @_;
	my $deps = join(',', map { "\"$_\"" } @{ $d->{deps} });
	return
		"{\"taskQueueId\":\"$d->{queue}\""
	  . ($d->{group}     ? ",\"taskGroupId\":\"$d->{group}\""     : '')
	  . ($d->{scheduler} ? ",\"schedulerId\":\"$d->{scheduler}\"" : '')
	  . ($deps           ? ",\"dependencies\":[$deps]"            : '')
	  . ($d->{all}       ? ',"requires":"all-resolved"'           : '')
	  . ',"priority":"' . priority_name($d->{priority}) . '"'
	  . ',"retries":' . ($d->{given} // $d->{retries})
	  . ($d->{policy}        ? ',"policy":' . policy_json($d->{policy}) : '')
	  . (defined $d->{delay} ? ',"delay":' . $d->{delay} / 1000         : '')
	  . ',"created":"' . time_of($d->{created}) . '"'
	  . ',"deadline":"' . time_of($d->{deadline}) . '"'
	  . (defined $d->{expires} ? ',"expires":"' . time_of($d->{expires}) . '"' : '')
	  . ",\"payload\":{\"n\":$d->{payload}}"
	  . ',"metadata":{"name":"n","description":"d","owner":"o","source":"https://example.org/"}}';
}

sub array_literal
{
	return '{' . join(',', @_) . '}';
}

1;
