package nsh

//go:generate ../bpf/generate nsh nsh.bpf.c -type counts -type hop -type path -type plane -type sender -type rule -type rules -type remote -type side -type conn -type probe -type nat -type backend -type balancer -type limit -type step
