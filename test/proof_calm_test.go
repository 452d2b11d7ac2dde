package test

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"sublet/internal/stall"
	"sublet/vnet"
)

// calmEnough are causes of broken promises that are true on a machine that others use.
var calmEnough = regexp.MustCompile(`short of processors?`)

// TestSoakNothingIsToldOfAHealthyLab: where nothing is done to a lab, no promise is told to
// be broken and no wire to be slow: of a link that is filled, one of which the
// minimum is wanted, one that is idle and has a bound of latency, and one best effort.
// SUBLET_SOAK says for how long.
//
//	h1:  a ==== full, some, idle, rest ==== b  :h2
func TestSoakNothingIsToldOfAHealthyLab(t *testing.T) {
	l := newLab(t, strings.Replace(slowBackbone, "200Mbit", "200Mbit, latency: 1ms", 1), "--delays")
	l.up(`network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}, {name: c, host: h2}, {name: d, host: h2}, {name: e, host: h2}]
links:
  - {name: full, ends: [a, b], rate: 5Mbit}
  - {name: some, ends: [a, c], min: 2Mbit, max: 20Mbit}
  - {name: idle, ends: [a, d], rate: 5Mbit, latency: 50ms}
  - {name: rest, ends: [a, e]}
`)
	time.Sleep(time.Second)
	for node, load := range map[string][]string{"b": {"-u", "-b", "6M"}, "c": {"-u", "-b", "3M"}, "e": {"-u", "-b", "1M"}} {
		l.must("exec", "n/"+node, "--", "iperf3", "-s", "-D")
		client := exec.Command(program, append([]string{"--run", l.run, "exec", "n/a", "--", "iperf3", "-c", node, "-t", "0"}, load...)...)
		if err := client.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Process.Kill(); _ = client.Wait() })
	}
	watch := stall.Start()
	time.Sleep(soakTime(t))
	starved := watch.Stop().Part() >= 0.05 // then the lab's wire, a process, is late, too, and loses frames
	var alarms []string
	for _, event := range strings.Split(l.must("events"), "\n") {
		alarm := strings.Contains(event, " broken ") || strings.Contains(event, " slow ") || strings.Contains(event, "degraded") || strings.Contains(event, "repair ")
		if alarm && !calmEnough.MatchString(event) {
			alarms = append(alarms, event)
		}
	}
	switch {
	case len(alarms) > 0 && starved:
		t.Skipf("not measured: the machine had no processor to spare, and it is told: %s", strings.Join(alarms, "; "))
	case len(alarms) > 0:
		t.Errorf("told: %s", strings.Join(alarms, "\n"))
	}
	var proofs []vnet.Proof
	if err := json.Unmarshal([]byte(l.must("proof", "n", "-o", "json")), &proofs); err != nil {
		t.Fatal(err)
	}
	for _, p := range proofs {
		t.Logf("%s from %s: %d s tested, %d broken; latency %+v", p.Link, p.From, p.Tested, p.Broken, p.Latency)
		if filled := p.From == "a" && (p.Link == "full" || p.Link == "some"); filled && p.Tested == 0 {
			t.Errorf("%s was not tested", p.Link)
		}
	}
}
