package bpf

//go:generate go run ../../tools/contract include/contract.h contract.go
