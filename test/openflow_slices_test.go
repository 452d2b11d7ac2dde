package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/report"
	"sublet/vnet"
)

// sharedSwitch is a switch with two slices by ports: a and b have a controller, c and d
// another one; what else there is has a third one.
//
//	a, b, c, d - s1,   s1 -control- sw - one, two
func sharedSwitch(t *testing.T, datapath, slices string) string {
	t.Helper()
	text, err := os.ReadFile("../examples/openflow/learning.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, run, _ := strings.Cut(string(text), "    run:\n")
	run, _, _ = strings.Cut(run, "switches:\n")
	controller := func(name string) string {
		return "  - name: " + name + "\n    memory: 128MiB\n    host: h2\n    run:\n" + run
	}
	return "network: shared\nnodes:\n  - {name: a, host: h1}\n  - {name: b, host: h2}\n  - {name: c, host: h1}\n  - {name: d, host: h2}\n" +
		controller("one") + controller("two") + `switches:
  - {name: sw}
  - name: s1
    host: h1
    kind: openflow
    datapath: ` + datapath + `
    tables: 40
    entries: 40000
    groups: 1000
    meters: 1000
    flow_slices:
` + slices + `links:
  - {ends: [s1, sw], control: true}
  - {ends: [sw, one]}
  - {ends: [sw, two]}
  - {name: la, ends: [a, s1], rate: 10Mbit}
  - {name: lb, ends: [b, s1], rate: 10Mbit}
  - {name: lc, ends: [c, s1], rate: 10Mbit}
  - {name: ld, ends: [d, s1], rate: 10Mbit}
`
}

const twoSlices = `      - {name: alice, controller: ["tcp:one:6653"], links: [la, lb]}
      - {name: bob, controller: ["tcp:two:6653"], links: [lc, ld], tables: 4, entries: 500}
`

// entriesOf says how many entries a slice has, and at which table it begins; 0: there is
// no such slice, or the switch does not answer.
func (l *lab) entriesOf(name string) (entries, first int) {
	l.t.Helper()
	return l.sublet("flows", "status", "shared/s1", "-o", "json").entriesOf(l.t, name)
}

// entriesOf is what flows status says of a slice.
func (r result) entriesOf(t *testing.T, name string) (entries, first int) {
	t.Helper()
	if r.code != 0 {
		return 0, 0
	}
	for _, x := range decode[report.OpenFlowStatus](t, r.out).Slices {
		if x.Name == name {
			return x.Entries.Used, x.FirstTable
		}
	}
	return 0, 0
}

// A leased switch is shared by slices: each has a controller, of which none reaches what
// is another's; slices are changed while others forward, and outlive the switch's process.
func TestOpenFlowSlices(t *testing.T) {
	t.Parallel()
	for _, datapath := range []string{vnet.DatapathProcess, vnet.DatapathKernel} {
		t.Run(datapath, func(t *testing.T) { shares(t, datapath) })
	}
}

func shares(t *testing.T, datapath string) {
	l := newLab(t, "demo")
	l.up(sharedSwitch(t, datapath, twoSlices))
	learned := func(pairs ...string) {
		t.Helper()
		for i := 0; i < len(pairs); i += 2 {
			eventually(t, 30*time.Second, func() error { return l.crosses("shared/"+pairs[i], pairs[i+1]) })
		}
	}
	learned("a", "b", "c", "d")
	if l.crosses("shared/a", "d") == nil {
		t.Error("a station of one slice reaches one of the other")
	}
	if n, first := l.entriesOf("bob"); n < 3 || first < 2 {
		t.Errorf("slice bob: %d entries from table %d on:\n%s", n, first, l.must("flows", "status", "shared/s1"))
	}

	// Another controller and ports of alice leave bob as he is.
	before, first := l.entriesOf("bob")
	pid := l.openFlowProcess("h1")
	l.must("apply", l.file("request.yaml", sharedSwitch(t, datapath, `      - {name: rest, controller: ["tcp:one:6653"], default: true, tables: 2}
      - {name: bob, controller: ["tcp:two:6653"], links: [lc, ld], tables: 4, entries: 600}
`)))
	eventually(t, 30*time.Second, func() error {
		if _, there := l.entriesOf("rest"); there == 0 {
			return fmt.Errorf("no slice rest:\n%s", l.must("flows", "status", "shared/s1"))
		}
		return nil
	})
	if n, at := l.entriesOf("bob"); n < before || at != first || l.openFlowProcess("h1") != pid {
		t.Errorf("slice bob had %d entries from table %d on, and has %d from %d on; process %d, then %d", before, first, n, at, pid, l.openFlowProcess("h1"))
	}
	learned("c", "d", "a", "b")
	l.settled()

	// The process after this one has what slices have, before a controller says anything.
	l.must("exec", "shared/two", "--", "sh", "-c", "kill -STOP $(pidof python3)")
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() error {
		if now := l.openFlowProcess("h1"); now == 0 || now == pid {
			return fmt.Errorf("process %d", now)
		}
		if n, at := l.entriesOf("bob"); n < 3 || at != first {
			return fmt.Errorf("after the process has ended slice bob has %d entries from table %d on", n, at)
		}
		return l.crosses("shared/c", "d")
	})
	l.must("down", "shared")
}

// What slices cannot be is refused with the request, and what a lease cannot become.
func TestOpenFlowSlicesThatAreRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	for want, slices := range map[string]string{
		"some packets are also of slice":      strings.Replace(twoSlices, "[lc, ld]", "[lb, ld]", 1),
		"state its links, its match":          strings.Replace(twoSlices, "links: [lc, ld], ", "", 1),
		"there is no node \"three\"":          strings.Replace(twoSlices, "tcp:two", "tcp:three", 1),
		"together they have 44 tables":        strings.Replace(twoSlices, "tables: 4,", "tables: 36,", 1),
		"link \"s1-sw\" is to the controller": strings.Replace(twoSlices, "[lc, ld]", "[lc, s1-sw]", 1),
	} {
		r := l.sublet("up", l.file("bad.yaml", sharedSwitch(t, "process", slices)))
		if r.code != 2 || !strings.Contains(r.err, want) || strings.Count(strings.TrimSpace(r.err), "\n") > 1 {
			t.Errorf("want %q: %d %s", want, r.code, r.err)
		}
	}
}
