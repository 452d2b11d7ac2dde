package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sublet/lease"
	"sublet/lease/api"
	"sublet/report"
	"sublet/report/metrics"
	"sublet/trust"
	"sublet/vnet"
)

// counters are of the server itself, for the operator.
type counters struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	decisions prometheus.Histogram
	refusals  *prometheus.CounterVec
}

func newCounters() *counters {
	c := &counters{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sublet_api_requests_total", Help: "Requests by route and what became of them: done, or the title of the problem.",
		}, []string{"method", "route", "result"}),
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sublet_decision_seconds", Help: "How long requests for networks took to be decided, waiting included.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sublet_refusals_total", Help: "Requests for networks that were refused, by what there was too little of."}, []string{"reason"}),
	}
	for _, bound := range refusedBy {
		c.refusals.WithLabelValues(bound)
	}
	c.registry.MustRegister(c.requests, c.decisions, c.refusals, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return c
}

// request counts one that was answered.
func (c *counters) request(rt route, err error) {
	result := "done"
	if err != nil {
		result = problemOf(err).Title
	}
	c.requests.WithLabelValues(rt.method, rt.path, result).Inc()
}

// decided notes how long a decision took that began at an instant.
func (c *counters) decided(begin time.Time) { c.decisions.Observe(time.Since(begin).Seconds()) }

// scrapeAgain is how old the samples of hosts may be that are shown: so often at
// most is a host asked, however many scrape.
const scrapeAgain = time.Second

// scrapeTimeout is how long one host may take: Prometheus waits for 10 s in all.
const scrapeTimeout = 3 * time.Second

// scraper asks agents for samples when metrics are asked for.
type scraper struct {
	mu    sync.Mutex
	at    time.Time
	hosts map[vnet.HostID]*collected
	last  []report.Sample
}

func (c *scraper) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.hosts {
		h.disconnect()
	}
}

// scrape are the newest samples of all hosts. One whose agent does not answer is
// unreadable. They are read to the end even if who asked goes away: others are
// shown them too.
func (s *Server) scrape(ctx context.Context) ([]report.Sample, error) {
	c := &s.scraper
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < scrapeAgain {
		return c.last, nil
	}
	asker := collector{server: s, hosts: c.hosts}
	if err := asker.look(); err != nil {
		return nil, err
	}
	var asking sync.WaitGroup
	slots := make(chan struct{}, mostHostsAsked)
	for host, h := range c.hosts {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scrapeTimeout)
			defer cancel()
			newest, err := s.newest(ctx, host, h)
			switch {
			case err != nil:
				h.disconnect()
				h.last = []report.Sample{{Host: host, Kind: kindAgent, Key: string(host), At: s.now(), State: report.Unreadable}}
			case newest != nil:
				h.last = append(newest, report.Sample{Host: host, Kind: kindAgent, Key: string(host), At: s.now(), State: report.Readable})
			}
		})
	}
	asking.Wait()
	c.last = nil
	for _, h := range c.hosts {
		c.last = append(c.last, h.last...)
	}
	c.at = time.Now()
	return c.last, nil
}

// kindAgent tells whether a host's agent answers from whether the host is down.
const kindAgent = "agent"

// getMetrics answers Prometheus: what is of the caller's leases, to the operator
// everything.
func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request, c *call) error {
	tenant := c.Tenant
	if c.Operator {
		tenant = ""
	}
	samples, err := s.scrape(r.Context())
	if err != nil {
		return err
	}
	links := r.URL.Query().Get("links") != withoutLinks
	if !links {
		samples = slices.DeleteFunc(slices.Clone(samples), func(one report.Sample) bool { return one.Lease != vnet.LeaseID{} })
	}
	promises, latencies := s.proving.promises(), s.proving.latencies()
	var list metrics.List
	list.Samples(report.Scope{Tenant: tenant}.Filter(samples))
	err = s.look(func(now time.Time, b *lease.Book) error {
		list.Samples(presentStates(now, b, tenant))
		leases := b.Leases()
		if !c.Operator {
			leases = b.Of(tenant)
		}
		for _, l := range active(leases) {
			addPromises(&list, l, promises, links)
			if links {
				addLatencies(&list, l, latencies)
			}
		}
		if c.Operator {
			addSubstrate(&list, b)
		}
		addTenants(&list, leases)
		return nil
	})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&list)
	gatherers := prometheus.Gatherers{registry}
	if c.Operator {
		gatherers = append(gatherers, s.counters.registry)
	}
	promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError),
	}).ServeHTTP(w, r)
	return nil
}

// withoutLinks is what ?links= says who takes what links do from their agents.
const withoutLinks = "none"

