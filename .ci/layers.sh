#!/bin/bash
#
# layers.sh: do calls between the rooms of src go down only?  See doc/internals.md.
#
#	.ci/layers.sh [BUILT-TREE]		the tree itself, after `make`, by default
exec "$(dirname "$0")/checks/layers" "${1:-$(dirname "$0")/..}"
