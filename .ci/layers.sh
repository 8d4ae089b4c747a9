#!/bin/bash
#
# layers.sh: do includes and calls between the layers of src go down only?  See
# doc/internals.md.
#
#	.ci/layers.sh [BUILT-TREE]		the tree itself, after `make`, by default
exec "$(dirname "$0")/checks/layers" "${1:-$(dirname "$0")/..}"
