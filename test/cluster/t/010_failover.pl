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

# Before Patroni 4 ttl may be less than 20.  The machine may be slow.
my ($major) = `patroni --version` =~ /(\d+)/;
my $ttl = $major < 4 ? 8 : 20;
exec("$FindBin::RealBin/../failover", '--rounds', 1, '--ttl', $ttl, '--slack', 15, '--seed', $ENV{TQ_SEED} // 1)
  or die "test/cluster/failover: $!";
