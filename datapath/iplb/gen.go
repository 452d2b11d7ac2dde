package iplb

//go:generate ../bpf/generate iplb iplb.bpf.c -type prefix -type set -type path -type flow_key -type flow -type counts -type probe -type cached_flow -type state -type mode -type form -type shortcut -type outcome
