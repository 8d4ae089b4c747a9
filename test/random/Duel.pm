# Duel.pm
#	  All clients at the same tasks in the same moment.
#
# Left to chance, two clients seldom meet at one task within the millisecond in
# which they could hurt each other.  So in phase D they are brought together:
# one client prepares tasks, all wait for each other, and then each does its
# part at once, some inside a transaction that stays open for a moment and may
# be rolled back.  What happens is recorded and judged as in the other phases.
# Which encounter a slot has, and who plays which part, follows from the seed.
package Duel;

use strict;
use warnings;

use List::Util qw(min shuffle);

use Plan qw(ROUND_MS round_start seed_numbers slug_of pick is_loose may_give);

use constant SLOTS => 8;

my @encounters = qw(fan_in edge seal held_claim held_deadline claim expired same batches rerun unborn
  too_long defer skip doomed tolerated dead limit);

# Task j of a slot: without any wish, it lives long and depends on nothing.
sub task
{
	my ($c, $round, $slot, $j, %wish) = @_;
	my $start = round_start($round);
	my ($r) = seed_numbers('duel', $c->{seed}, $round, $slot, $j);
	return {
		id       => slug_of('duel task', $c->{seed}, $round, $slot, $j),
		queue    => 'shared/q' . $slot % 3,
		group    => undef,
		deps     => [],
		all      => $r % 2,
		priority => 1 + ($r >> 8) % 7,
		retries  => 1 + ($r >> 16) % 4,
		created  => $start,
		deadline => $start + 3 * ROUND_MS + ROUND_MS / 2,
		expires  => $start + 20 * ROUND_MS + ROUND_MS / 2,
		payload  => $j,
		%wish
	};
}

# A policy that says no more than this.
sub policy
{
	my (%p) = @_;
	return { retry_on => [@Plan::default_retry_on], form => 0, %p };
}

# Task j or one of those after it that may be deferred.
sub loose_task
{
	my ($c, $slot, $j, %wish) = @_;
	$j++ until is_loose(task($c, $c->{round}, $slot, $j)->{id});
	return task($c, $c->{round}, $slot, $j, %wish);
}

sub encounter
{
	my ($c, $slot) = @_;
	my ($r) = seed_numbers('encounter', $c->{seed}, $c->{round});
	return $encounters[ ($r + $slot) % @encounters ];
}

sub group_of { my ($c, $slot) = @_; return slug_of('duel group', $c->{seed}, $c->{round}, $slot) }
sub width    { my ($c) = @_; return min($c->{clients}, 6) }

# Tasks of this slot in this round that are there, and running in the hands of
# the client that prepares.
sub running
{
	my ($c, @defs) = @_;
	for my $d (@defs)
	{
		$c->try_create($d);
		$c->try_claim_task($d->{id}, 0);
	}
	return;
}

# ---- prepare: by one client, before the others come ----

sub prepare
{
	my ($c, $slot) = @_;
	return if $c->{no} != $slot % $c->{clients};
	my $what = encounter($c, $slot);
	my $make = __PACKAGE__->can("prepare_$what");
	$make->($c, $slot) if $make;
	return;
}

sub parents
{
	my ($c, $slot) = @_;
	return map { task($c, $c->{round}, $slot, $_) } 0 .. width($c) - 1;
}

# The same, of which some clients may only depend on those of others.
sub givers
{
	my ($c, $slot) = @_;
	return map { task($c, $c->{round}, $slot, $_, may_give($_) ? (queue => 'given/q') : ()) } 0 .. width($c) - 1;
}

sub prepare_fan_in { my ($c, $slot) = @_; return run_to_fan_in($c, $slot, givers($c, $slot)) }

sub run_to_fan_in
{
	my ($c, $slot, @parents) = @_;
	$c->as_superuser(sub { running($c, @parents) });
	$c->try_create(task($c, $c->{round}, $slot, $_, deps => [ map { $_->{id} } @parents ], all => $_ % 2)) for 100 .. 103;
	return $c->shared_upkeep;
}

sub prepare_batches { my ($c, $slot) = @_; return run_to_fan_in($c, $slot, parents($c, $slot)) }

sub prepare_edge
{
	my ($c, $slot) = @_;
	$c->as_superuser(sub { running($c, (givers($c, $slot))[ 0, 1 ]) });
	return;
}

sub prepare_seal
{
	my ($c, $slot) = @_;
	$c->try_create(task($c, $c->{round}, $slot, 0, group => group_of($c, $slot)));
	return;
}

