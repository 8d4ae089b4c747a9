# Failover under Patroni: a primary is killed, stopped, cut off or paused, and no
# acknowledged work is lost.  One fault of each kind; test/cluster/failover does more.
use strict;
use warnings FATAL => 'all';

use FindBin;
use Test::More;

foreach my $need ('patroni --version', 'etcd --version', q{/usr/bin/python3 -c 'import etcd, psycopg2, yaml'})
{
	plan skip_all => "failover needs what is missing: $need" if system("$need >/dev/null 2>&1") != 0;
}

# The shortest ttl that this Patroni takes: the machine may be slow, but it has only
# one process to lose.
my ($major) = `patroni --version` =~ /(\d+)/;
my $ttl = $major < 4 ? 8 : 20;
exec("$FindBin::RealBin/../failover", '--rounds', 1, '--ttl', $ttl, '--switchover', 10, '--seed', $ENV{TQ_SEED} // 1)
  or die "test/cluster/failover: $!";
