package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"sublet/agent/capture"
)

// compileFilter makes a program of a filter expression (pcap-filter(7)). The
// compiler is libpcap's, by tcpdump on this machine: an agent reads no language
// of a tenant's, only instructions that its kernel verifies.
func compileFilter(ctx context.Context, expression string) (capture.Filter, error) {
	program, err := exec.LookPath("tcpdump")
	if err != nil {
		return nil, fmt.Errorf("--filter is compiled by tcpdump, which is not installed here: install it, or filter what is written: tshark -Y %q", expression)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "-y", "EN10MB", "-ddd", "--", expression)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		words := strings.TrimPrefix(strings.TrimSpace(said.String()), "tcpdump: ")
		return nil, badInput{fmt.Errorf("--filter %q: %s: see pcap-filter(7)", expression, words)}
	}
	lines := strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(out)), " ", ","))
	if len(lines) < 2 {
		return nil, errors.New("tcpdump compiled the filter to nothing")
	}
	f, err := capture.ParseFilter(strings.Join(lines[1:], ";")) // the first says how many
	if err != nil {
		return nil, badInput{fmt.Errorf("--filter %q: %w", expression, err)}
	}
	return f, nil
}
