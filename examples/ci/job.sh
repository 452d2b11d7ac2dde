#!/bin/sh
# A CI job in a network of its own: leases the network, runs a test in its
# client, keeps what it wrote, gives the network back, and ends with the test's
# exit code.
#
#   sublet lab up demo && examples/ci/job.sh ARTEFACTS [CMD [ARG...]]
#
# Without CMD a page is fetched from the server. ARTEFACTS is a directory, which
# is made: test.log, server.log, packets.pcapng.
set -u
here=$(dirname "$0")
artefacts=${1:?"state a directory for artefacts"}
shift
[ $# -gt 0 ] || set -- python3 -c '
import urllib.request
print(urllib.request.urlopen("http://server/", timeout=20).read().decode())'

mkdir -p "$artefacts" || exit
sublet up "$here/network.yaml" || exit
trap 'sublet down ci' EXIT
trap 'exit 130' INT TERM
sublet capture ci/access --for 60s -w "$artefacts/packets.pcapng" &
capture=$!
sublet exec ci/client -- "$@" >"$artefacts/test.log" 2>&1
code=$?
kill -INT "$capture" && wait "$capture"
sublet logs ci/server >"$artefacts/server.log"
exit "$code"
