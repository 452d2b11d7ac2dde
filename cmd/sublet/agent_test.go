package main

import "testing"

// An agent's address is one that a server can reach.
func TestAgentListensWhereItIsReached(t *testing.T) {
	for address, right := range map[string]bool{
		"": true, "192.0.2.2:7444": true, "h2.example.org:7444": true, "[fd00::2]:7444": true,
		":7444": false, "0.0.0.0:7444": false, "[::]:7444": false, "192.0.2.2": false,
	} {
		t.Run(address, func(t *testing.T) {
			if err := checkListen(address); (err == nil) != right || err != nil && exitCode(err) != exitInput {
				t.Errorf("--listen %q: %v", address, err)
			}
		})
	}
}

// A machine's own agent keeps its plan where it outlives a boot; one with a run
// directory of its own keeps it there.
func TestPlansOutliveABoot(t *testing.T) {
	for run, want := range map[string]string{"/run/sublet": "/var/lib/sublet/agent", "/run/sublet/": "/var/lib/sublet/agent", "/run/mine": "/run/mine/agent"} {
		t.Run(run, func(t *testing.T) {
			if got := (&app{run: run}).agentData(); got != want {
				t.Errorf("with --run %s the plan is kept in %s", run, got)
			}
		})
	}
}