# These are for the next round, in which the claims have expired.
sub prepare_late
{
	my ($c, $slot) = @_;
	$c->set_claim_timeout(300_000);
	running($c, map { task($c, $c->{round}, $slot, $_) } 200 .. 205);
	running($c, map { task($c, $c->{round}, $slot, $_, deadline => round_start($c->{round}) + ROUND_MS / 2) } 300 .. 305);
	running($c, map { late_task($c, $c->{round}, $_) } 400 .. 403, 600 .. 603);
	$c->try_create(late_task($c, $c->{round}, $_)) for 500 .. 503;
	$c->set_claim_timeout($c->{timeout});
	return;
}

# Of these the time to run is over in the next round, or to be pending, or that
# of the claim and then to be pending.
my @late_policies = (
	policy(retry_on => [ 'run-timeout', 'worker-shutdown' ], says_on => 1, run => 180_000),
	policy(pending => 180_000, dead => 1, effect => 'tolerate'),
	policy(retries => 0, lost => 2, claim => 120_000, pending => 180_000));

sub late_task
{
	my ($c, $round, $j) = @_;
	my $policy = $late_policies[ int($j / 100) - 4 ];
	return task($c, $round, SLOTS - 1, $j, policy => $policy, defined $policy->{retries} ? (retries => 0) : ());
}

sub defer_tasks
{
	my ($c, $slot) = @_;
	return (loose_task($c, $slot, 0), loose_task($c, $slot, 50));
}

sub prepare_defer { my ($c, $slot) = @_; return running($c, defer_tasks($c, $slot)) }

# One that is pending, one that is unscheduled, and what that waits for.
sub skip_tasks
{
	my ($c, $slot) = @_;
	my ($p, $r) = map { task($c, $c->{round}, $slot, $_) } 0, 1;
	return ($p, $r, task($c, $c->{round}, $slot, 2, deps => [ $r->{id} ]));
}

sub prepare_skip
{
	my ($c, $slot) = @_;
	my ($p, $r, $u) = skip_tasks($c, $slot);
	running($c, $r);
	$c->try_create($_) for $p, $u, task($c, $c->{round}, $slot, 100, deps => [ $p->{id}, $u->{id} ]);
	return;
}

# Two that take their group with them, two others that are running, two that wait.
sub group_tasks
{
	my ($c, $slot) = @_;
	my $gid = group_of($c, $slot);
	return map {
		task($c, $c->{round}, $slot, $_, group => $gid,
			policy => $_ < 2 ? policy(retries => 0, effect => 'cancel-group', dead => 1) : undef,
			$_ < 2 ? (retries => 0) : ())
	} 0 .. 5;
}

sub prepare_doomed
{
	my ($c, $slot) = @_;
	my @tasks = group_tasks($c, $slot);
	running($c, @tasks[ 0 .. 3 ]);
	$c->try_create($_) for @tasks[ 4, 5 ];
	$c->try_create(task($c, $c->{round}, $slot, 100, all => 1, deps => [ map { $_->{id} } @tasks ]));
	return;
}

sub tolerated_tasks
{
	my ($c, $slot) = @_;
	return map {
		task($c, $c->{round}, $slot, $_, retries => 0, policy => policy(retries => 0, effect => $_ ? 'forgive' : 'tolerate'))
	} 0, 1;
}

sub prepare_tolerated { my ($c, $slot) = @_; return running($c, tolerated_tasks($c, $slot)) }

sub dead_tasks
{
	my ($c, $slot) = @_;
	return map { task($c, $c->{round}, $slot, $_, policy => policy(dead => 1)) } 0, 1;
}

sub prepare_dead
{
	my ($c, $slot) = @_;
	my @tasks = dead_tasks($c, $slot);
	running($c, @tasks);
	$c->try_report($_->{id}, 0, 'failed') for @tasks;
	return;
}

# A queue that has so many slots, or hands out so much in a time; none else is in it.
sub limited
{
	my ($c, $slot) = @_;
	my ($r) = seed_numbers('limited', $c->{seed}, $c->{round}, $slot);
	my %limit = $r % 2 ? (concurrentLimit => 1 + $r / 2 % 3) : (rateCount => 2 + $r / 2 % 3, rateInterval => 0.05);
	return { queue => "shared/r$c->{round}s$slot", %limit };
}

