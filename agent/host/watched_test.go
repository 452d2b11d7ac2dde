package host

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sublet/agent"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// counting is a part with a link that counts, and that cannot be read if wrong.
type counting struct{ wrong atomic.Bool }

func (c *counting) Kinds() []plan.Kind { return []plan.Kind{plan.KindVxLink} }
func (c *counting) Observe(_ context.Context, h *plan.Host) error {
	if c.wrong.Load() {
		h.Unseen(context.DeadlineExceeded, vnet.LeaseID{}, plan.KindVxLink)
	}
	return nil
}
func (c *counting) Do(context.Context, plan.Step) error { return nil }
func (c *counting) Samples(context.Context, report.Scope) ([]report.Sample, error) {
	l := plan.VxLink{Lease: vnet.LeaseID{Tenant: "alice", Network: "net"}, Link: "a-b"}
	return []report.Sample{report.Traffic{Link: "a-b", First: true, Packets: 7, Bytes: 700, Drops: map[string]uint64{"queue": 2}}.Sample(l)}, nil
}

// plans hands out one plan.
type plans struct{ revision uint64 }

func (p plans) Plan(ctx context.Context, host vnet.HostID, after plan.Origin) (plan.Host, error) {
	if after.Revision >= p.revision {
		<-ctx.Done()
		return plan.Host{}, ctx.Err()
	}
	return plan.Host{Host: host, Revision: p.revision}, nil
}
func (p plans) Report(context.Context, report.Report) error { return nil }

// An agent says what links count and how its loop stands; it is ready once the host
// is as planned, and not if it is not. Prometheus takes what it says.
func TestAgentsAreWatched(t *testing.T) {
	part, events := new(counting), make(chan struct{}, 1)
	h := &Host{log: slog.New(slog.DiscardHandler)}
	h.agent = &agent.Agent{
		Host: "h1", Parts: []agent.Part{part}, Source: plans{3}, Copy: filepath.Join(t.TempDir(), "plan.json"), Log: h.log, Workers: 1, Events: events,
	}
	handler := h.Watched()
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	if code, text := get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("before it has a plan readyz answers %d %s", code, text)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.agent.Run(ctx) }()
	defer func() { stop(); <-done }()
	ready := func(want int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			code, text := get("/readyz")
			if code == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("readyz answers %d %s", code, text)
			}
		}
	}
	ready(http.StatusOK)
	_, text := get("/metrics")
	for _, want := range []string{
		`sublet_vxlink_entered_bytes_total{direction="0",enters="true",host="h1",leaves="false",link="a-b",network="net",tenant="alice"} 700`,
		`sublet_vxlink_dropped_packets_total{cause="queue",`, `sublet_agent_planned_revision{host="h1"} 3`, "sublet_agent_passes_total", "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	checkMetrics(t, text)
	rules, err := os.ReadFile("../../docs/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`sublet_agent_[a-z_]+`).FindAllString(string(rules), -1) {
		if name != "sublet_agent_state" && !strings.Contains(text, name+"{") { // the server says whose agents answer
			t.Errorf("an alert is of %s, which is not exported", name)
		}
	}
	part.wrong.Store(true)
	events <- struct{}{}
	ready(http.StatusServiceUnavailable)
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("healthz answers %d", code)
	}
}

// checkMetrics has Prometheus read them, where it is installed.
func checkMetrics(t *testing.T, text string) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool (Debian's package prometheus) is not installed")
		return
	}
	command := exec.Command(promtool, "check", "metrics")
	command.Stdin = strings.NewReader(text)
	if out, err := command.CombinedOutput(); err != nil && strings.Contains(string(out), "error while linting") {
		t.Errorf("%v\n%s", err, out)
	}
}