// addPromises adds when a lease ends and, with links, what these have, by direction.
func addPromises(list *metrics.List, l vnet.Lease, promises map[ofLink]vnet.Outcome, links bool) {
	of := map[string]string{"tenant": string(l.Request.Tenant), "network": string(l.Request.Network)}
	if !l.Window.End.IsZero() {
		list.Gauge("lease_end_timestamp_seconds", "When a lease ends.", float64(l.Window.End.Unix()), of)
	}
	list.Gauge("lease_broken_promises", "Directions of links whose minimum is not there now.", float64(len(brokenOf(l, promises))), of)
	if !links {
		return
	}
	for _, v := range l.Topology().Promised(l.Request.Chains) {
		if v.Chain != "" {
			addChain(list, l, v, promises)
		}
	}
	for _, v := range l.Topology().Links {
		for _, d := range vnet.Directions {
			labels := map[string]string{"tenant": of["tenant"], "network": of["network"], report.LabelLink: v.Name, report.LabelDirection: strconv.Itoa(int(d))}
			list.Gauge("vxlink_min_bps", "What a link has at least, in bit/s of frames.", float64(v.Bandwidth[d].Min), labels)
			list.Gauge("vxlink_allocated_bps", "What a link may carry now, in bit/s of frames.", float64(l.Rates[v.Name][d]), labels)
			if state, judged := promises[ofLink{l.ID(), v.Name, d}]; judged && v.Bandwidth[d].Min > 0 {
				list.Gauge("vxlink_promise_state", "Whether a link's minimum is there: 1 with its label state.", 1, metrics.With(labels, "state", string(state)))
			}
		}
	}
}

// addChain adds whether a chain's rate is there, by direction.
func addChain(list *metrics.List, l vnet.Lease, v vnet.VirtualLink, promises map[ofLink]vnet.Outcome) {
	for _, d := range vnet.Directions {
		state, judged := promises[ofLink{l.ID(), v.Name, d}]
		if !judged || v.Bandwidth[d].Min == 0 {
			continue
		}
		list.Gauge("chain_promise_state", "Whether a chain's rate is there: 1 with its label state.", 1, map[string]string{
			"tenant": string(l.Request.Tenant), "network": string(l.Request.Network), report.LabelChain: v.Chain, report.LabelDirection: strconv.Itoa(int(d)), "state": string(state),
		})
	}
}

// addLatencies adds the states of links' bounds of latency.
func addLatencies(list *metrics.List, l vnet.Lease, latencies map[ofLink]vnet.Outcome) {
	for _, v := range l.Topology().Links {
		for _, d := range vnet.Directions {
			if state, judged := latencies[ofLink{l.ID(), v.Name, d}]; judged {
				list.Gauge("vxlink_latency_state", "Whether a link's latency is within its bound: 1 with its label state.", 1, map[string]string{
					"tenant": string(l.Request.Tenant), "network": string(l.Request.Network), report.LabelLink: v.Name, report.LabelDirection: strconv.Itoa(int(d)), "state": string(state),
				})
			}
		}
	}
}

// addSubstrate adds what links and hosts have and what is booked of them.
func addSubstrate(list *metrics.List, b *lease.Book) {
	all := func(vnet.TenantID) bool { return true }
	for _, l := range linksNow(b.Substrate(), b.Leases(), all) {
		labels := map[string]string{report.LabelLink: l.Name, "from": l.From, "to": l.To}
		list.Gauge("substrate_link_leasable_bps", "What leases may have of a link.", float64(l.Leasable), labels)
		list.Gauge("substrate_link_booked_bps", "Sum of guaranteed minima.", float64(l.Booked), labels)
		list.Gauge("substrate_link_allocated_bps", "Sum of allocated rates.", float64(l.Allocated), labels)
	}
	for _, h := range hostsNow(b.Substrate(), b.Leases(), all) {
		labels := map[string]string{"host": string(h.Name)}
		list.Gauge("host_cpu_cores", "Processors that leases may have.", float64(h.CPU)/1000, labels)
		list.Gauge("host_cpu_free_cores", "Processors that nobody has.", float64(h.CPUFree)/1000, labels)
		list.Gauge("host_memory_bytes", "Memory that leases may have.", float64(h.Memory), labels)
		list.Gauge("host_memory_free_bytes", "Memory that nobody has.", float64(h.MemFree), labels)
	}
}

// getHealth answers as long as the server answers at all.
func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request, _ *call) error {
	w.Header().Set("Content-Type", "text/plain")
	_, err := io.WriteString(w, "ok\n")
	return err
}

// getReady answers whether leases can be asked for: the book is there and can be
// written.
func (s *Server) getReady(w http.ResponseWriter, r *http.Request, c *call) error {
	if err := s.look(func(time.Time, *lease.Book) error { return nil }); err != nil {
		return err
	}
	if err := s.room(); err != nil {
		return err
	}
	return s.getHealth(w, r, c)
}

// Watched answers metrics and health to whoever reaches a listener, as to the
// operator: Prometheus knows no Unix sockets.
func (s *Server) Watched() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		if r.path == "/metrics" || r.path == "/healthz" || r.path == "/readyz" {
			mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, request *http.Request) {
				if err := r.handle(s, w, request, &call{Caller: trust.Caller{Name: "metrics", Operator: true}}); err != nil {
					s.writeProblem(w, request, err)
				}
			})
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, request *http.Request) {
		s.writeProblem(w, request, &api.Problem{Status: http.StatusNotFound, Detail: "here are /metrics, /healthz and /readyz alone"})
	})
	return mux
}
