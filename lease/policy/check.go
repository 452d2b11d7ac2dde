package policy

import (
	"fmt"
	"slices"
	"time"

	"sublet/vnet"
)

// Terms are the limits that hold for one tenant's requests.
type Terms struct {
	Tenant vnet.TenantID // whose account it is
	// Refused says that the policy lets this tenant lease nothing.
	Refused bool
	// Accounts are limited each by itself: the tenant's first, then those of
	// their groups.
	Accounts []Account
}

// Account is a limit with the tenants whose leases count.
type Account struct {
	Name  string // such as "alice" or "group students"
	Quota vnet.Quota
	Has   func(vnet.TenantID) bool

	held []Holding
}

// Book lists the leases that are not over of those tenants that are asked for.
type Book interface {
	Holdings(has func(vnet.TenantID) bool) []Holding
}

// At are the terms with what is held of each account now: to Check requests
// and count Usage without a book.
func (t Terms) At(b Book) Terms {
	if b == nil {
		return t
	}
	t.Accounts = slices.Clone(t.Accounts)
	for i := range t.Accounts {
		t.Accounts[i].held = b.Holdings(t.Accounts[i].Has)
	}
	return t
}

// Of are a tenant's terms. memberOf says who a tenant is.
func Of(p vnet.Policy, m vnet.Member, memberOf func(vnet.TenantID) vnet.Member) Terms {
	quota, allowed := p.QuotaOf(m)
	terms := Terms{Tenant: m.Name, Refused: !allowed}
	terms.Accounts = append(terms.Accounts, Account{
		Name: string(m.Name), Quota: quota,
		Has: func(t vnet.TenantID) bool { return memberOf(t).Name == m.Name },
	})
	for _, g := range p.GroupsOf(m) {
		terms.Accounts = append(terms.Accounts, Account{
			Name: "group " + g.Name, Quota: g.Together.Limited(),
			Has: func(t vnet.TenantID) bool { return g.Has(memberOf(t)) },
		})
	}
	return terms
}

// Fill states the default length in a request that states none.
func (t Terms) Fill(r *vnet.Request) {
	if length, ok := t.quota()[vnet.QuotaDefaultLength]; ok && r.For == 0 {
		r.For = time.Duration(length)
	}
}

// AsksPerSecond is how often the tenant may ask; vnet.Unlimited: as often as
// they like.
func (t Terms) AsksPerSecond() int64 {
	if most, ok := t.quota()[vnet.QuotaAsks]; ok {
		return most
	}
	return vnet.Unlimited
}

func (t Terms) quota() vnet.Quota { return t.Accounts[0].Quota }

// breach is a limit that a request breaks.
type breach struct {
	account           Account
	name              vnet.QuotaName
	used, asked, most int64
}

func (b breach) String() string {
	asked := b.name.Format(b.asked)
	switch {
	case b.asked == vnet.Unlimited:
		asked = "no end"
	case b.name == vnet.QuotaHorizon: // it was counted from an instant that nobody chose
		const second = int64(time.Second)
		asked = b.name.Format((b.asked + second - 1) / second * second)
	}
	text := fmt.Sprintf("quota %s of %s is %s: ", b.name.Word(), b.account.Name, b.name.Format(b.most))
	if b.name != vnet.QuotaLength && b.name != vnet.QuotaHorizon {
		text += fmt.Sprintf("%s used, ", b.name.Format(b.used))
	}
	return text + asked + " asked"
}

// Check refuses a request that breaks a limit, and offers the nearest one that
// breaks none: shorter, or with another start. Whether there is room for that
// it does not know. nil: the request keeps the limits. The book may be nil for
// terms At an instant.
func (t Terms) Check(now time.Time, b Book, r vnet.Request) *vnet.Rejection {
	if t.Refused {
		return &vnet.Rejection{Bound: vnet.BoundQuota, Reasons: []string{fmt.Sprintf("%s is none of the tenants that the operator's policy names", t.Tenant)},
			Never: "ask the operator for an entry in the policy"}
	}
	t = t.At(b)
	breaches := t.breaches(now, r)
	if len(breaches) == 0 {
		return nil
	}
	refusal := &vnet.Rejection{Bound: vnet.BoundQuota, Never: "nothing similar keeps the quota: ask for less, release something, or ask the operator for more"}
	for _, b := range breaches {
		refusal.Reasons = append(refusal.Reasons, b.String())
	}
	if offer, ok := t.nearest(now, r); ok {
		refusal.Offers = []vnet.Offer{offer}
		refusal.Offer, refusal.Changes, refusal.Never = &refusal.Offers[0].Request, offer.Changes, ""
	}
	return refusal
}

// breaches are the limits that a request breaks.
func (t Terms) breaches(now time.Time, r vnet.Request) (list []breach) {
	asked := of(now, r)
	list = t.breachesOfTime(now, asked, r)
	for _, a := range t.Accounts {
		list = append(list, a.breaches(now, asked)...)
	}
	return list
}

// breachesOfTime are those of the length and the start.
func (t Terms) breachesOfTime(now time.Time, asked Holding, r vnet.Request) (list []breach) {
	over := func(name vnet.QuotaName, amount int64) {
		if most, ok := t.quota()[name]; ok && amount > most {
			list = append(list, breach{account: t.Accounts[0], name: name, asked: amount, most: most})
		}
	}
	length := int64(r.For)
	if length == 0 {
		length = vnet.Unlimited
	}
	over(vnet.QuotaLength, length)
	over(vnet.QuotaHorizon, int64(later(asked.Window.Start, asked.Latest).Sub(now)))
	return list
}

