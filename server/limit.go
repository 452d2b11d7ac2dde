package server

import (
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"sublet/lease/api"
	"sublet/trust"
	"sublet/vnet"
)

// Bounds of what a stranger may send.
const (
	maxBody   = 8 << 20  // bytes of a request's body
	maxHeader = 32 << 10 // bytes of its header
)

// Limits are what one tenant may use of the server. The operator and agents
// are not limited.
type Limits struct {
	Leases     int     // live ones at a time
	PerSecond  float64 // requests
	Burst      int     // requests at once
	Concurrent int     // requests and sessions that are being served
	Admissions float64 // per second: each may cost some 10 ms of processor time
}

// DefaultLimits leave room for a check of a network of several hundred links.
var DefaultLimits = Limits{Leases: 64, PerSecond: 200, Burst: 2000, Concurrent: 1000, Admissions: 10}

// maxTenants bounds the limiter's memory; beyond it everybody starts afresh.
const maxTenants = 10_000

// limiter counts each tenant's use.
type limiter struct {
	limits  Limits
	mu      sync.Mutex
	tenants map[vnet.TenantID]*use
}

type use struct {
	requests   *rate.Limiter
	admissions *rate.Limiter
	active     int // requests and sessions
	bodies     int // being received
	moving     int // kept files under way
}

func newLimiter(limits Limits) *limiter {
	return &limiter{limits: limits, tenants: make(map[vnet.TenantID]*use)}
}

// enter admits a request, or says why not; leave must be called after it.
func (l *limiter) enter(c trust.Caller) (leave func(), err error) {
	if c.Operator || c.Host != "" {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(c.Account)
	if u.active >= l.limits.Concurrent {
		return nil, tooMany("%d requests of %s are being served, the most allowed at a time", u.active, c.Tenant)
	}
	if !u.requests.Allow() {
		return nil, tooMany("%s sends more than %g requests per second", c.Tenant, l.limits.PerSecond)
	}
	return l.begin(&u.active), nil
}

// begin counts one more of what a tenant has under way; l.mu is held.
func (l *limiter) begin(count *int) (end func()) {
	*count++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*count--
	}
}

// bodiesPerTenant bounds the memory that bodies on their way take.
const bodiesPerTenant = 4

// body admits the receiving of a body; leave must be called after it.
func (l *limiter) body(c trust.Caller) (leave func(), err error) {
	if c.Operator || c.Host != "" {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(c.Account)
	if u.bodies >= bodiesPerTenant {
		return nil, tooMany("%s is sending %d bodies at a time", c.Tenant, u.bodies)
	}
	return l.begin(&u.bodies), nil
}

// movingPerTenant bounds the kept files that are under way at a time.
const movingPerTenant = 2

// move admits saving or bringing what a node keeps; leave must be called after it.
func (l *limiter) move(c trust.Caller) (leave func(), err error) {
	if c.Operator {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.of(c.Account)
	if u.moving >= movingPerTenant {
		return nil, tooMany("kept files of %d nodes of %s are being saved or brought, the most allowed at a time", u.moving, c.Tenant)
	}
	return l.begin(&u.moving), nil
}

// admission counts one attempt to lease, of which a tenant may make so many per
// second; vnet.Unlimited: any number.
func (l *limiter) admission(c trust.Caller, perSecond int64) error {
	if c.Operator {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if perSecond == vnet.Unlimited {
		return nil
	}
	admissions := l.of(c.Account).admissions
	if admissions.Limit() != rate.Limit(perSecond) {
		admissions.SetLimit(rate.Limit(perSecond))
		admissions.SetBurst(int(2 * perSecond))
	}
	if !admissions.Allow() {
		return tooMany("%s asks for more than %d leases per second", c.Account, perSecond)
	}
	return nil
}

func (l *limiter) of(tenant vnet.TenantID) *use {
	if u, ok := l.tenants[tenant]; ok {
		return u
	}
	if len(l.tenants) >= maxTenants {
		clear(l.tenants)
	}
	u := &use{
		requests:   rate.NewLimiter(rate.Limit(l.limits.PerSecond), l.limits.Burst),
		admissions: rate.NewLimiter(rate.Limit(l.limits.Admissions), max(1, int(2*l.limits.Admissions))),
	}
	l.tenants[tenant] = u
	return u
}

func tooMany(format string, args ...any) error {
	return &api.Problem{Status: http.StatusTooManyRequests, Detail: fmt.Sprintf(format, args...) + ": try again later", After: 1}
}
