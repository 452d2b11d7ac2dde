#!/bin/sh
# Makes a lab, runs a command beside it, takes the lab down whatever became of the
# command, and ends with the command's exit code. The entry point of Containerfile.
#
#   [SUBSTRATE=demo] [LAB=lab] beside-lab.sh CMD [ARG...]
set -u
[ $# -gt 0 ] || { echo "state a command that is run beside the lab" >&2; exit 2; }
sublet lab up --name "${LAB:-lab}" "${SUBSTRATE:-demo}" || exit
trap 'sublet lab down' EXIT
# A signal ends the command, which is waited for again: the lab is taken down after it.
"$@" <&0 &
command=$!
trap 'kill -TERM "$command"' INT TERM
wait "$command"
code=$?
while kill -0 "$command" 2>/dev/null; do
	wait "$command"
	code=$?
done
exit "$code"