// breaches are the account's limits that a request breaks beside what is held.
func (a Account) breaches(now time.Time, asked Holding) (list []breach) {
	over := func(name vnet.QuotaName, used, amount int64) {
		if most, ok := a.Quota[name]; ok && amount > 0 && sum(used, amount) > most {
			list = append(list, breach{a, name, used, amount, most})
		}
	}
	over(vnet.QuotaLeases, int64(len(a.held)), 1)
	used, most := a.peaks(now, asked)
	for i, name := range concurrent {
		over(name, used[i], most[i]-used[i])
	}
	if _, ok := a.Quota[vnet.QuotaBandwidthTime]; ok {
		over(vnet.QuotaBandwidthTime, bits(now, a.held), asked.bits(now))
	}
	return list
}

// peaks are what is held, and what would be with the asked, at the instants
// at which most would be, from now on.
func (a Account) peaks(now time.Time, asked Holding) (used, most Amounts) {
	for _, s := range asked.spans() {
		ahead, ok := s.Window.Since(now)
		if !ok {
			continue
		}
		in := peak(a.held, ahead)
		for i, n := range in {
			if with := sum(n, s.Amounts[i]); s.Amounts[i] > 0 && with > most[i] {
				used[i], most[i] = n, with
			}
		}
	}
	return used, most
}

func bits(now time.Time, held []Holding) (total int64) {
	for _, h := range held {
		total = sum(total, h.bits(now))
	}
	return total
}

// nearest changes length and start of a request, as far as it may, until it
// keeps the limits.
func (t Terms) nearest(now time.Time, r vnet.Request) (vnet.Offer, bool) {
	asked := r
	t.shorten(now, &r)
	t.bring(now, &r)
	if len(t.breaches(now, r)) > 0 || r.Check() != nil {
		return vnet.Offer{}, false
	}
	var o vnet.Offer
	if r.For != asked.For {
		o.Axes = append(o.Axes, vnet.AxisDuration)
		o.Changes = append(o.Changes, vnet.Change{What: "duration", From: lengthWord(asked.For), To: lengthWord(r.For)})
	}
	if !r.Start.Equal(asked.Start) || !r.Before.Equal(asked.Before) {
		o.Axes = append(o.Axes, vnet.AxisStart)
		o.Changes = append(o.Changes, vnet.Change{What: "start", From: startWord(asked), To: startWord(r)})
	}
	o.Request = r
	return o, !slices.ContainsFunc(o.Axes, func(a vnet.Axis) bool { return !asked.Negotiates(a) })
}

func lengthWord(d time.Duration) string {
	if d == 0 {
		return "until released"
	}
	return vnet.FormatDuration(d)
}

func startWord(r vnet.Request) string {
	word := "now"
	if !r.Start.IsZero() {
		word = r.Start.UTC().Format(time.RFC3339)
	}
	if !r.Before.IsZero() {
		word += " to " + r.Before.UTC().Format(time.RFC3339)
	}
	return word
}

// shorten brings the length within the longest one, and within what is left
// of bandwidth times time.
func (t Terms) shorten(now time.Time, r *vnet.Request) {
	if most, ok := t.quota()[vnet.QuotaLength]; ok && (r.For == 0 || int64(r.For) > most) {
		r.For = time.Duration(most)
	}
	for _, a := range t.Accounts {
		most, ok := a.Quota[vnet.QuotaBandwidthTime]
		if !ok {
			continue
		}
		left := most - min(most, bits(now, a.held))
		if asked := of(now, *r).bits(now); asked > left {
			r.For = lasting(now, *r, left)
		}
	}
}

// lasting is the longest length, in whole seconds, for which a request takes
// at most so many bits.
func lasting(now time.Time, r vnet.Request, left int64) time.Duration {
	low, high := int64(0), int64(vnet.MaxDuration/time.Second)
	if r.For > 0 {
		high = int64(r.For / time.Second)
	}
	for low < high {
		middle := (low + high + 1) / 2
		r.For = time.Duration(middle) * time.Second
		if of(now, r).bits(now) <= left {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return max(time.Duration(low)*time.Second, time.Second)
}

// bring moves the start within the horizon, and behind the end of what is
// held beside which the request is too much.
func (t Terms) bring(now time.Time, r *vnet.Request) {
	if most, ok := t.quota()[vnet.QuotaHorizon]; ok {
		last := now.Add(time.Duration(most)).UTC().Truncate(time.Second)
		if r.Before.After(last) {
			r.Before = last
		}
		if r.Start.After(last) {
			r.Start = last
		}
		if !r.Before.After(r.Start) {
			r.Before = time.Time{}
		}
	}
	for _, start := range t.ends(now, *r) {
		if len(t.breaches(now, *r)) == 0 {
			return
		}
		r.Start, r.Before = start, time.Time{}
	}
}

// mostEnds bounds the starts that are tried.
const mostEnds = 32

// ends are the instants, in whole seconds, at which something ends that
// counts, after a request's start.
func (t Terms) ends(now time.Time, r vnet.Request) (ends []time.Time) {
	from := of(now, r).Window.Start
	for _, a := range t.Accounts {
		for _, h := range a.held {
			for _, s := range h.spans() {
				if end := s.End.Add(time.Second - 1).UTC().Truncate(time.Second); !s.End.IsZero() && end.After(from) {
					ends = append(ends, end)
				}
			}
		}
	}
	slices.SortFunc(ends, time.Time.Compare)
	ends = slices.CompactFunc(ends, time.Time.Equal)
	return ends[:min(len(ends), mostEnds)]
}
