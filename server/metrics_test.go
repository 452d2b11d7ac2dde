package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/lease/api"
	"sublet/report"
	"sublet/vnet"
)

// A tenant's metrics are of their leases; the operator's of everything, and of
// the server.
func TestMetricsShowEachWhatIsTheirs(t *testing.T) {
	r := newRig(t)
	mine, theirs := vnet.LeaseID{Tenant: "daemon", Network: "net"}, vnet.LeaseID{Tenant: "bin", Network: "net"}
	r.speaking("h1", mine, theirs)
	r.agents()
	for uid := 1; uid <= 2; uid++ {
		admitted := must[api.Admission](t)(r.as(uid).Admit(within(t), pair("net", vnet.Mbit), false))
		must[vnet.Lease](t)(r.as(uid).WaitReady(within(t), admitted.Lease.ID()))
	}
	if _, err := r.as(1).Admit(within(t), pair("over", 2*vnet.Gbit), false); err == nil {
		t.Error("2 Gbit/s fit on 1 Gbit/s")
	}
	ofServer := []string{
		`sublet_api_requests_total{method="POST",result="Refused",route="/v1/leases"} 1`,
		`sublet_api_requests_total{method="POST",result="done",route="/v1/leases"} 2`,
		`sublet_decision_seconds_count 3`,
		`sublet_refusals_total{reason="link"} 1`,
		`sublet_refusals_total{reason="quota"} 0`,
		`sublet_decisions_waiting 0`,
		`sublet_notices_lost_total{medium="webhook"} 0`,
		`sublet_agent_state{host="h1",state="readable"} 1`,
		`sublet_agent_state{host="h2",state="unreadable"} 1`,
		`sublet_substrate_link_booked_bps{from="h1",link="wire",to="h2"} 2e+06`,
		`sublet_host_cpu_cores{host="h1"} 64`,
		"go_goroutines",
	}
	of := func(tenant string) []string {
		return []string{
			`sublet_lease_state{network="net",state="running",tenant="` + tenant + `"} 1`,
			`sublet_tenant_leases{tenant="` + tenant + `"} 1`,
			`sublet_tenant_min_bps{tenant="` + tenant + `"} 2e+06`,
			`sublet_vxlink_entered_packets_total{host="h1",key="` + tenant + `/net",network="net",tenant="` + tenant + `"}`,
			`sublet_vxlink_min_bps{direction="0",link="ab",network="net",tenant="` + tenant + `"} 1e+06`,
		}
	}
	for _, who := range []struct {
		uid          int
		sees, misses []string
	}{
		{os.Geteuid(), append(append(of("daemon"), of("bin")...), ofServer...), nil},
		{1, of("daemon"), append(of("bin"), ofServer...)},
		{3, nil, append(append(of("daemon"), of("bin")...), ofServer...)},
	} {
		text := string(getBody(t, r.as(who.uid), "/metrics"))
		for _, line := range who.sees {
			if !strings.Contains(text, line) {
				t.Errorf("user %d does not see %s in\n%s", who.uid, line, text)
			}
		}
		for _, line := range who.misses {
			if strings.Contains(text, line) {
				t.Errorf("user %d sees %s", who.uid, line)
			}
		}
	}
}

// Who scrapes agents asks the server for all but what links do. What alert rules are
// about is exported.
func TestMetricsWithoutLinks(t *testing.T) {
	r := newRig(t)
	r.speaking("h1", vnet.LeaseID{Tenant: "daemon", Network: "net"})
	r.agents()
	c := r.as(os.Geteuid())
	request := pair("net", vnet.Mbit)
	request.Tenant, request.For = "daemon", time.Hour
	l := must[api.Admission](t)(c.Admit(within(t), request, false)).Lease
	must[vnet.Lease](t)(c.WaitReady(within(t), l.ID()))
	whole, less := string(getBody(t, c, "/metrics")), string(getBody(t, c, "/metrics?links=none"))
	for _, line := range strings.Split(whole, "\n") {
		if of := strings.Contains(line, "vxlink") && strings.Contains(line, "tenant="); of == strings.Contains(less, line) && strings.HasPrefix(line, "sublet_") && !strings.Contains(line, "requests_total") {
			t.Errorf("of links: %v, without them there is: %v: %s", of, !of, line)
		}
	}
	board := string(must[[]byte](t)(os.ReadFile("../docs/monitoring/dashboard.json")))
	for _, name := range regexp.MustCompile(`sublet_[a-z_]+`).FindAllString(board, -1) {
		if !strings.Contains(whole, "\n"+name+"{") && !strings.Contains(whole, "\n"+name+" ") {
			t.Errorf("a panel is of %s, which is not exported", name)
		}
	}
	rules := string(must[[]byte](t)(os.ReadFile("../docs/monitoring/alerts.yaml")))
	for _, name := range regexp.MustCompile(`sublet_[a-z_]+`).FindAllString(rules, -1) {
		ofAgents := strings.HasPrefix(name, "sublet_agent_") && name != "sublet_agent_state"
		if !ofAgents && !strings.Contains(less, name+"{") {
			t.Errorf("an alert is of %s, which is not exported", name)
		}
	}
}

// Who asks and goes away makes no host unreadable for those who ask next.
func TestMetricsOfThoseWhoGoAway(t *testing.T) {
	r := newRig(t)
	r.speaking("h1")
	r.agents()
	readable := func(ctx context.Context) bool {
		r.server.scraper.at = time.Time{}
		samples, _ := r.server.scrape(ctx)
		return slices.ContainsFunc(samples, func(s report.Sample) bool { return s.Host == "h1" && s.Kind == kindAgent && s.State == report.Readable })
	}
	for end := time.Now().Add(10 * time.Second); !readable(t.Context()) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if !readable(gone) {
		t.Error("h1 is unreadable since somebody went away")
	}
}

// What Prometheus is given a port for shows metrics and health, and nothing else.
func TestWatchedIsNoAPI(t *testing.T) {
	r := newRig(t)
	for path, status := range map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": 200, "/v1/leases": 404, "/": 404} {
		w := httptest.NewRecorder()
		r.server.Watched().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != status {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	if r.server.Watched().ServeHTTP(w, httptest.NewRequest(http.MethodDelete, "/metrics", nil)); w.Code == 200 {
		t.Error("metrics were deleted")
	}
}