sub limited_tasks
{
	my ($c, $slot) = @_;
	my $limit = limited($c, $slot);
	return map { task($c, $c->{round}, $slot, $_, queue => $limit->{queue}) } 0 .. 15;
}

sub prepare_limit
{
	my ($c, $slot) = @_;
	my $limit = limited($c, $slot);
	my $json  = join(',', map { "\"$_\":$limit->{$_}" } grep { $_ ne 'queue' } sort keys %$limit);
	my ($r)   = $c->as_superuser(sub {
		my $r = $c->call('SELECT tq.set_queue($1, $2)', $limit->{queue}, "{$json}");
		Trust::declare_all($c, $limit->{queue});
		return $r;
	});
	$c->note('limit', $r, ids => [], limit => $limit);
	$c->try_create_tasks(limited_tasks($c, $slot));
	return;
}

sub prepare_claim
{
	my ($c, $slot) = @_;
	$c->try_create($_) for parents($c, $slot);
	return;
}

sub prepare_rerun
{
	my ($c, $slot) = @_;
	my @tasks = (parents($c, $slot))[ 0, 1 ];
	running($c, @tasks);
	$c->try_report($_->{id}, 0, pick('completed', 'failed')) for @tasks;
	return;
}

# ---- fire: all at once ----

sub fire
{
	my ($c, $slot) = @_;
	my $what = encounter($c, $slot);

	# one slot of each round leaves what is late in the next
	prepare_late($c, $slot) if $slot == SLOTS - 1 && $c->{no} == $c->{round} % $c->{clients};
	__PACKAGE__->can("fire_$what")->($c, $slot);
	return;
}

# Alone, or in a transaction that stays open for a moment.
sub somehow
{
	my ($c, $work) = @_;
	return rand() < 0.5 ? $work->() : $c->hold(rand() < 0.8, $work);
}

# The last requirements of the same tasks end together.
sub fire_fan_in
{
	my ($c, $slot) = @_;
	my @parents = givers($c, $slot);
	my $d = $parents[ $c->{no} ] or return;
	return somehow($c, sub {
		return rand() < 0.8 ? $c->try_report($d->{id}, 0, pick(qw(completed completed failed internal-error)))
		  : $c->try_verb('cancel', $d->{id});
	});
}

# A task ends while others are being made that depend on it.
sub fire_edge
{
	my ($c, $slot) = @_;
	my @parents = (givers($c, $slot))[ 0, 1 ];
	return somehow($c, sub { return $c->try_report($parents[ $c->{no} ]{id}, 0, 'completed') }) if $c->{no} < 2 && @parents > 1;
	my $d = task($c, $c->{round}, $slot, 100 + $c->{no}, deps => [ map { $_->{id} } @parents ]);
	return somehow($c, sub { return rand() < 0.5 ? $c->try_create($d) : $c->try_create_tasks($d) });
}

# A group is sealed and cancelled while others join it.
sub fire_seal
{
	my ($c, $slot) = @_;
	my $gid = group_of($c, $slot);
	if ($c->{no} != ($slot + 1) % $c->{clients})
	{
		my $d = task($c, $c->{round}, $slot, 100 + $c->{no}, group => $gid);
		return somehow($c, sub { return $c->try_create($d) });
	}
	$c->{dbh}->do('SELECT pg_sleep(0.001)');
	rand() < 0.7 ? $c->try_seal($gid) : $c->hold(1, sub { return $c->try_seal($gid) });
	return $c->try_cancel_group($gid);
}

# Upkeep comes by while someone holds what is due, and lets go of it again.
sub held
{
	my ($c, $first) = @_;
	return if $c->{round} == 0;
	my $j = $first + $c->{no};
	return $c->hold(rand() < 0.3, sub {
		my $id = task($c, $c->{round} - 1, SLOTS - 1, $j)->{id};
		return $c->try_report($id, 0, pick('completed', 'worker-shutdown'));
	}) if $c->{no} % 2 && $c->{no} < 6;
	$c->{dbh}->do('SELECT pg_sleep(0.001)');
	return $c->shared_upkeep;
}

sub fire_held_claim    { my ($c) = @_; return held($c, 200) }
sub fire_held_deadline { my ($c) = @_; return held($c, 300) }

# All want the same runs.
sub fire_claim
{
	my ($c, $slot) = @_;
	return $c->try_claim_work('shared/q' . $slot % 3, $c->worker, 3) if rand() < 0.6;
	return somehow($c, sub { return $c->try_claim_task((parents($c, $slot))[ int(rand(2)) ]{id}, 0) });
}

