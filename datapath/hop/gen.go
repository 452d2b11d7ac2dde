package hop

//go:generate ../bpf/generate hop hop.bpf.c -type port_ref
