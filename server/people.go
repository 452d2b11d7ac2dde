package server

import (
	"sync"
	"time"

	"sublet/trust"
	"sublet/vnet"
)

// people are the tenants as the operator's policy tells them apart.
type people struct {
	mu    sync.Mutex
	known map[vnet.TenantID]person
}

type person struct {
	member vnet.Member
	asked  time.Time
}

// How often the machine is asked who somebody is: who asks for something, and
// the others, whose groups count for them.
const (
	callerFor = 30 * time.Second
	othersFor = 5 * time.Minute
)

// learn asks the machine about tenants it was not asked about for a time. It
// reads files: not under the server's lock.
func (p *people) learn(every time.Duration, tenants ...vnet.TenantID) {
	now := time.Now()
	for _, t := range tenants {
		p.mu.Lock()
		fresh := now.Sub(p.known[t].asked) < every
		p.mu.Unlock()
		if fresh {
			continue
		}
		m := trust.MemberOf(t)
		p.mu.Lock()
		if len(p.known) >= maxTenants {
			clear(p.known)
		}
		p.known[t] = person{m, now}
		p.mu.Unlock()
	}
}

// member is what was learnt of a tenant.
func (p *people) member(t vnet.TenantID) vnet.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.known[t]; ok {
		return known.member
	}
	return vnet.Member{Name: trust.AccountOf(t), UID: trust.Nobody}
}