# All want the same slots, and give them back; some of which was for nothing.
sub fire_limit
{
	my ($c, $slot) = @_;
	my $queue = limited($c, $slot)->{queue};
	my @ids   = map { $_->{id} } limited_tasks($c, $slot);
	for (1 .. 5)
	{
		my $rec = somehow($c, sub {
			return rand() < 0.8 ? $c->try_claim_work($queue, $c->worker, 1 + int(rand(3))) : $c->try_claim_task(pick(@ids), 0);
		});
		for my $claim (@{ $rec->{claims} // [] })
		{
			next if rand() < 0.1;
			somehow($c, sub {
				return rand() < 0.9 ? $c->try_report(@$claim[ 0, 1 ], pick(qw(completed failed worker-shutdown)))
				  : $c->try_verb('cancel', $claim->[0]);
			});
		}
	}
	return;
}

# A claim has expired: renewed, reported, cancelled and expired at once.
sub fire_expired
{
	my ($c) = @_;
	return if $c->{round} == 0;
	my $id = task($c, $c->{round} - 1, SLOTS - 1, pick(203, 204, 205))->{id};
	return pick(
		sub { return $c->shared_upkeep },
		sub { return somehow($c, sub { return $c->try_reclaim($id, 0) }) },
		sub { return somehow($c, sub { return $c->try_report($id, 0, 'completed') }) },
		sub { return somehow($c, sub { return $c->try_report($id, 0, 'intermittent-task') }) },
		sub { return $c->try_verb('cancel', $id) })->();
}

# The same task is created by all, some of whom think better of it.
sub fire_same
{
	my ($c, $slot) = @_;
	my ($a, $b) = map { task($c, $c->{round}, $slot, $_) } 0, 1;
	my $gid = group_of($c, $slot);
	$b->{group} = $gid;
	return pick(
		sub { return $c->hold(rand() < 0.4, sub { return $c->try_create($a) }) },
		sub { return $c->try_create({ %$a, payload => 7 }) },
		sub { return $c->try_create_tasks(shuffle($a, $b)) },
		sub { return somehow($c, sub { return $c->try_create($b) }) })->();
}

# The same runs are resolved by all, in any order.
sub fire_batches
{
	my ($c, $slot) = @_;
	my @runs = shuffle(map { [ $_->{id}, 0 ] } parents($c, $slot));
	return $c->try_resolve(pick('completed', 'completed', 'failed', 'worker-shutdown'), @runs);
}

# Tasks are asked for in the moment in which they come to be.
sub fire_unborn
{
	my ($c, $slot) = @_;
	for my $j (0 .. 19)
	{
		my $d = task($c, $c->{round}, $slot, $j);
		if ($c->{no} == $slot % $c->{clients})
		{
			$c->try_create($d);
			next;
		}
		pick(
			sub { return $c->try_report($d->{id}, 0, pick('completed', 'worker-shutdown')) },
			sub { return $c->try_report($d->{id}, 0, 'failed') },
			sub { return $c->try_resolve('completed', [ $d->{id}, 0 ]) },
			sub { return $c->try_reclaim($d->{id}, 0) },
			sub { return $c->try_claim_task($d->{id}, 0) },
			sub { return $c->try_verb(pick(qw(schedule rerun cancel read)), $d->{id}) })->();
	}
	return;
}

# What was resolved runs again, while others are made that depend on it.
sub fire_rerun
{
	my ($c, $slot) = @_;
	my @tasks = (parents($c, $slot))[ 0, 1 ];
	my $id    = $tasks[ $c->{no} % 2 ]{id} // $tasks[0]{id};
	my $d     = task($c, $c->{round}, $slot, 100 + $c->{no}, deps => [$id]);
	return pick(
		sub { return somehow($c, sub { return $c->try_verb('rerun', $id) }) },
		sub { return somehow($c, sub { return $c->try_create($d) }) },
		sub { $c->try_claim_task($id, 1); return $c->try_report($id, 1, 'completed') })->();
}

# The time of a run is over: it is ended by upkeep, its worker and others at once.
sub fire_too_long
{
	my ($c) = @_;
	return if $c->{round} == 0;
	my $j  = pick(400, 401, 500, 501, 600, 601);
	my $id = late_task($c, $c->{round} - 1, $j)->{id};
	return pick(
		sub { return $c->shared_upkeep },
		sub { return $c->shared_upkeep },
		sub { return $c->try_verb('cancel', $id) },
		sub { return somehow($c, sub { return $c->try_reclaim($id, 0) }) },
		sub { return somehow($c, sub { return int($j / 100) != 5 ? $c->try_report($id, 0, 'worker-shutdown') : $c->try_verb('skip', $id) }) },
		sub { return somehow($c, sub { return int($j / 100) != 5 ? $c->try_report($id, 0, 'completed') : $c->try_claim_task($id, 0) }) })->();
}

# A run is deferred, and claimed again at once, and all that may be between.
sub fire_defer
{
	my ($c, $slot) = @_;
	my $id = (defer_tasks($c, $slot))[ $c->{no} % 2 ]{id};
	for (0 .. 2)
	{
		pick(
			sub { return somehow($c, sub { return $c->try_defer($id, 0) }) },
			sub { return $c->try_defer($id, 0) },
			sub { return $c->try_claim_task($id, 0) },
			sub { return $c->try_claim_work('shared/q' . $slot % 3, $c->worker, 2) },
			sub { return $c->try_reclaim($id, 0) },
			sub { return somehow($c, sub { return $c->try_report($id, 0, pick('completed', 'intermittent-task')) }) })->();
	}
	return;
}

# A task is skipped while it is claimed, released, scheduled or cancelled.
sub fire_skip
{
	my ($c, $slot) = @_;
	my ($p, $r, $u) = map { $_->{id} } skip_tasks($c, $slot);
	return pick(
		sub { return somehow($c, sub { return $c->try_verb('skip', $p) }) },
		sub { return somehow($c, sub { return $c->try_verb('skip', $u) }) },
		sub { return somehow($c, sub { return $c->try_claim_task($p, 0) }) },
		sub { return $c->try_claim_work('shared/q' . $slot % 3, $c->worker, 2) },
		sub { return somehow($c, sub { return $c->try_report($r, 0, 'completed') }) },
		sub { return $c->try_verb(pick('schedule', 'cancel', 'rerun'), pick($p, $u)) })->();
}

# A group is taken down while others work in it, and join it.
sub fire_doomed
{
	my ($c, $slot) = @_;
	my @ids = map { $_->{id} } group_tasks($c, $slot);
	my %in  = (group => group_of($c, $slot));
	my $d   = task($c, $c->{round}, $slot, 700 + $c->{no}, %in, all => 1, deps => [ @ids[ 3, 4 ] ]);
	return somehow($c, sub { return $c->try_report($ids[ $c->{no} ], 0, 'failed') }) if $c->{no} < 2;
	return pick(
		sub { return somehow($c, sub { return $c->try_report(pick(@ids[ 2, 3 ]), 0, pick('completed', 'worker-shutdown')) }) },
		sub { return somehow($c, sub { return $c->try_create($d) }) },
		sub { return somehow($c, sub { return $c->try_claim_task($ids[4], 0) }) },
		sub { return somehow($c, sub { return $c->try_verb(pick('skip', 'cancel', 'rerun'), pick(@ids)) }) },
		sub { return $c->try_seal($in{group}) },
		sub { return $c->shared_upkeep })->();
}

# Tasks end without success, which is tolerated, while others are made that depend
# on them.
sub fire_tolerated
{
	my ($c, $slot) = @_;
	my @ids = map { $_->{id} } tolerated_tasks($c, $slot);
	return somehow($c, sub {
		return pick(
			sub { return $c->try_report($ids[ $c->{no} ], 0, 'failed') },
			sub { return $c->try_resolve(pick('failed-terminal', 'canceled'), [ $ids[ $c->{no} ], 0 ]) })->();
	}) if $c->{no} < 2;
	my $d = task($c, $c->{round}, $slot, 100 + $c->{no}, deps => \@ids, all => 0);
	return somehow($c, sub { return rand() < 0.5 ? $c->try_create($d) : $c->try_create_tasks($d) });
}

# Dead letters are redriven by all.
sub fire_dead
{
	my ($c, $slot) = @_;
	my $id = pick(map { $_->{id} } dead_tasks($c, $slot));
	return pick(
		sub { return somehow($c, sub { return $c->try_verb('redrive', $id) }) },
		sub { return somehow($c, sub { return $c->try_verb(pick('rerun', 'cancel'), $id) }) },
		sub { $c->try_claim_task($id, 1); return somehow($c, sub { return $c->try_report($id, 1, 'failed') }) })->();
}

1;
