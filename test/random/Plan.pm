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
use MIME::Base64 qw(encode_base64);
use Time::Local qw(timegm);

our @EXPORT_OK = qw(ROUND_MS SKEW_MS SLACK_MS EXPIRY_MS MAX_RUNS SHARED_QUEUES slug_of shared_task
  shared_id shared_group definition_json round_start ms_of time_of
  seed_numbers pick array_literal);

# The virtual clock: round r begins at BASE + r * ROUND_MS, and a round takes
# far less real time than half of that.  Deadlines lie half-way between two
# rounds, and so does all expiry: none passes while a round is going on.
#
# Expired rows must stay for SLACK_MS, and be gone EXPIRY_MS later: upkeep looks
# at what expires within one hour together.
use constant SLACK_MS      => 30 * 60_000;
use constant EXPIRY_MS     => 61 * 60_000;

# A session reads the clock when its call begins, and may then wait for a lock:
# so what follows may bear a time that is so much earlier than its cause.
use constant SKEW_MS       => 2_000;

use constant ROUND_MS      => 600_000;
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
			$deps{
				$before
				? shared_id($seed, $round - 1, $other, ($d >> 16) % 16)
				: shared_id($seed, $round, $other, $n - $back)
			} = 1;
		}
		$deps{$id} = 1 if $r[1] % 100 < 5;
	}
	return {
		id       => $id,
		queue    => 'shared/q' . $r[2] % SHARED_QUEUES,
		group    => $r[3] % 10 < 4 ? shared_group($seed, $round, int($n / GROUP_TASKS)) : undef,
		deps     => [ sort keys %deps ],
		all      => $r[4] % 2,
		priority => 1 + $r[4] / 2 % 7,
		retries  => $r[5] % MAX_RUNS,
		created  => $start,
		deadline => $dead,
		expires  => defined $late ? $dead + $late * ROUND_MS : undef,
		payload  => $n
	};
}

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
	  . ',"priority":"' . $priorities[ $d->{priority} - 1 ] . '"'
	  . ",\"retries\":$d->{retries}"
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
