package overlay

//go:generate ../bpf/generate overlay overlay.bpf.c -type entry -type front -type name -type format -type tunnel_end -type sender -type counts -type owner -type drop -type kind
