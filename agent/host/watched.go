package host

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sublet/internal/problem"
	"sublet/report"
	"sublet/report/metrics"
)

// Watched answers Prometheus, and probes of whether the agent lives and whether
// the host is as planned.
func (h *Host) Watched() http.Handler {
	own := prometheus.NewRegistry()
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		list := new(metrics.List)
		for _, round := range h.agent.Rounds(r.Context(), 0, report.Scope{}) {
			list.Samples(round.Samples)
		}
		h.standing(list)
		now := prometheus.NewRegistry()
		now.MustRegister(list)
		promhttp.HandlerFor(prometheus.Gatherers{own, now}, promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelError),
		}).ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", h.ready)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		problem.Write(w, http.StatusNotFound, "here are /metrics, /healthz and /readyz alone")
	})
	return mux
}

// standing adds how the loop stands.
func (h *Host) standing(list *metrics.List) {
	s, labels := h.agent.Standing(), map[string]string{"host": string(h.agent.Host)}
	list.Gauge("agent_planned_revision", "Revision of the plan that the host shall have.", float64(s.Planned), labels)
	list.Gauge("agent_applied_revision", "Revision of the plan that the host had when nothing was wrong last.", float64(s.Applied), labels)
	list.Gauge("agent_problems", "What was not as planned after the last pass.", float64(s.Problems), labels)
	list.Total("agent_passes_total", "Passes of the loop that keeps the host as planned.", float64(s.Passes), labels)
	list.Total("agent_steps_total", "Changes that the loop made.", float64(s.Steps), labels)
	list.Total("agent_pass_seconds_total", "Time that passes took.", s.Took.Seconds(), labels)
}

// ready answers whether the host is as planned.
func (h *Host) ready(w http.ResponseWriter, _ *http.Request) {
	switch s := h.agent.Standing(); {
	case s.Passes == 0:
		problem.Write(w, http.StatusServiceUnavailable, "no plan is known yet")
	case s.Problems > 0:
		problem.Write(w, http.StatusServiceUnavailable, "not as planned: "+s.Problem)
	default:
		_, _ = io.WriteString(w, "ok\n")
	}
}
