package main

import (
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sublet/vnet"
)

// A link is without ports when a host's end lacks one; a switch needs none.
func TestLinksWithoutPorts(t *testing.T) {
	right := vnet.Port{Interface: "eth0", Address: netip.MustParseAddr("192.0.2.1")}
	sub := vnet.Substrate{
		Hosts: []vnet.SubstrateNode{{Name: "h1"}, {Name: "h2"}}, Switches: []string{"s"},
		Links: []vnet.SubstrateLink{
			{Name: "bare", Ends: [2]string{"h1", "h2"}},
			{Name: "half", Ends: [2]string{"h1", "h2"}, Ports: [2]vnet.Port{right}},
			{Name: "whole", Ends: [2]string{"h1", "h2"}, Ports: [2]vnet.Port{right, right}},
			{Name: "switched", Ends: [2]string{"h1", "s"}, Ports: [2]vnet.Port{right}},
			{Name: "nameless", Ends: [2]string{"s", "h1"}, Ports: [2]vnet.Port{{}, {Interface: "eth0"}}},
		},
	}
	if got := portless(sub); !slices.Equal(got, []string{"bare", "half", "nameless"}) {
		t.Errorf("without ports: %v", got)
	}
}

// A port that others have is told of before anything is made.
func TestMetricsNeedAPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	run, data := filepath.Join(dir, "run"), filepath.Join(dir, "data")
	code, _, errs := sublet(t, "", "--run", run, "serve", "--data", data, "--metrics", taken.Addr().String())
	if code != exitInput || !strings.Contains(errs, "--metrics "+taken.Addr().String()) || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(files) > 0 {
		t.Errorf("made are %v", files)
	}
}
